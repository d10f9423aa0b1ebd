"""The agent's session in a trial: one message and its answer, and its state put back."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread

from skillup.dataclass import frozen, mutable
from skillup.engines.base import (
    Engine,
    EngineTurn,
    SessionResumer,
    SlashCommands,
    TrialContext,
    TurnRequest,
    cost_usd,
)
from skillup.errors import SkillupError
from skillup.gateway.meter import Route
from skillup.ratelimit import REFUSALS
from skillup.schema.grade import CheckResult
from skillup.schema.profile import Profile
from skillup.schema.record import SessionFingerprint, TranscriptItem, TurnError, TurnRecord, utc_now
from skillup.trial.request import SimulatorMessage, TrialEvent
from skillup.workspace.disk import LargeTreeError, do_beside, list_tree, refuse_full_disk
from skillup.workspace.snapshot import BlobStore, Snapshot, diff_snapshots, take_snapshot

T = TypeVar("T")


@frozen
class SessionBackup:
    """A conversation's state between two messages."""

    files: dict[str, int] | None  # Sizes of the session files; None: they could not be read
    workspace: str | None
    session: Mapping[str, Any]  # The fields of the LiveSession


@mutable
class LiveSession:
    """The conversation's session and workspace as the latest message left them."""

    engine: Engine
    context: TrialContext
    blobs: BlobStore
    snapshot: Snapshot
    session: str | None = None
    fingerprint: SessionFingerprint | None = None
    messages: int = 0
    prompts: tuple[str, ...] = ()  # Of the session so far, but for commands of the CLI
    was_empty: bool = False  # Nobody put anything into workspace or home before the first message
    _backup: SessionBackup | None = None  # As it is now; None: a message was sent since

    async def send(self, request: TurnRequest, turn_number: int) -> TurnRecord:
        """Deliver one message and record what came of it. Errors are in the record."""
        self._backup = None
        started, started_at = time.monotonic(), utc_now()
        route = self.context.gateway
        if not request.slash_command:  # the CLI makes another message of it
            self.prompts = (*self.prompts, request.prompt)
        if route is not None:
            stem = request.stem or f"turn-{request.number:02d}"
            route.begin(stem, self.prompts, self.context.profile.retries)
        found = await call_engine(
            lambda: self._deliver(request), "the turn could not be run", self.context.workspace
        )
        outcome = EngineTurn(self.session, error=found) if isinstance(found, TurnError) else found
        duration = round((time.monotonic() - started) * 1000)
        if route is not None:
            outcome = compared(outcome, route, self.context.profile)
        self.messages += 1
        self.fingerprint = outcome.fingerprint
        self.session = self.session or outcome.session
        changes, error = None, outcome.error
        root, before = self.context.workspace, self.snapshot
        try:
            self.snapshot = await look_at(root, self.blobs, before)
            small = before.is_small and self.snapshot.is_small
            changes = await do_beside(small, diff_snapshots, before, self.snapshot, self.blobs)
        except OSError as trouble:
            what = "the workspace could not be looked at after the turn"
            error = error or setup_error(trouble, what, root)
        record = TurnRecord(
            turn_number=turn_number,
            status="completed" if error is None else "error",
            reason="" if error is None else error.message,
            content=request.prompt,
            response=outcome.response,
            transcript=list(outcome.items),
            session_id=outcome.session,
            session_verified=outcome.session_verified,
            session=outcome.fingerprint,
            usage=outcome.usage,
            cost_usd=outcome.cost_usd,
            model=outcome.model,
            started_at=started_at,
            duration_ms=duration,
            changes=changes,
            unseen=list(self.snapshot.unseen),
            notes=[*outcome.notices, *self.snapshot.notes],
            unknown_events=outcome.unknown_events,
            unread_lines=outcome.unread_lines,
            workspace=str(root),
            slash_command=request.slash_command,
            process=outcome.process,
            traffic=outcome.traffic,
            error=error,
        )
        # Not as an argument: all of a long list would be looked at, and copied.
        files = None if changes is None else self.snapshot.files
        return record.model_copy(update={"files": files})

    async def close(self) -> None:
        """Ends the process that was kept for the next message; that would resume the session."""
        if self.context.live is not None:
            await self.context.live.end()
        await self.context.box.close()
        if self.context.gateway is not None:
            self.context.gateway.is_open = False

    async def _deliver(self, request: TurnRequest) -> EngineTurn | TurnError:
        if request.slash_command and not (
            isinstance(self.engine, SlashCommands) and self.engine.is_slash_command(request.prompt)
        ):
            command = request.prompt.split()[0] if request.prompt.split() else ""
            what = f"{self.engine.name} has no slash command `{command}`"
            fix = "take `slash_command: true` out to send it as text, or use another engine"
            return TurnError(kind="unsupported", message=f"{what}; {fix}")
        if self.session is None:
            return await self.engine.start(request, self.context)
        if not isinstance(self.engine, SessionResumer):
            return no_resume_error(self.engine.name)
        return await self.engine.resume(self.session, request, self.context)

    async def backup(self) -> SessionBackup:
        """The state as it is now; nothing that this does changes what the agent finds."""
        if self._backup is None:
            files, workspace = None, None
            if self.context.profile.isolation != "shared":
                try:
                    files, workspace = self._look_back(small=True)
                except LargeTreeError:
                    files, workspace = await anyio.to_thread.run_sync(self._look_back)
            state = {name: getattr(self, name) for name in _BACKED_UP}
            self._backup = SessionBackup(files, workspace, state)
        return self._backup

    def _look_back(self, *, small: bool = False) -> tuple[dict[str, int] | None, str | None]:
        if self.was_empty and not self.messages and self.session is None:
            return {}, _OF_AN_EMPTY_ONE
        files = None
        with suppress(OSError):
            files = session_files(self.context.home, small=small)
        return files, workspace_signature(self.context.workspace, small=small)

    async def restore(self, backup: SessionBackup) -> str | None:
        """Make all as it was; if that cannot be, why."""
        if self.context.profile.isolation == "shared":
            return "with `isolation: shared` the agent's session cannot be put back"
        if backup.files is None:
            return "the agent's session could not be looked at before the message"
        home, workspace, before = self.context.home, self.context.workspace, backup.session
        why = await anyio.to_thread.run_sync(
            put_back, home, workspace, backup.files, backup.workspace, before["fingerprint"]
        )
        if why is None:
            for name, value in before.items():
                setattr(self, name, value)
            self._backup = backup
        return why


