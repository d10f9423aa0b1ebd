"""One turn: fill in the message, let the agent answer, look at the workspace, gate, capture."""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from skillup.checks import CheckContext, evaluate_set
from skillup.checks.capture import capture
from skillup.engines.base import (
    Engine,
    SessionRef,
    SessionResumer,
    TrialContext,
    TurnOutcome,
    TurnRequest,
)
from skillup.schema import templates
from skillup.schema.conversation import Turn
from skillup.schema.record import FileState, Record, TurnError, TurnRecord, WorkspaceChanges
from skillup.workspace import Snapshot

Look = Callable[[], Awaitable[tuple[Snapshot, WorkspaceChanges]]]
"""Takes a snapshot of the workspace; also says what has changed since the last one."""


@dataclass(slots=True)
class ConversationState:
    """What one turn hands to the next."""

    variables: dict[str, str]
    session: SessionRef | None = None
    last: TurnRecord | None = None


def render_message(
    turn: Turn, number: int, variables: dict[str, str]
) -> tuple[str, TurnError | None]:
    """The message to send; or, unresolved, as written, with the error that says which name."""
    content = turn.content or ""
    try:
        return templates.render(content, variables), None
    except templates.UnresolvedNameError as missing:
        message = f"turn {number}: {missing}; the agent was not called"
        return content, TurnError(kind="template", message=message)


async def ask(
    engine: Engine, request: TurnRequest, state: ConversationState, context: TrialContext
) -> TurnOutcome:
    """Let the engine hold the turn. A defect of the engine's is an `internal` error, as data."""
    try:
        if state.session is None:
            return await engine.start(request, context)
        if not isinstance(engine, SessionResumer):
            return TurnOutcome(session=state.session, error=no_resume_error(engine.name))
        return await engine.resume(state.session, request, context)
    except Exception as defect:  # noqa: BLE001 - one trial's defect must not end the run
        message = f"skillup itself failed: {type(defect).__name__}: {defect}; please report it"
        evidence = traceback.format_exc(limit=-6)
        error = TurnError(kind="internal", message=message, evidence=evidence)
        return TurnOutcome(session=state.session, error=error)


def no_resume_error(engine: str) -> TurnError:
    """An engine cannot go on with a session, and the case has several turns."""
    return TurnError(
        kind="no_resume",
        message=f"{engine} cannot resume a session, and this case has several turns; "
        "use another engine, or set `on_no_resume: single_shot` in eval.yaml",
    )


async def hold_turn(
    turn: Turn,
    request: TurnRequest,
    engine: Engine,
    state: ConversationState,
    context: TrialContext,
    look: Look,
    record_so_far: Record,
    read_file: Callable[[FileState], bytes | None],
) -> TurnRecord:
    """Hold one turn to its end and say what came of it. Updates `state`."""
    started = time.monotonic()
    started_at = now()
    outcome = await ask(engine, request, state, context)
    duration = round((time.monotonic() - started) * 1000)
    if outcome.session is not None and state.session is None:
        state.session = outcome.session
    snapshot, changes = await look()
    held = TurnRecord(
        turn_number=request.number,
        status="error" if outcome.error is not None else "completed",
        reason=outcome.error.message if outcome.error is not None else "",
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
        files=dict(snapshot.files),
        notes=[*outcome.notices, *snapshot.notes],
        unknown_events=outcome.unknown_events,
        process=outcome.process,
        error=outcome.error,
    )
    if outcome.error is None:
        held = _gate(held, turn, record_so_far, read_file)
    if held.status == "completed" and held.post_condition_passed is not False:
        held = _capture(held, turn, state)
    state.last = held
    return held


def _gate(
    held: TurnRecord,
    turn: Turn,
    record: Record,
    read_file: Callable[[FileState], bytes | None],
) -> TurnRecord:
    """Ask the post-condition, if there is one."""
    gate = turn.post_condition
    if gate is None:
        return held
    context = CheckContext(record, held, read_file)
    results = evaluate_set(gate, context, role="post_condition")
    broken = next((result for result in results if result.error), None)
    if broken is not None:
        message = f"the post-condition `{broken.name}` could not be evaluated: {broken.error}"
        error = TurnError(kind="judge", message=message)
        update: dict[str, Any] = {"status": "error", "reason": message, "error": error}
        return held.model_copy(update={**update, "post_condition": results})
    unmet = next((result for result in results if not result.passed), None)
    update = {"post_condition": results, "post_condition_passed": unmet is None}
    if unmet is not None:
        update["reason"] = f"post-condition not met: {unmet.name}: {unmet.found}"
        if gate.on_fail == "fail":
            update["status"] = "failed"
    return held.model_copy(update=update)


def _capture(held: TurnRecord, turn: Turn, state: ConversationState) -> TurnRecord:
    """Take the captures out of the turn; one that misses makes the turn an error."""
    if not turn.capture:
        return held
    found = capture(turn.capture, held)
    if found.miss is None:
        state.variables.update(found.values)
        return held.model_copy(update={"captures": found.values})
    message = f"turn {held.turn_number}: {found.miss.message}"
    error = TurnError(kind="capture", message=message, evidence=held.response[:2000])
    return held.model_copy(
        update={"status": "error", "reason": message, "error": error, "captures": found.values}
    )


def now() -> str:
    """This moment, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
