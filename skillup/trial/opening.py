"""What comes before a conversation: is it possible, the workspace, the past in the session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from skillup.engines.base import SessionResumer
from skillup.load.unsupported import too_many_turns, unsupported_in_case, unsupported_in_suite
from skillup.schema.conversation import Turn
from skillup.schema.grade import Judging
from skillup.schema.record import EngineInfo, Record, TurnError, TurnRecord
from skillup.schema.templates import UnresolvedNameError
from skillup.trial.history import past_of
from skillup.trial.message import LiveSession, no_resume_error, now, system_of
from skillup.trial.prepare import prepare
from skillup.trial.request import TrialRequest
from skillup.trial.seeding import (
    as_template,
    place_history,
    unanswered_problem,
    with_unanswered,
)
from skillup.trial.simulated import simulation_problem


@dataclass(slots=True)
class Opened:
    """A trial whose conversation can be held, or be gone on with."""

    request: TrialRequest
    record: Record
    """What there is of it so far, without turns."""
    live: LiveSession
    turns: Sequence[Turn]
    """All turns of the case."""
    variables: dict[str, str]
    held: Sequence[TurnRecord] = ()
    """The turns that were held before this session was forked off."""
    held_seconds: float = 0.0
    """How long they took; the conversation's own limit is over all of it."""
    earlier_ms: int = 0
    """The same, with the preparations."""
    judging: Judging | None = None
    """What judges took meanwhile, in a part of the conversation that another process held."""


async def open_trial(request: TrialRequest, record: Record) -> Opened | Record:
    """Make everything that the first turn needs; a Record, with its error, if that cannot be."""
    case = request.job.loaded.case
    suite = request.job.suite.suite
    missing = [*unsupported_in_suite(suite), *unsupported_in_case(case)]
    if missing:
        what = "; ".join(dict.fromkeys(message for _, message in missing))
        return _refused(record, TurnError(kind="unsupported", message=what))
    excess = too_many_turns(case)
    if excess is not None:
        return _refused(record, TurnError(kind="max_turns", message=excess))
    unplayable = simulation_problem(request)
    if unplayable is not None:
        return _refused(record, unplayable)
    turns = case.input.all_turns()
    if len(turns) > 1 and not isinstance(request.engine, SessionResumer):
        if suite.on_no_resume != "single_shot":
            return _refused(record, no_resume_error(request.engine.name))
        turns = [_joined(turns)]
        record = record.model_copy(update={"execution_mode": "single_shot"})
    given = {**case.vars, **request.variables}
    try:
        past = await anyio.to_thread.run_sync(past_of, case.input, given, abandon_on_cancel=True)
        system_of(case.input, {**given, **past.variables})
    except UnresolvedNameError as missing:
        return _refused(record, TurnError(kind="template", message=f"`input`: {missing}"))
    if past.miss is not None:
        return _refused(record, TurnError(kind="capture", message=past.miss))
    homeless = unanswered_problem(turns, past.unanswered)
    if homeless is not None:
        return _refused(record, homeless)
    prepared = await prepare(request, past.variables)
    if isinstance(prepared, TurnError):
        return _refused(record, prepared)
    record = record.model_copy(
        update={
            "skills": list(prepared.skills),
            "references": prepared.references,
            "initial_files": dict(prepared.snapshot.files),
            "initial_variables": prepared.variables,
            "notes": list(past.notes),
        }
    )
    live = LiveSession(request.engine, prepared.context, prepared.blobs, prepared.snapshot)
    if past.items:
        placed = await place_history(request.engine, past.items, prepared.context)
        if placed.error is not None:
            return _refused(record, placed.error)
        live.session, live.fingerprint = placed.session, placed.fingerprint
        notes = [*past.notes, *placed.notices]
        record = record.model_copy(update={"history": list(past.items), "notes": notes})
    turns = with_unanswered(turns, past.unanswered)
    return Opened(request, record, live, turns, dict(prepared.variables))


def new_record(request: TrialRequest) -> Record:
    """The record of a job of which nothing has happened yet."""
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
        branch_of=job.loaded.branch_of,
        started_at=now(),
        duration_ms=0,
    )


def ended(record: Record, clock: float, *, earlier_ms: int = 0, **update: Any) -> Record:
    """`record`, with all that is to be said at its end; `clock` is when it began (monotonic)."""
    duration = max(0, earlier_ms + round((time.monotonic() - clock) * 1000))
    return record.model_copy(update={"duration_ms": duration, **update})


def _refused(record: Record, error: TurnError) -> Record:
    return record.model_copy(update={"error": error})


def _joined(turns: list[Turn]) -> Turn:
    """All messages as one, for an engine that cannot resume (the suite asked for it)."""
    parts = [f"Message {n}:\n{as_template(turn)}" for n, turn in enumerate(turns, start=1)]
    intro = f"These are {len(turns)} messages. Work through them in order."
    return Turn(content="\n\n".join([intro, *parts]))
