"""A trial from its empty workspace to its record."""

from __future__ import annotations

import time
from typing import Any

import anyio.to_thread

from skillup.engines.base import SessionResumer
from skillup.errors import SkillupError
from skillup.load.unsupported import unsupported_in_case, unsupported_in_suite
from skillup.schema.conversation import Turn
from skillup.schema.record import EngineInfo, Record, TurnError
from skillup.trial.artifacts import collect_artifacts
from skillup.trial.conversation import Conversation
from skillup.trial.history import past_of
from skillup.trial.message import LiveSession, internal_error, no_resume_error, now, trace
from skillup.trial.prepare import prepare
from skillup.trial.request import TrialRequest
from skillup.trial.seeding import place_history, with_unanswered
from skillup.trial.transcript import turns_of


async def hold_trial(request: TrialRequest) -> Record:
    """Hold the whole conversation of one job. Never raises for what goes wrong within it.

    Raises RunDirectoryError if the run's own directory fails: then no trial can be kept.
    """
    clock = time.monotonic()
    record = _new_record(request)
    try:
        return await _hold(request, record, clock)
    except SkillupError:
        raise
    except OSError as refused:
        why = f"{refused.strerror or refused}{f' ({refused.filename})' if refused.filename else ''}"
        message = f"the trial could not be held: {why}; see that the disk has room"
        error = TurnError(kind="setup", message=message, evidence=trace())
    except Exception as defect:  # noqa: BLE001 - the other trials of the run must go on
        error = internal_error(defect)
    return _ended(record, clock, error=error)


async def _hold(request: TrialRequest, record: Record, clock: float) -> Record:
    case = request.job.loaded.case
    suite = request.job.suite.suite
    if case.input.transcript is not None:
        return _ended(record, clock, turns=turns_of(case.input.transcript))
    missing = [*unsupported_in_suite(suite), *unsupported_in_case(case)]
    if missing:
        what = "; ".join(dict.fromkeys(message for _, message in missing))
        return _ended(record, clock, error=TurnError(kind="unsupported", message=what))
    turns = case.input.all_turns()
    if len(turns) > 1 and not isinstance(request.engine, SessionResumer):
        if suite.on_no_resume != "single_shot":
            return _ended(record, clock, error=no_resume_error(request.engine.name))
        turns = [_joined(turns)]
        record = record.model_copy(update={"execution_mode": "single_shot"})
    past = past_of(case.input)
    if past.miss is not None:
        return _ended(record, clock, error=TurnError(kind="capture", message=past.miss))
    prepared = await prepare(request, past.variables)
    if isinstance(prepared, TurnError):
        return _ended(record, clock, error=prepared)
    record = record.model_copy(
        update={
            "skills": list(prepared.skills),
            "references": prepared.references,
            "initial_files": dict(prepared.snapshot.files),
        }
    )
    live = LiveSession(request.engine, prepared.context, prepared.blobs, prepared.snapshot)
    if past.items:
        placed = await place_history(request.engine, past.items, prepared.context)
        if placed.error is not None:
            return _ended(record, clock, error=placed.error)
        live.session, live.fingerprint = placed.session, placed.fingerprint
        notes = [*past.notes, *placed.notices]
        record = record.model_copy(update={"history": list(past.items), "notes": notes})
    turns = with_unanswered(turns, past.unanswered)
    variables = dict(prepared.variables)
    held = await Conversation(request, live, variables, record).hold(turns)
    missed = await anyio.to_thread.run_sync(
        collect_artifacts,
        case.collect_artifacts,
        live.snapshot,
        prepared.context.workspace,
        prepared.blobs,
        request.artifacts_dir,
    )
    return _ended(
        record,
        clock,
        turns=held,
        notes=[*record.notes, *missed],
        session_id=live.session.id if live.session else None,
        variables=variables,
        judging=request.judge.judging() if request.judge is not None else None,
    )


def record_without_turns(
    request: TrialRequest, *, skipped: str | None = None, error: TurnError | None = None
) -> Record:
    """The record of a job that was not begun: skipped for a reason, or kept back by an error."""
    return _ended(_new_record(request), time.monotonic(), skipped=skipped, error=error)


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
