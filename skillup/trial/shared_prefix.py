"""Turns that several trials have in common: run once, then every trial goes on from a fork.

A fork is a copy of a trial's workspace and a fork of its session.
"""

from __future__ import annotations

import copy
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import CreatedSession, SessionForker, TrialContext
from skillup.engines.session_files import moved_text
from skillup.process import new_marker
from skillup.schema.grade import Judging
from skillup.schema.record import Record, TurnError, TurnRecord
from skillup.trial.artifacts import keep_references
from skillup.trial.conversation import LiveConversation
from skillup.trial.request import Interruption, TrialRequest
from skillup.trial.run import close_trial, record_on_error
from skillup.trial.session import AgentWatcher, LiveSession, call_engine, look_at
from skillup.trial.setup import OpenTrial, ended, new_record, open_trial
from skillup.workspace.trees import copy_workspace

_INHERITED = (
    "skills", "initial_files", "initial_variables", "history", "execution_mode", "started_at",
)  # fmt: skip


@dataclass(slots=True)
class SharedPrefix:
    """A conversation as far as it is shared; nothing more is sent in it."""

    opened: OpenTrial | None = None
    conversation: LiveConversation | None = None
    refused: Record | None = None
    """The record that says why the turns were not run, if an error kept them back."""
    used_seconds: float = 0.0
    earlier_ms: int = 0
    judging: Judging | None = None
    """What judges used while it ran."""

    @property
    def interruption(self) -> Interruption | None:
        """Why what came of it is no result."""
        return self.conversation.interruption if self.conversation is not None else None

    @property
    def ended(self) -> bool:
        """Something has ended the conversation: there is nothing to fork."""
        return self.conversation is None or self.refused is not None or self.conversation.ended

    @property
    def turns(self) -> Sequence[TurnRecord]:
        """As far as it ran, what ran before a fork included."""
        if self.conversation is not None:
            return self.conversation.turns
        return self.refused.turns if self.refused is not None else ()

    async def record_of(self, request: TrialRequest) -> Record:
        """The record of a trial that goes no further, because the shared turns ended it."""
        clock = time.monotonic()
        record, opened = new_record(request), self.opened
        if opened is None or self.conversation is None or self.refused is not None:
            known = _start_of(self.refused, "error", "turns") if self.refused is not None else {}
            return ended(record, clock, earlier_ms=self.earlier_ms, **known)
        # What ended the conversation is known to it: it says why the rest was not sent.
        rest = copy.copy(self.conversation)
        rest.turns = list(rest.turns)
        rest.record = record.model_copy(update=_start_of(opened.record, "references"))
        waited = rest.waited

        async def finish() -> Record:
            raw_dir = rest.session.context.raw_dir
            await anyio.to_thread.run_sync(_copy_streams, raw_dir, request.raw_dir)
            await rest.run(request.job.loaded.case.input.all_turns())
            found = await close_trial(
                rest, clock, self.earlier_ms, request=request, waited_before=waited
            )
            return found.model_copy(update={"judging": None})

        return await record_on_error(finish, rest.record, clock, earlier_ms=self.earlier_ms)

    async def fork(self, request: TrialRequest) -> OpenTrial | Record:
        """The trial of `request`, ready to go on; a Record, with its error, if it cannot be."""
        opened, conversation = self.opened, self.conversation
        if opened is None or conversation is None:
            return await self.record_of(request)
        clock = time.monotonic()
        forks: list[OpenTrial] = []

        async def fork() -> Record:
            forked = await fork_trial(conversation, request)
            if isinstance(forked, Record):
                return ended(forked, clock, earlier_ms=self.earlier_ms)
            forked.used_seconds, forked.earlier_ms = self.used_seconds, self.earlier_ms
            forks.append(forked)
            return forked.record

        record = await record_on_error(fork, new_record(request), clock, earlier_ms=self.earlier_ms)
        return forks[0] if forks else record


async def run_shared_prefix(
    request: TrialRequest, count: int, fork: OpenTrial | None = None
) -> SharedPrefix:
    """Run the first `count` turns of the job, in a workspace and a session of their own.

    `fork` is where they go on from if some of them have run before. Raises as `run_trial`.
    """
    clock = time.monotonic()
    found = SharedPrefix(fork)
    record = fork.record if fork is not None else new_record(request)

    async def run() -> Record:
        opened = fork or await open_trial(request, record)
        if isinstance(opened, Record):
            return opened
        found.opened, found.conversation = opened, LiveConversation(opened)
        await found.conversation.run(opened.turns, until=count)
        found.used_seconds = found.conversation.used_seconds()
        return opened.record

    result = await record_on_error(run, record, clock)
    found.refused = result if result.error is not None else None
    waited = found.conversation.waited if found.conversation is not None else 0.0
    before = fork.earlier_ms if fork is not None else 0
    found.earlier_ms = before + round((time.monotonic() - clock - waited) * 1000)
    found.judging = request.judge.judging() if request.judge is not None else None
    return found


