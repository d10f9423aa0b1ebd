"""Turns that several trials have in common: held once, then every trial goes on from a fork."""

from __future__ import annotations

import copy
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import CreatedSession, SessionForker, SessionRef, TrialContext
from skillup.engines.session_files import moved_text
from skillup.process import new_marker
from skillup.schema.grade import Judging
from skillup.schema.record import Record, TurnError, TurnRecord
from skillup.trial.artifacts import keep_references
from skillup.trial.conversation import LiveConversation
from skillup.trial.message import LiveSession, internal_error, look_at
from skillup.trial.request import TrialRequest
from skillup.trial.run import close_trial, conversation_of, record_on_error
from skillup.trial.setup import Opened, activity_of, ended, new_record, open_trial
from skillup.workspace import copy_workspace
from skillup.workspace.failures import refuse_full_disk

# A fork: a copy of a trial's workspace and a fork of its session, for another trial to go on with.


def fork_problem_of(name: str, engine: object) -> TurnError | None:
    """Why sessions of this engine cannot be forked; None if they can."""
    if isinstance(engine, SessionForker):
        return None
    message = (
        f"{name} cannot fork a session, which branches and --trials-from-turn need; "
        "use another engine with --engine, or select a single branch with -k"
    )
    return TurnError(kind="unsupported", message=message)


async def fork_trial(
    parent: Opened, conversation: LiveConversation, request: TrialRequest
) -> Opened | Record:
    """The trial of `request`, as far as `parent` has held it, ready to go on by itself.

    A Record, with its error, if that cannot be. Raises OSError where the disk does.
    """
    live, case = parent.live, request.job.loaded.case
    workspace, home = request.scratch / "workspace", request.scratch / "home"
    await anyio.to_thread.run_sync(_copy, live.context, workspace, home, request.raw_dir)
    context = _context(live.context, request, workspace.resolve(), home.resolve())
    variables = _moved_variables(conversation.variables, live.context, context)
    moved = sorted(name for name in variables if variables[name] != conversation.variables[name])
    told = [
        f"<<{name}>> holds a path of the workspace, and means the same place of this fork's copy"
        for name in moved
    ]
    record = new_record(request).model_copy(
        update={
            **{name: getattr(parent.record, name) for name in INHERITED},
            "references": keep_references(
                case, request.job.suite.root, request.blobs, parent.record.initial_variables
            ),
            "notes": [*parent.record.notes, *told],
        }
    )
    placed = await _forked(live, context)
    if placed.error is not None:
        return record.model_copy(update={"error": placed.error, "turns": list(conversation.turns)})
    record = record.model_copy(update={"notes": [*record.notes, *placed.notices]})
    snapshot = await look_at(context.workspace, request.blobs)
    forked = LiveSession(live.engine, context, request.blobs, snapshot)
    forked.session, forked.fingerprint = placed.session, placed.fingerprint
    forked.messages = live.messages
    turns = case.input.all_turns()
    return Opened(request, record, forked, turns, variables, tuple(conversation.turns))


INHERITED = (
    "skills", "initial_files", "initial_variables", "history", "execution_mode", "started_at",
)  # fmt: skip


def _copy(parent: TrialContext, workspace: Path, home: Path, raw_dir: Path) -> None:
    copy_workspace(parent.workspace, workspace)
    _relink(workspace, str(parent.workspace))
    home.mkdir(mode=0o700, parents=True)
    copy_streams(parent.raw_dir, raw_dir)


def copy_streams(raw_dir: Path, to: Path) -> None:
    """Each trial's directory tells the whole of its conversation, shared turns included."""
    if to != raw_dir and raw_dir.is_dir():
        shutil.copytree(raw_dir, to, dirs_exist_ok=True)


def _relink(workspace: Path, old: str) -> None:
    """Links with a whole path into the parent's workspace lead into the copy instead."""
    for folder, names, files in os.walk(workspace):
        for name in (*names, *files):
            path = Path(folder, name)
            if not path.is_symlink():
                continue
            target = os.readlink(path)  # noqa: PTH115 - its exact spelling
            changed = moved_text(target, old, str(workspace))
            if changed != target:
                path.unlink()
                os.symlink(changed, path)  # noqa: PTH211 - the same


def _context(
    parent: TrialContext, request: TrialRequest, workspace: Path, home: Path
) -> TrialContext:
    skills = {
        name: workspace / path.relative_to(parent.workspace)
        if path.is_relative_to(parent.workspace)
        else path
        for name, path in parent.skills.items()
    }
    return replace(
        parent,
        workspace=workspace,
        home=home,
        raw_dir=request.raw_dir,
        marker=new_marker(),
        session_id=str(uuid.uuid4()),
        skills=skills,
        attempt=request.attempt,
        seed=request.seed,
        progress=activity_of(request),
    )


def _moved_variables(
    variables: Mapping[str, str], parent: TrialContext, child: TrialContext
) -> dict[str, str]:
    old, new = str(parent.workspace), str(child.workspace)
    return {name: moved_text(value, old, new) for name, value in variables.items()}


async def _forked(live: LiveSession, child: TrialContext) -> CreatedSession:
    """The session's fork; an error if there is none, or if the parent's session was touched."""
    engine, session = live.engine, live.session
    if not isinstance(engine, SessionForker):
        return CreatedSession(None, error=fork_problem_of(engine.name, engine))
    if session is None:
        what = "the turns before the fork left no session to go on with"
        return CreatedSession(None, error=TurnError(kind="session_lost", message=what))
    before = await anyio.to_thread.run_sync(_session_digest, live.context)
    placed = await _asked(engine, session, live.context, child)
    after = await anyio.to_thread.run_sync(_session_digest, live.context)
    if before != after:
        what = f"forking session {session.id} changed it; what its forks hold cannot be relied on"
        return CreatedSession(None, error=TurnError(kind="session_lost", message=what))
    return placed


