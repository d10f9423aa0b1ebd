"""A trial from its empty workspace to its record."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio.to_thread

from skillup.errors import SkillupError
from skillup.schema.record import Record, TurnError
from skillup.schema.suite import lead_of
from skillup.trial.artifacts import collect_artifacts
from skillup.trial.conversation import LiveConversation
from skillup.trial.history import turns_of
from skillup.trial.request import Interruption, TrialRequest, TrialResult
from skillup.trial.session import internal_error, setup_error
from skillup.trial.setup import OpenTrial, ended, new_record, open_trial
from skillup.workspace.disk import refuse_without_room


async def run_trial(request: TrialRequest, resumed: OpenTrial | None = None) -> TrialResult:
    """Run the whole conversation of one job, or what is left of one that was `resumed` or forked.

    Never raises for what goes wrong within it. Raises RunDirectoryError if the run's own directory
    fails: then no trial can be kept. Raises FullDiskError if the trial has filled its disk, or
    somebody else has: then what came of it, an error or a verdict, says nothing of the agent.
    """
    clock = time.monotonic()
    record = resumed.record if resumed is not None else new_record(request)
    earlier_ms = resumed.earlier_ms if resumed is not None else 0
    interruption: Interruption | None = None

    async def run() -> Record:
        nonlocal interruption
        case = request.job.loaded.case
        if case.input.transcript is not None:
            known = {**case.vars, **request.variables}
            turns = turns_of(case.input.transcript)
            return ended(record, clock, turns=turns, initial_variables=known)
        opened = resumed or await open_trial(request, record)
        if isinstance(opened, Record):
            return ended(opened, clock)
        conversation = LiveConversation(opened, clock)
        lead = lead_of(case)
        try:
            if lead is not None:
                await conversation.run_led(lead, opened.turns[len(opened.done) :])
            else:
                await conversation.run(opened.turns)
        finally:
            interruption = conversation.interruption
        return await close_trial(conversation, clock, opened.earlier_ms)

    result = await record_on_error(run, record, clock, earlier_ms=earlier_ms)
    refuse_without_room(request.scratch)
    return TrialResult(result, interruption)


async def record_on_error(
    run: Callable[[], Awaitable[Record]], record: Record, clock: float, *, earlier_ms: int = 0
) -> Record:
    """What `run` makes of it; if it raises, `record` with the error that explains it.

    Errors of skillup's own (SkillupError) end the run: they are let through.
    """
    try:
        return await run()
    except SkillupError:
        raise
    except OSError as refused:
        error = setup_error(refused, "the trial could not be run")
    except Exception as defect:  # noqa: BLE001 - the other trials of the run must go on
        error = internal_error(defect)
    return ended(record, clock, earlier_ms=earlier_ms, error=error)


async def close_trial(conversation: LiveConversation, clock: float, earlier_ms: int) -> Record:
    """The record of a conversation that is over, and the artifacts beside it.

    What it waited for its provider does not count as its time.
    """
    record, live, request = conversation.record, conversation.session, conversation.request
    missed = await anyio.to_thread.run_sync(
        collect_artifacts,
        request.job.loaded.case.collect_artifacts,
        live.snapshot,
        live.context.workspace,
        live.blobs,
        request.artifacts_dir,
    )
    return ended(
        record,
        clock,
        earlier_ms=earlier_ms - round(conversation.waited * 1000),
        turns=conversation.turns,
        notes=[*record.notes, *missed],
        session_id=live.session,
        variables=dict(conversation.variables),
        simulated_end=conversation.simulated_end,
        judging=conversation.judging(),
    )


def record_without_turns(
    request: TrialRequest, *, skipped: str | None = None, error: TurnError | None = None
) -> Record:
    """The record of a job that was not begun: skipped for a reason, or stopped by an error."""
    return ended(new_record(request), time.monotonic(), skipped=skipped, error=error)