async def look_at(root: Path, blobs: BlobStore, before: Snapshot | None = None) -> Snapshot:
    """A snapshot; of a large workspace it is taken beside the event loop.

    Whoever is cancelled does not wait for its end.
    """
    with suppress(LargeTreeError):
        return take_snapshot(root, blobs, before, small=True)
    cancelled = threading.Event()
    take = partial(take_snapshot, root, blobs, before, stop=cancelled.is_set)
    try:
        return await anyio.to_thread.run_sync(take, abandon_on_cancel=True)
    finally:
        cancelled.set()


_BACKED_UP = ("snapshot", "session", "fingerprint", "messages", "prompts")
_OF_AN_EMPTY_ONE = hashlib.sha256().hexdigest()


def workspace_signature(root: Path, *, small: bool = False) -> str | None:
    """Of a workspace with its `.git`; None if it cannot be looked at, or is no directory.

    Raises LargeTreeError where it should be `small`; so does :func:`session_files`.
    """
    digest = hashlib.sha256()
    try:
        if os.path.islink(root):  # noqa: PTH114 - done for every message
            return None
        for entry in sorted(list_tree(root, small=small), key=lambda entry: entry.path):
            # A directory's times change with files that come and go, as git's locks do.
            facts = [entry.path, entry.kind]
            if entry.kind == "link":
                facts.append(os.readlink(root / entry.path))  # noqa: PTH115 - its exact spelling
            elif entry.kind == "file":
                facts.append(str(entry.status.st_size))
                # `git status`, by which agents look, refreshes what the index knows of times.
                if not f"/{entry.path}".endswith("/.git/index"):
                    mode = stat.S_IMODE(entry.status.st_mode)
                    facts.append(f"{entry.status.st_mtime_ns} {mode}")
            digest.update(os.fsencode("\0".join((*facts, ""))))
    except OSError:
        return None
    return digest.hexdigest()


def session_files(home: Path, *, small: bool = False) -> dict[str, int]:
    """The agent's session files below its home: path, relative to `home` -> size in bytes.

    All CLIs keep a session as lines of JSON that are only ever appended to.
    """
    return {
        entry.path: entry.status.st_size
        for entry in list_tree(home, on_error=lambda *_: None, small=small)
        if entry.kind == "file" and entry.path.endswith(".jsonl")
    }


def put_back(
    home: Path,
    workspace: Path,
    files: Mapping[str, int],
    signature: str | None,
    session: SessionFingerprint | None,
) -> str | None:
    """Cut the session back to `files`, where the workspace is as it was; why not, if it cannot be.

    Whether it then holds exactly the bytes of `session` is checked.
    """
    if signature is None or workspace_signature(workspace) != signature:
        return "the workspace was changed meanwhile"
    try:
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
    except OSError as refused:
        return f"the agent's session could not be put back: {refused.strerror or refused}"
    return f"the file of session {session.session_id} does not hold exactly its turns"


class AgentWatcher:
    """The `Progress` of a trial: passes on what its agent does."""

    def __init__(self, job: str, notify: Callable[[TrialEvent], None]) -> None:
        self._job, self._notify = job, notify

    def __call__(self, text: str) -> None:
        self._notify(TrialEvent(self._job, "activity", text=text))

    def item(self, item: TranscriptItem) -> None:
        self._notify(TrialEvent(self._job, "item", item=item))


