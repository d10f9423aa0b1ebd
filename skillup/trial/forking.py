"""A fork: a copy of a trial's workspace and a fork of its session, for another trial to go on with.

The parent is not gone on with, so all of its forks begin from the same moment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import Placed, SessionForker, SessionRef, TrialContext
from skillup.engines.moved_paths import moved_text
from skillup.process import new_marker
from skillup.schema.record import Record, TurnError
from skillup.trial.conversation import Conversation
from skillup.trial.message import LiveSession, internal_error, look_at
from skillup.trial.opening import Opened, new_record
from skillup.trial.prepare import activity_of
from skillup.trial.references import keep_references
from skillup.trial.request import TrialRequest
from skillup.workspace import copy_workspace
from skillup.workspace.full_disk import refuse_full_disk


def forking_problem(name: str, engine: object) -> TurnError | None:
    """Why sessions of this engine cannot be forked; None if they can."""
    if isinstance(engine, SessionForker):
        return None
    message = (
        f"{name} cannot fork a session, which branches and --trials-from-turn need; "
        "use another engine with --engine, or select a single branch with -k"
    )
    return TurnError(kind="unsupported", message=message)


async def fork_trial(
    parent: Opened, conversation: Conversation, request: TrialRequest
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


async def _forked(live: LiveSession, child: TrialContext) -> Placed:
    """The session's fork; an error if there is none, or if the parent's session was touched."""
    engine, session = live.engine, live.session
    if not isinstance(engine, SessionForker):
        return Placed(None, error=forking_problem(engine.name, engine))
    if session is None:
        what = "the turns before the fork left no session to go on with"
        return Placed(None, error=TurnError(kind="session_lost", message=what))
    before = await anyio.to_thread.run_sync(_session_digest, live.context)
    placed = await _asked(engine, session, live.context, child)
    after = await anyio.to_thread.run_sync(_session_digest, live.context)
    if before != after:
        what = f"forking session {session.id} changed it; what its forks hold cannot be relied on"
        return Placed(None, error=TurnError(kind="session_lost", message=what))
    return placed


async def _asked(
    engine: SessionForker, session: SessionRef, parent: TrialContext, child: TrialContext
) -> Placed:
    """A defect of an engine's is an error of the trial, as data."""
    try:
        return await engine.fork(session, parent, child)
    except OSError as refused:
        refuse_full_disk(refused, parent.home)
        why = f"{refused.strerror or refused} ({refused.filename or parent.home})"
        message = f"session {session.id} could not be forked: {why}"
        return Placed(None, error=TurnError(kind="setup", message=message))
    except Exception as defect:  # noqa: BLE001 - see above
        return Placed(None, error=internal_error(defect))


def _session_digest(parent: TrialContext) -> str:
    """Of the session files in the trial's own home; under `shared` they are not in there."""
    digest = hashlib.sha256()
    for path in sorted(parent.home.rglob("*.jsonl")):
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
            digest.update(os.fsencode(path))
    return digest.hexdigest()
