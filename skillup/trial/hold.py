"""A trial from its empty workspace to its record."""

from __future__ import annotations

import time
from typing import Any

import anyio.to_thread

from skillup.engines.base import SessionResumer, TurnRequest
from skillup.load.unsupported import unsupported_in_case
from skillup.schema.conversation import Turn
from skillup.schema.record import EngineInfo, Record, TurnError, TurnRecord, WorkspaceChanges
from skillup.trial.assertions import turn_failure
from skillup.trial.deadline import Deadline
from skillup.trial.prepare import Prepared, prepare
from skillup.trial.request import TrialEvent, TrialRequest
from skillup.trial.turn import (
    ConversationState,
    hold_turn,
    no_resume_error,
    now,
    render_message,
)
from skillup.workspace import Snapshot, diff_snapshots, take_snapshot


async def hold_trial(request: TrialRequest) -> Record:
    """Hold the whole conversation of one job. Never raises for what goes wrong within it."""
    clock = time.monotonic()
    case = request.job.loaded.case
    record = _new_record(request)
    missing = list(unsupported_in_case(case, request.job.suite.suite))
    if missing:
        what = "; ".join(dict.fromkeys(message for _, message in missing))
        return _ended(record, clock, error=TurnError(kind="unsupported", message=what))
    turns = case.input.all_turns()
    if len(turns) > 1 and not isinstance(request.engine, SessionResumer):
        if request.job.suite.suite.on_no_resume != "single_shot":
            return _ended(record, clock, error=no_resume_error(request.engine.name))
        turns = [_joined(turns)]
        record = record.model_copy(update={"execution_mode": "single_shot"})
    prepared = await prepare(request)
    if isinstance(prepared, TurnError):
        return _ended(record, clock, error=prepared)
    record = record.model_copy(
        update={
            "skills": list(prepared.skills),
            "references": prepared.references,
            "initial_files": dict(prepared.snapshot.files),
        }
    )
    held, state = await _converse(request, turns, prepared, record)
    return _ended(
        record,
        clock,
        turns=held,
        session_id=state.session.id if state.session else None,
        variables=state.variables,
    )


def record_without_turns(
    request: TrialRequest, *, skipped: str | None = None, error: TurnError | None = None
) -> Record:
    """The record of a job that was not begun: skipped for a reason, or kept back by an error."""
    return _ended(_new_record(request), time.monotonic(), skipped=skipped, error=error)


async def _converse(
    request: TrialRequest, turns: list[Turn], prepared: Prepared, record: Record
) -> tuple[list[TurnRecord], ConversationState]:
    case, job = request.job.loaded.case, request.job
    deadline = Deadline.after(case.timeout_seconds)
    state = ConversationState(variables=dict(prepared.variables))
    threshold = 1.0 if case.pass_threshold is None else case.pass_threshold
    snapshots = [prepared.snapshot]
    held: list[TurnRecord] = []
    stop: str | None = None

    async def look() -> tuple[Snapshot, WorkspaceChanges]:
        root, blobs, before = prepared.context.workspace, prepared.blobs, snapshots[-1]
        after = await anyio.to_thread.run_sync(take_snapshot, root, blobs, before)
        changes = await anyio.to_thread.run_sync(diff_snapshots, before, after, blobs)
        snapshots[-1] = after
        return after, changes

    for number, turn in enumerate(turns, start=1):
        if stop is not None:
            held.append(_not_sent(turn, number, "skipped", stop))
            continue
        request.notify(TrialEvent(job.id, "turn_started", number, len(turns)))
        message, unresolved = render_message(turn, number, state.variables)
        if unresolved is not None:
            held.append(_not_sent(turn, number, "error", unresolved.message, unresolved))
            stop = f"not sent: turn {number} met an error"
            continue
        limit = deadline.limit(turn.timeout_seconds or job.profile.timeout_seconds)
        turn_request = TurnRequest(
            number=number,
            prompt=message,
            slash_command=turn.slash_command,
            system=case.input.system,
            timeout_seconds=max(limit, 0.001),
            max_steps=case.max_turns or job.profile.max_turns,
            previous=state.last.session if state.last else None,
        )
        so_far = record.model_copy(update={"turns": held})
        latest = await hold_turn(
            turn, turn_request, request.engine, state, prepared.context, look, so_far,
            prepared.blobs.read_state,
        )  # fmt: skip
        held.append(latest)
        request.notify(TrialEvent(job.id, "turn_ended", number, len(turns), latest.status))
        stop = _why_stop(latest)
        if stop is None and case.on_turn_failure == "stop":
            so_far = record.model_copy(update={"turns": held})
            failure = turn_failure(latest, turn, so_far, prepared.blobs.read_state, threshold)
            stop = f"not sent: {failure} (on_turn_failure: stop)" if failure else None
    return held, state


def _why_stop(held: TurnRecord) -> str | None:
    """Why the conversation does not go on after `held`; None if it does."""
    if held.status == "error":
        return f"not sent: turn {held.turn_number} met an error"
    if held.status == "failed":
        return f"not sent: turn {held.turn_number} failed its post-condition"
    if held.post_condition_passed is False:
        return f"turn {held.turn_number}: {held.reason} (on_fail: skip_remaining)"
    return None


def _not_sent(
    turn: Turn, number: int, status: Any, reason: str, error: TurnError | None = None
) -> TurnRecord:
    return TurnRecord(
        turn_number=number, status=status, reason=reason, content=turn.content or "", error=error
    )


def _joined(turns: list[Turn]) -> Turn:
    """All messages as one, for an engine that cannot resume (the suite asked for it)."""
    parts = [f"Message {n}:\n{turn.content}" for n, turn in enumerate(turns, start=1)]
    intro = f"These are {len(turns)} messages. Work through them in order."
    return Turn(content="\n\n".join([intro, *parts]))


def _new_record(request: TrialRequest) -> Record:
    job, profile = request.job, request.job.profile
    return Record(
        run_id=request.run_id,
        suite=job.suite.name,
        suite_root=str(job.suite.root),
        case_id=job.loaded.case.id,
        case=job.loaded.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        engine=EngineInfo(
            profile=profile.name,
            adapter=profile.engine,
            command=list(profile.command or ()),
            version=request.engine_version,
            model=profile.model,
            permission=profile.permission,
            isolation=profile.isolation,
        ),
        variant=job.variant,
        trial=job.trial,
        attempt=request.attempt,
        started_at=now(),
        duration_ms=0,
    )


def _ended(record: Record, clock: float, **update: Any) -> Record:
    duration = round((time.monotonic() - clock) * 1000)
    return record.model_copy(update={"duration_ms": duration, **update})
