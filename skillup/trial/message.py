"""One message to the agent and its answer: the engine is asked, the workspace looked at."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio.to_thread

from skillup.engines.base import (
    Engine,
    SessionRef,
    SessionResumer,
    TrialContext,
    TurnOutcome,
    TurnRequest,
)
from skillup.schema.record import SessionFingerprint, TurnError, TurnRecord, WorkspaceChanges
from skillup.workspace import BlobStore, Snapshot, diff_snapshots, take_snapshot


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
        changes = await self._look()
        return TurnRecord(
            turn_number=request.number,
            status="completed" if outcome.error is None else "error",
            reason="" if outcome.error is None else outcome.error.message,
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
            files=dict(self.snapshot.files),
            notes=[*outcome.notices, *self.snapshot.notes],
            unknown_events=outcome.unknown_events,
            process=outcome.process,
            error=outcome.error,
        )

    async def _ask(self, request: TurnRequest) -> TurnOutcome:
        """A defect of an engine's is an `internal` error, as data: it must not end the run."""
        try:
            if self.session is None:
                return await self.engine.start(request, self.context)
            if not isinstance(self.engine, SessionResumer):
                return TurnOutcome(session=self.session, error=no_resume_error(self.engine.name))
            return await self.engine.resume(self.session, request, self.context)
        except Exception as defect:  # noqa: BLE001 - see above
            message = f"skillup itself failed: {type(defect).__name__}: {defect}; please report it"
            evidence = traceback.format_exc(limit=-6)
            error = TurnError(kind="internal", message=message, evidence=evidence)
            return TurnOutcome(session=self.session, error=error)

    async def _look(self) -> WorkspaceChanges:
        root, before = self.context.workspace, self.snapshot
        self.snapshot = await anyio.to_thread.run_sync(take_snapshot, root, self.blobs, before)
        return await anyio.to_thread.run_sync(diff_snapshots, before, self.snapshot, self.blobs)


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