def _start_of(record: Record, *more: str) -> dict[str, object]:
    return {name: getattr(record, name) for name in (*_INHERITED, "notes", *more)}


def fork_problem_of(name: str, engine: object) -> TurnError | None:
    """Why sessions of this engine cannot be forked; None if they can."""
    if isinstance(engine, SessionForker):
        return None
    message = (
        f"{name} cannot fork a session, which branches and --trials-from-turn need; "
        "use another engine with --engine, or select a single branch with -k"
    )
    return TurnError(kind="unsupported", message=message)


async def fork_trial(parent: LiveConversation, request: TrialRequest) -> OpenTrial | Record:
    """The trial of `request`, as far as `parent` has run, ready to go on by itself.

    A Record, with its error, if that cannot be. Raises OSError where the disk does.
    """
    live, case = parent.session, request.job.loaded.case
    before = live.context
    workspace, home = request.scratch / "workspace", request.scratch / "home"
    await anyio.to_thread.run_sync(_copy, before, workspace, home, request.raw_dir)
    workspace, home = workspace.resolve(), home.resolve()
    skills = {
        name: workspace / path.relative_to(before.workspace)
        if path.is_relative_to(before.workspace)
        else path
        for name, path in before.skills.items()
    }
    context = replace(
        before,
        workspace=workspace,
        home=home,
        raw_dir=request.raw_dir,
        marker=new_marker(),
        session_id=str(uuid.uuid4()),
        skills=skills,
        attempt=request.attempt,
        seed=request.seed,
        progress=AgentWatcher(request.job.id, request.notify),
    )
    variables = {
        name: moved_text(value, str(before.workspace), str(workspace))
        for name, value in parent.variables.items()
    }
    notes = [
        f"<<{name}>> holds a path of the workspace, and means the same place of this fork's copy"
        for name in sorted(variables)
        if variables[name] != parent.variables[name]
    ]
    references = keep_references(
        case, request.job.suite.root, request.blobs, parent.record.initial_variables
    )
    start = {name: getattr(parent.record, name) for name in _INHERITED}
    record = new_record(request).model_copy(
        update={**start, "references": references, "notes": [*parent.record.notes, *notes]}
    )
    placed = await _forked_session(live, context)
    if placed.error is not None:
        return record.model_copy(update={"error": placed.error, "turns": list(parent.turns)})
    record = record.model_copy(update={"notes": [*record.notes, *placed.notices]})
    snapshot = await look_at(workspace, request.blobs)
    forked = LiveSession(
        live.engine,
        context,
        request.blobs,
        snapshot,
        placed.session,
        placed.fingerprint,
        live.messages,
    )
    return OpenTrial(
        request, record, forked, case.input.all_turns(), variables, tuple(parent.turns)
    )


async def _forked_session(live: LiveSession, child: TrialContext) -> CreatedSession:
    """The session's fork; an error if there is none, or if the parent's session was touched."""
    engine, session, parent = live.engine, live.session, live.context
    if not isinstance(engine, SessionForker):
        return CreatedSession(None, error=fork_problem_of(engine.name, engine))
    if session is None:
        what = "the turns before the fork left no session to go on with"
        return CreatedSession(None, error=TurnError(kind="session_lost", message=what))
    before = await anyio.to_thread.run_sync(_session_digest, parent)
    what = f"session {session.id} could not be forked"
    placed = await call_engine(lambda: engine.fork(session, parent, child), what, parent.home)
    if before != await anyio.to_thread.run_sync(_session_digest, parent):
        what = f"forking session {session.id} changed it; what its forks hold cannot be relied on"
        placed = TurnError(kind="session_lost", message=what)
    return CreatedSession(None, error=placed) if isinstance(placed, TurnError) else placed


def _copy(parent: TrialContext, workspace: Path, home: Path, raw_dir: Path) -> None:
    """Workspace and streams; links with a whole path into the old workspace lead into the new."""
    copy_workspace(parent.workspace, workspace)
    for folder, names, files in os.walk(workspace):
        for path in (Path(folder, name) for name in (*names, *files)):
            if path.is_symlink():
                target = os.readlink(path)  # noqa: PTH115 - its exact spelling
                changed = moved_text(target, str(parent.workspace), str(workspace))
                if changed != target:
                    path.unlink()
                    os.symlink(changed, path)  # noqa: PTH211 - the same
    home.mkdir(mode=0o700, parents=True)
    _copy_streams(parent.raw_dir, raw_dir)


def _copy_streams(raw_dir: Path, to: Path) -> None:
    """Each trial's directory has the whole of its conversation, shared turns included."""
    if to != raw_dir and raw_dir.is_dir():
        shutil.copytree(raw_dir, to, dirs_exist_ok=True)


def _session_digest(parent: TrialContext) -> str:
    """Of the session files in the trial's own home; under `shared` they are not in there."""
    digest = hashlib.sha256()
    for path in sorted(parent.home.rglob("*.jsonl")):
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
            digest.update(os.fsencode(path))
    return digest.hexdigest()
