"""What a conversation's state was before a message, so that it can be put back.

The agent's session files are cut back to their earlier lengths, and the session must then hold the
very bytes that it held; the workspace must not have been touched at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import SessionRef
from skillup.schema.record import Checkpoint, Record, SessionFingerprint
from skillup.schema.suite import needs_simulator
from skillup.trial.message import LiveSession
from skillup.trial.request import TrialRequest
from skillup.workspace import Snapshot
from skillup.workspace.trees import Entry, list_tree


def workspace_signature(root: Path) -> str | None:
    """Of a workspace with its `.git`; None if it cannot be looked at, or is no directory."""
    digest = hashlib.sha256()
    try:
        if root.is_symlink():
            return None
        for entry in sorted(list_tree(root), key=lambda entry: entry.path):
            digest.update(os.fsencode("\0".join((entry.path, *_what_tells(root, entry), ""))))
    except OSError:
        return None
    return digest.hexdigest()


def _what_tells(root: Path, entry: Entry) -> Iterator[str]:
    """What tells that an entry of a tree was touched."""
    status = entry.status
    yield entry.kind
    if entry.kind == "file":
        yield str(status.st_size)
        # `git status`, which agents run to look, refreshes what the index knows of files' times.
        if entry.path != ".git/index" and not entry.path.endswith("/.git/index"):
            yield f"{status.st_mtime_ns} {stat.S_IMODE(status.st_mode)}"
    elif entry.kind == "link":
        yield os.readlink(root / entry.path)  # noqa: PTH115 - its exact spelling
    # A directory's times change with files that come and go, as git's locks do.


def session_files(home: Path) -> dict[str, int]:
    """The agent's session files below its home: path, relative to `home` -> size in bytes.

    All CLIs keep a session as lines of JSON that are only ever appended to.
    """
    return {
        path.relative_to(home).as_posix(): path.stat().st_size
        for path in home.rglob("*.jsonl")
        if path.is_file() and not path.is_symlink()
    }


def rewind_sessions(
    home: Path, files: Mapping[str, int], session: SessionFingerprint | None
) -> str | None:
    """Cut the session files back to what :func:`session_files` said; why not, if that cannot be.

    Whether `session` then holds exactly the bytes that it held is checked. Raises OSError.
    """
    for path, size in session_files(home).items():
        if path not in files:
            (home / path).unlink()
        elif size > files[path]:
            os.truncate(home / path, files[path])
    if session is None or not session.prefix_bytes:
        return None
    for found in home.rglob(f"*{session.session_id}*.jsonl"):
        if found.stat().st_size == session.prefix_bytes:
            with found.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == session.prefix_sha256:
                    return None
    return f"the file of session {session.session_id} does not hold exactly its turns"


@dataclass(frozen=True, slots=True)
class BackedUpState:
    """A conversation between two messages."""

    files: dict[str, int] | None
    """Of the session files; None: they could not be looked at."""
    workspace: str | None
    snapshot: Snapshot
    session: SessionRef | None
    fingerprint: SessionFingerprint | None
    messages: int


class StateBackup:
    """Of one conversation; nothing that it does changes what the agent finds."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._shared = live.context.profile.isolation == "shared"
        self._latest: BackedUpState | None = None

    async def keep(self) -> BackedUpState:
        """The state as it is now; not looked at again if no message was sent since."""
        if self._latest is None:
            live = self._live
            files, workspace = await anyio.to_thread.run_sync(self._look)
            self._latest = BackedUpState(
                files, workspace, live.snapshot, live.session, live.fingerprint, live.messages
            )
        return self._latest

    def sent(self) -> None:
        """A message was sent: nothing is any more as it was kept."""
        self._latest = None

    async def put_back(self, kept: BackedUpState) -> str | None:
        """Make all as it was when `kept` was; if that cannot be, why."""
        why = await anyio.to_thread.run_sync(self._put_back, kept)
        if why is None:
            live = self._live
            live.snapshot, live.session = kept.snapshot, kept.session
            live.fingerprint, live.messages = kept.fingerprint, kept.messages
            self._latest = kept
        return why

    def _look(self) -> tuple[dict[str, int] | None, str | None]:
        if self._shared:
            return None, None
        try:
            files = session_files(self._live.context.home)
        except OSError:
            files = None
        return files, workspace_signature(self._live.context.workspace)

    def _put_back(self, kept: BackedUpState) -> str | None:
        if self._shared:
            return "with `isolation: shared` the agent's session cannot be put back"
        if kept.files is None:
            return "the agent's session could not be looked at before the message"
        now = workspace_signature(self._live.context.workspace)
        if now is None or now != kept.workspace:
            return "the agent had touched the workspace"
        try:
            return rewind_sessions(self._live.context.home, kept.files, kept.fingerprint)
        except OSError as refused:
            return f"the agent's session could not be put back: {refused.strerror or refused}"


def what_was_asked(request: TrialRequest) -> str:
    """A digest of case and engine: a conversation is only gone on with if they are the same."""
    job = request.job
    asked = {
        "case": job.loaded.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "profile": job.profile.model_dump(mode="json"),
        "version": request.engine_version,
        "variant": job.variant,
        "variables": dict(request.variables),
    }
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


# Noting down what another process needs to go on with a conversation.


def may_be_noted(request: TrialRequest) -> bool:
    """Whether the trial can be gone on with by another process at all.

    What a simulated user would say next is not known to anybody else, and shared turns belong to
    several trials.
    """
    job = request.job
    return (
        request.note_down is not None
        and not job.family
        and job.profile.isolation == "clean"
        and not needs_simulator(job.loaded.case)
    )


async def note_down(
    request: TrialRequest,
    keeper: StateBackup,
    live: LiveSession,
    record: Record,
    variables: dict[str, str],
    elapsed_ms: int,
    held_seconds: float,
) -> None:
    """Have the trial noted down as it is, after a turn; nothing is noted if it is not all known.

    `record` has the turns so far.
    """
    if request.note_down is None or not may_be_noted(request):
        return
    kept = await keeper.keep()
    if kept.files is None or kept.workspace is None or kept.fingerprint is None:
        return
    workspace = live.context.workspace
    skills = {
        name: path.relative_to(workspace).as_posix()
        for name, path in live.context.skills.items()
        if path.is_relative_to(workspace)
    }
    noted = Checkpoint(
        record=record,
        variables=dict(variables),
        messages=kept.messages,
        session=kept.fingerprint,
        chosen_session_id=live.context.session_id,
        skills=skills,
        session_files=kept.files,
        workspace_sha256=kept.workspace,
        asked_sha256=what_was_asked(request),
        elapsed_ms=elapsed_ms,
        held_seconds=held_seconds,
    )
    await anyio.to_thread.run_sync(request.note_down, noted)
