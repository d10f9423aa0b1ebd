"""One message to the agent and its answer: the engine is asked, the workspace looked at."""

from __future__ import annotations

import errno
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import (
    Engine,
    EngineTurn,
    SessionRef,
    SessionResumer,
    SlashCommands,
    TrialContext,
    TurnRequest,
)
from skillup.schema import templates
from skillup.schema.case import Input
from skillup.schema.record import SessionFingerprint, TurnError, TurnRecord, WorkspaceChanges
from skillup.workspace import BlobStore, Snapshot, diff_snapshots, take_snapshot
from skillup.workspace.failures import refuse_full_disk, what_to_do


@dataclass(slots=True)
class LiveSession:
    """The conversation's session and workspace as the latest message left them."""

    engine: Engine
    context: TrialContext
    blobs: BlobStore
    snapshot: Snapshot
    session: SessionRef | None = None
    fingerprint: SessionFingerprint | None = None
    messages: int = 0

    async def send(self, request: TurnRequest) -> TurnRecord:
        """Deliver one message and record what came of it. Errors are in the record."""
        started, started_at = time.monotonic(), now()
        outcome = await self._ask(request)
        duration = round((time.monotonic() - started) * 1000)
        self.messages += 1
        self.fingerprint = outcome.fingerprint
        if self.session is None:
            self.session = outcome.session
        seen = await self._look()
        changes = seen if isinstance(seen, WorkspaceChanges) else None
        error = outcome.error or (seen if isinstance(seen, TurnError) else None)
        return TurnRecord(
            turn_number=request.number,
            status="completed" if error is None else "error",
            reason="" if error is None else error.message,
            content=request.prompt,
            response=outcome.response,
            transcript=list(outcome.items),
            session_id=outcome.session.id if outcome.session else None,
            session_verified=outcome.session_verified,
            session=outcome.fingerprint,
            usage=outcome.usage,
            cost_usd=outcome.cost_usd,
            model=outcome.model,
            started_at=started_at,
            duration_ms=duration,
            changes=changes,
            files=None if changes is None else dict(self.snapshot.files),
            unseen=list(self.snapshot.unseen),
            notes=[*outcome.notices, *self.snapshot.notes],
            unknown_events=outcome.unknown_events,
            unread_lines=outcome.unread_lines,
            workspace=str(self.context.workspace),
            slash_command=request.slash_command,
            process=outcome.process,
            error=error,
        )

    async def _ask(self, request: TurnRequest) -> EngineTurn:
        """A defect of an engine's is an `internal` error, as data: it must not end the run."""
        if request.slash_command and not (
            isinstance(self.engine, SlashCommands) and self.engine.is_slash_command(request.prompt)
        ):
            error = no_slash_command_error(self.engine.name, request.prompt)
            return EngineTurn(session=self.session, error=error)
        try:
            if self.session is None:
                return await self.engine.start(request, self.context)
            if not isinstance(self.engine, SessionResumer):
                return EngineTurn(session=self.session, error=no_resume_error(self.engine.name))
            return await self.engine.resume(self.session, request, self.context)
        except OSError as refused:
            refuse_full_disk(refused, self.context.raw_dir)
            why = f"{refused.strerror or refused} ({refused.filename or self.context.raw_dir})"
            message = f"the turn's output could not be kept: {why}; {what_to_do(refused)}"
            error = TurnError(kind="setup", message=message, evidence=trace())
            return EngineTurn(session=self.session, error=error)
        except Exception as defect:  # noqa: BLE001 - see above
            return EngineTurn(session=self.session, error=internal_error(defect))

    async def _look(self) -> WorkspaceChanges | TurnError:
        root, before = self.context.workspace, self.snapshot
        try:
            self.snapshot = await look_at(root, self.blobs, before)
            return await anyio.to_thread.run_sync(diff_snapshots, before, self.snapshot, self.blobs)
        except OSError as trouble:
            refuse_full_disk(trouble, root)
            why = f"{trouble.strerror or trouble} ({trouble.filename or root})"
            message = f"the workspace could not be looked at after the turn: {why}"
            return TurnError(kind="setup", message=message)


def system_of(given: Input, variables: Mapping[str, str]) -> str | None:
    """The added system prompt, filled in once for all turns. Raises UnresolvedNameError."""
    if given.system is None or given.literal:
        return given.system
    return templates.render(given.system, variables)


async def look_at(root: Path, blobs: BlobStore, before: Snapshot | None = None) -> Snapshot:
    """A snapshot, taken beside the event loop; whoever is cancelled does not wait for its end."""
    given_up = threading.Event()
    take = partial(take_snapshot, root, blobs, before, stop=given_up.is_set)
    try:
        return await anyio.to_thread.run_sync(take, abandon_on_cancel=True)
    finally:
        given_up.set()


def internal_error(defect: Exception) -> TurnError:
    """For a defect that is being handled: ours, or an engine's."""
    cause: BaseException = defect
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
        message = f"the turn could not be held: {cause.strerror}; {what_to_do(cause)}"
        return TurnError(kind="setup", message=message, evidence=trace())
    message = f"skillup itself failed: {type(defect).__name__}: {defect}; please report it"
    return TurnError(kind="internal", message=message, evidence=trace())


def trace() -> str:
    """Where the exception that is being handled came from."""
    return traceback.format_exc(limit=-6)


def no_slash_command_error(engine: str, prompt: str) -> TurnError:
    """The case asks for a command of the CLI, and there is none to be had."""
    return TurnError(
        kind="unsupported",
        message=f"{engine} has no slash command `{prompt.split()[0] if prompt.split() else ''}`; "
        "take `slash_command: true` out to send it as text, or use another engine",
    )


def no_resume_error(engine: str) -> TurnError:
    """An engine cannot go on with a session, and the case has several messages."""
    return TurnError(
        kind="no_resume",
        message=f"{engine} cannot resume a session, and this case has several turns; "
        "use another engine, or set `on_no_resume: single_shot` in eval.yaml",
    )


def not_sent(
    number: int, content: str, reason: str, *, error: TurnError | None = None
) -> TurnRecord:
    """The record of a message that the agent was not asked: skipped, or kept back by an error."""
    status = "skipped" if error is None else "error"
    return TurnRecord(
        turn_number=number, status=status, reason=reason, content=content, error=error
    )


def now() -> str:
    """This moment, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