async def _asked(
    engine: SessionForker, session: SessionRef, parent: TrialContext, child: TrialContext
) -> CreatedSession:
    """A defect of an engine's is an error of the trial, as data."""
    try:
        return await engine.fork(session, parent, child)
    except OSError as refused:
        refuse_full_disk(refused, parent.home)
        why = f"{refused.strerror or refused} ({refused.filename or parent.home})"
        message = f"session {session.id} could not be forked: {why}"
        return CreatedSession(None, error=TurnError(kind="setup", message=message))
    except Exception as defect:  # noqa: BLE001 - see above
        return CreatedSession(None, error=internal_error(defect))


def _session_digest(parent: TrialContext) -> str:
    """Of the session files in the trial's own home; under `shared` they are not in there."""
    digest = hashlib.sha256()
    for path in sorted(parent.home.rglob("*.jsonl")):
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
            digest.update(os.fsencode(path))
    return digest.hexdigest()


_OF_THE_START = (*INHERITED, "notes")


@dataclass(slots=True)
class SharedPrefix:
    """A conversation as far as it is shared; no more is said in it."""

    opened: Opened | None
    conversation: LiveConversation | None
    refused: Record | None
    """The record that says why the turns were not held, if an error kept them back."""
    held_seconds: float = 0.0
    earlier_ms: int = 0
    judging: Judging | None = field(default=None)
    """What judges took while it was held."""

    @property
    def ended(self) -> bool:
        """Something has ended the conversation: there is nothing to fork."""
        return self.conversation is None or self.refused is not None or self.conversation.ended

    @property
    def turns(self) -> Sequence[TurnRecord]:
        """As far as it was held, what was held before a fork included."""
        if self.conversation is not None:
            return self.conversation.turns
        return self.refused.turns if self.refused is not None else ()

    async def record_of(self, request: TrialRequest) -> Record:
        """The record of a trial that goes no further, because the shared turns ended it."""
        clock = time.monotonic()
        record = new_record(request)
        began, conversation = self.opened, self.conversation
        if began is None or conversation is None or self.refused is not None:
            known = {} if self.refused is None else _start_of(self.refused, "error", "turns")
            return ended(record, clock, earlier_ms=self.earlier_ms, **known)
        record = record.model_copy(update=_start_of(began.record, "references"))
        # What ended the conversation is known to it: it says why the rest was not sent.
        rest = copy.copy(conversation)
        rest.turns = list(conversation.turns)
        rest.record = record
        turns = request.job.loaded.case.input.all_turns()
        waited = rest.waited

        async def finish() -> Record:
            raw_dir = began.live.context.raw_dir
            await anyio.to_thread.run_sync(copy_streams, raw_dir, request.raw_dir)
            await rest.hold(turns)
            opened = replace(began, request=request, earlier_ms=self.earlier_ms)
            found = await close_trial(opened, rest, clock, waited_before=waited)
            return found.model_copy(update={"judging": None})

        return await record_on_error(finish, record, clock, earlier_ms=self.earlier_ms)

    async def fork(self, request: TrialRequest) -> Opened | Record:
        """The trial of `request`, ready to go on; a Record, with its error, if it cannot be."""
        opened, conversation = self.opened, self.conversation
        if opened is None or conversation is None:
            return await self.record_of(request)
        clock = time.monotonic()
        forks: list[Opened] = []

        async def fork() -> Record:
            forked = await fork_trial(opened, conversation, request)
            if isinstance(forked, Record):
                return ended(forked, clock, earlier_ms=self.earlier_ms)
            forked.held_seconds, forked.earlier_ms = self.held_seconds, self.earlier_ms
            forks.append(forked)
            return forked.record

        record = await record_on_error(fork, new_record(request), clock, earlier_ms=self.earlier_ms)
        return forks[0] if forks else record


async def run_shared_prefix(
    request: TrialRequest, count: int, fork: Opened | None = None
) -> SharedPrefix:
    """Hold the first `count` turns of the job, in a workspace and a session of their own.

    `fork` is where they go on from if some of them have been held before. Raises as `run_trial`.
    """
    clock = time.monotonic()
    found = SharedPrefix(fork, None, None)
    record = fork.record if fork is not None else new_record(request)

    async def hold() -> Record:
        opened = fork or await open_trial(request, record)
        if isinstance(opened, Record):
            found.refused = opened
            return opened
        found.opened, found.conversation = opened, conversation_of(opened)
        began = time.monotonic()
        await found.conversation.hold(opened.turns, until=count)
        took = time.monotonic() - began - found.conversation.waited
        found.held_seconds = opened.held_seconds + max(0.0, took)
        return opened.record

    ended_as = await record_on_error(hold, record, clock)
    if ended_as.error is not None:
        found.refused = ended_as
    before = fork.earlier_ms if fork is not None else 0
    waited = found.conversation.waited if found.conversation is not None else 0.0
    found.earlier_ms = before + round((time.monotonic() - clock - waited) * 1000)
    found.judging = request.judge.judging() if request.judge is not None else None
    return found


def _start_of(record: Record, *more: str) -> dict[str, object]:
    return {name: getattr(record, name) for name in (*_OF_THE_START, *more)}
