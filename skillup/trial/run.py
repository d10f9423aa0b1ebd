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
from skillup.trial.message import internal_error, trace
from skillup.trial.request import TrialRequest
from skillup.trial.setup import (
    Opened,
    ended,
    new_record,
    open_trial,
)
from skillup.trial.simulated_conversation import run_simulated
from skillup.trial.transcript import turns_of
from skillup.workspace.failures import refuse_full_disk, refuse_without_room, what_to_do


async def run_trial(request: TrialRequest) -> Record:
    """Hold the whole conversation of one job. Never raises for what goes wrong within it.

    Raises RunDirectoryError if the run's own directory fails: then no trial can be kept. Raises
    FullDiskError if the trial has filled its disk, or somebody else has: then what came of it, an
    error or a verdict, says nothing of the agent.
    """
    clock = time.monotonic()
    record = new_record(request)

    async def hold() -> Record:
        transcript = request.job.loaded.case.input.transcript
        if transcript is not None:
            known = {**request.job.loaded.case.vars, **request.variables}
            return ended(record, clock, turns=turns_of(transcript), initial_variables=known)
        opened = await open_trial(request, record)
        if isinstance(opened, Record):
            return ended(opened, clock)
        return await _hold_rest(opened, clock)

    held = await record_on_error(hold, record, clock)
    refuse_without_room(request.scratch)
    return held


async def run_rest(opened: Opened) -> Record:
    """Hold what is left of a conversation that was forked off. Raises as :func:`run_trial`."""
    clock = time.monotonic()

    async def hold() -> Record:
        return await _hold_rest(opened, clock)

    held = await record_on_error(hold, opened.record, clock, earlier_ms=opened.earlier_ms)
    refuse_without_room(opened.request.scratch)
    return held


async def record_on_error(
    hold: Callable[[], Awaitable[Record]], record: Record, clock: float, *, earlier_ms: int = 0
) -> Record:
    """What `hold` makes of it; if it raises, `record` with the error that explains it.

    Errors of skillup's own (SkillupError) end the run: they are let through.
    """
    try:
        return await hold()
    except SkillupError:
        raise
    except OSError as refused:
        refuse_full_disk(refused)
        why = f"{refused.strerror or refused}{f' ({refused.filename})' if refused.filename else ''}"
        message = f"the trial could not be held: {why}; {what_to_do(refused)}"
        error = TurnError(kind="setup", message=message, evidence=trace())
    except Exception as defect:  # noqa: BLE001 - the other trials of the run must go on
        error = internal_error(defect)
    return ended(record, clock, earlier_ms=earlier_ms, error=error)


async def _hold_rest(opened: Opened, clock: float) -> Record:
    conversation = conversation_of(opened, clock)
    lead = lead_of(conversation.case)
    if lead is not None:
        await run_simulated(conversation, lead, opened.turns[len(opened.held) :])
    else:
        await conversation.hold(opened.turns)
    return await close_trial(opened, conversation, clock)


def conversation_of(opened: Opened, clock: float | None = None) -> LiveConversation:
    """The conversation, as far as it has been held; the trial began, or goes on, at `clock`."""
    before = opened.earlier_ms / 1000
    return LiveConversation(
        opened.request,
        opened.live,
        opened.variables,
        opened.record,
        opened.held,
        held_seconds=opened.held_seconds,
        began=(time.monotonic() if clock is None else clock) - before,
        judging=opened.judging,
    )


async def close_trial(
    opened: Opened, conversation: LiveConversation, clock: float, *, waited_before: float = 0.0
) -> Record:
    """The record of a conversation that is over, and the artifacts beside it.

    What it waited for its provider since `clock` does not count: that is all of it, but for the
    seconds `waited_before`.
    """
    request, live, record = opened.request, opened.live, conversation.record
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
        earlier_ms=opened.earlier_ms - round((conversation.waited - waited_before) * 1000),
        turns=conversation.turns,
        notes=[*record.notes, *missed],
        session_id=live.session.id if live.session else None,
        variables=dict(conversation.variables),
        simulated_end=conversation.simulated_end,
        judging=conversation.judging(),
    )


def record_without_turns(
    request: TrialRequest, *, skipped: str | None = None, error: TurnError | None = None
) -> Record:
    """The record of a job that was not begun: skipped for a reason, or kept back by an error."""
    return ended(new_record(request), time.monotonic(), skipped=skipped, error=error)