def compared(outcome: EngineTurn, route: Route, profile: Profile) -> EngineTurn:
    """A turn, completed by what passed the gateway, with what the two do not agree on."""
    traffic, told, error = route.end(), outcome.usage, outcome.error
    if not traffic.requests + traffic.side_requests:
        return outcome  # it went another way, or nowhere
    notices, differs, seen = list(outcome.notices), False, traffic.total()
    if error is not None:
        wait = error.retry_after_seconds
        if traffic.refused and error.kind in REFUSALS:
            wait = traffic.refused[-1].retry_after_seconds or wait
        evidence = "\n".join(filter(None, (error.evidence, route.trouble)))
        error = error.model_copy(update={"retry_after_seconds": wait, "evidence": evidence})
    elif told and seen and traffic.usage:
        differs = not told.agrees(traffic.usage) and not told.agrees(seen)
        said = f"{told.input_tokens} input and {told.output_tokens} output tokens"
        counted = f"{seen.input_tokens} and {seen.output_tokens}"
        notices += [f"the CLI reports {said}, its model's provider {counted}"] * differs
    if traffic.continued is False:
        what = "not all earlier messages were in the turn's requests to the model"
        notices.append(f"{what}: the CLI had shortened the conversation, or lost them")
    cost = cost_usd(profile, outcome.model, seen)
    return replace(
        outcome,
        notices=notices,
        error=error,
        usage=told if told and told.tokens() else seen or told,  # CLIs say 0 of what broke off
        cost_usd=outcome.cost_usd or cost or outcome.cost_usd,
        traffic=traffic.model_copy(update={"cost_usd": cost, "usage_differs": differs}),
    )


# Errors as data.


async def call_engine(
    call: Callable[[], Awaitable[T]], what: str, path: Path | None = None
) -> T | TurnError:
    """What `call` yields. A defect is an error of the trial: the run goes on, but for SkillupError.

    `what` could not be done where the system refuses; `path` is named if the error names none.
    """
    try:
        return await call()
    except SkillupError:
        raise
    except OSError as refused:
        return setup_error(refused, what, path)
    except Exception as defect:  # noqa: BLE001 - see above
        return internal_error(defect)


def setup_error(refused: OSError, what: str, path: Path | None = None) -> TurnError:
    """`what` failed for a reason of the system's. Raises FullDiskError if the disk is full."""
    refuse_full_disk(refused, path)
    place = refused.filename or path
    why = f"{refused.strerror or refused}{f' ({place})' if place else ''}"
    if refused.errno in (errno.EMFILE, errno.ENFILE):
        why += "; more open files are needed: raise `ulimit -n`, or run fewer trials at once (-j)"
    message = f"{what}: {why}"
    return TurnError(kind="setup", message=message, evidence=traceback.format_exc(limit=-6))


def internal_error(defect: Exception) -> TurnError:
    """For a defect that is being handled: ours, or an engine's."""
    cause: BaseException = defect
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
        return setup_error(cause, "the turn could not be run")
    # A defect of an adapter is found there: skillup.engines.NAME.…
    frames = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(cause.__traceback__)]
    adapters = [n for n in frames if n.startswith("skillup.engines.") and n.count(".") > 2]
    where = f" in {adapters[-1]}" if adapters else ""
    message = f"skillup itself failed{where}: {type(defect).__name__}: {defect}; please report it"
    return TurnError(kind="internal", message=message, evidence=traceback.format_exc(limit=-6))


def no_resume_error(engine: str) -> TurnError:
    """An engine cannot go on with a session, and the case has several messages."""
    what = f"{engine} cannot resume a session, and this case has several turns"
    fix = "use another engine, or set `on_no_resume: single_shot` in eval.yaml"
    return TurnError(kind="no_resume", message=f"{what}; {fix}")


def not_sent(
    number: int, content: str, reason: str, *, error: TurnError | None = None
) -> TurnRecord:
    """The record of a message that the agent was not asked: skipped, or stopped by an error."""
    status = "skipped" if error is None else "error"
    return TurnRecord(
        turn_number=number, status=status, reason=reason, content=content, error=error
    )


def unwritten(number: int, message: SimulatorMessage, content: str = "") -> TurnRecord:
    """The turn whose message was not written; `content`: the case's instruction for it, if any."""
    error = message.error or TurnError(kind="judge", message="the simulated user wrote nothing")
    turn = not_sent(number, content, error.message, error=error)
    return turn.model_copy(update={"source": "simulator", "simulator": message.info})


def first_error(results: Sequence[CheckResult], what: str) -> TurnError | None:
    """Of the first check that could not be evaluated; `what` has a place for its name.

    To go on as if it had passed, or failed, would make a verdict of a judge's trouble.
    """
    broken = next((result for result in results if result.error is not None), None)
    if broken is None:
        return None
    text = f"{what.format(broken.name)}: {broken.error}"
    return TurnError(kind=broken.error_kind or "judge", message=text)


def with_error(turn: TurnRecord, error: TurnError) -> TurnRecord:
    return turn.model_copy(update={"status": "error", "reason": error.message, "error": error})
