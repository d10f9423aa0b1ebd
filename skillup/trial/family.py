"""Turns that several trials have in common: held once, then every trial goes on from a fork."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import anyio.to_thread

from skillup.schema.grade import Judging
from skillup.schema.record import Record, TurnRecord
from skillup.trial.conversation import Conversation
from skillup.trial.forking import INHERITED, copy_streams, fork_trial
from skillup.trial.hold import close_trial, conversation_of, whatever_happens
from skillup.trial.opening import Opened, ended, new_record, open_trial
from skillup.trial.request import TrialRequest

_OF_THE_START = (*INHERITED, "notes")


@dataclass(slots=True)
class Shared:
    """A conversation as far as it is shared; no more is said in it."""

    opened: Opened | None
    conversation: Conversation | None
    refused: Record | None
    """The record that says why the turns were not held, if an error kept them back."""
    held_seconds: float = 0.0
    earlier_ms: int = 0
    judging: Judging | None = field(default=None)
    """What judges took while it was held."""

    @property
    def ended(self) -> bool:
        """Something has ended the conversation: there is nothing to fork."""
        return self.conversation is None or self.refused is not None or self.conversation.ended

    @property
    def turns(self) -> Sequence[TurnRecord]:
        """As far as it was held, what was held before a fork included."""
        if self.conversation is not None:
            return self.conversation.turns
        return self.refused.turns if self.refused is not None else ()

    async def record_of(self, request: TrialRequest) -> Record:
        """The record of a trial that goes no further, because the shared turns ended it."""
        clock = time.monotonic()
        record = new_record(request)
        began, conversation = self.opened, self.conversation
        if began is None or conversation is None or self.refused is not None:
            known = {} if self.refused is None else _start_of(self.refused, "error", "turns")
            return ended(record, clock, earlier_ms=self.earlier_ms, **known)
        record = record.model_copy(update=_start_of(began.record, "references"))
        # What ended the conversation is known to it: it says why the rest was not sent.
        rest = copy.copy(conversation)
        rest.turns = list(conversation.turns)
        rest.record = record
        turns = request.job.loaded.case.input.all_turns()
        waited = rest.waited

        async def finish() -> Record:
            raw_dir = began.live.context.raw_dir
            await anyio.to_thread.run_sync(copy_streams, raw_dir, request.raw_dir)
            await rest.hold(turns)
            opened = replace(began, request=request, earlier_ms=self.earlier_ms)
            found = await close_trial(opened, rest, clock, waited_before=waited)
            return found.model_copy(update={"judging": None})

        return await whatever_happens(finish, record, clock, earlier_ms=self.earlier_ms)

    async def fork(self, request: TrialRequest) -> Opened | Record:
        """The trial of `request`, ready to go on; a Record, with its error, if it cannot be."""
        opened, conversation = self.opened, self.conversation
        if opened is None or conversation is None:
            return await self.record_of(request)
        clock = time.monotonic()
        forks: list[Opened] = []

        async def fork() -> Record:
            forked = await fork_trial(opened, conversation, request)
            if isinstance(forked, Record):
                return ended(forked, clock, earlier_ms=self.earlier_ms)
            forked.held_seconds, forked.earlier_ms = self.held_seconds, self.earlier_ms
            forks.append(forked)
            return forked.record

        record = await whatever_happens(
            fork, new_record(request), clock, earlier_ms=self.earlier_ms
        )
        return forks[0] if forks else record


async def hold_shared(request: TrialRequest, count: int, fork: Opened | None = None) -> Shared:
    """Hold the first `count` turns of the job, in a workspace and a session of their own.

    `fork` is where they go on from if some of them have been held before. Raises as `hold_trial`.
    """
    clock = time.monotonic()
    found = Shared(fork, None, None)
    record = fork.record if fork is not None else new_record(request)

    async def hold() -> Record:
        opened = fork or await open_trial(request, record)
        if isinstance(opened, Record):
            found.refused = opened
            return opened
        found.opened, found.conversation = opened, conversation_of(opened)
        began = time.monotonic()
        await found.conversation.hold(opened.turns, until=count)
        took = time.monotonic() - began - found.conversation.waited
        found.held_seconds = opened.held_seconds + max(0.0, took)
        return opened.record

    ended_as = await whatever_happens(hold, record, clock)
    if ended_as.error is not None:
        found.refused = ended_as
    before = fork.earlier_ms if fork is not None else 0
    waited = found.conversation.waited if found.conversation is not None else 0.0
    found.earlier_ms = before + round((time.monotonic() - clock - waited) * 1000)
    found.judging = request.judge.judging() if request.judge is not None else None
    return found


def _start_of(record: Record, *more: str) -> dict[str, object]:
    return {name: getattr(record, name) for name in (*_OF_THE_START, *more)}
