"""Sending a message, and sending it once more where the provider refused it."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence

import anyio.to_thread

from skillup.ratelimit import Throttle
from skillup.schema.record import ErrorKind, TurnError, TurnRecord, Usage, total_cost, total_usage
from skillup.trial.artifacts import set_aside
from skillup.trial.message import LiveSession, not_sent
from skillup.trial.request import Deadline
from skillup.trial.state_backup import StateBackup

REFUSALS: frozenset[ErrorKind] = frozenset({"rate_limit", "overloaded", "quota"})
# The agent was answered, and its own limit ended the turn.
ANSWERED: frozenset[ErrorKind | None] = frozenset({None, "max_turns", "budget"})


class Sender:
    """Sends the messages of one conversation; without a throttle, once."""

    def __init__(
        self, throttle: Throttle | None, live: LiveSession, deadline: Deadline, keeper: StateBackup
    ) -> None:
        self._throttle = throttle
        self._live = live
        self._deadline = deadline
        self._keeper = keeper

    async def send(self, stem: str, once: Callable[[int], Awaitable[TurnRecord]]) -> TurnRecord:
        """What came of a message; `once(n)` sends it for the n-th time.

        Neither the waiting nor what was refused counts against the conversation's time limit.
        What refused messages took is in the turn's usage and cost. If the trial is left, the turn
        is an error of the kind `cancelled`; the throttle says that it was.
        """
        throttle = self._throttle
        if throttle is None:
            return await once(1)
        refused: list[TurnRecord] = []
        waited = 0.0
        while True:
            pause = await throttle.ready()
            if pause is None:
                text = "the run ended before the message was sent"
                return not_sent(0, "", text, error=TurnError(kind="cancelled", message=text))
            self._deadline.postpone(pause)
            waited += pause
            kept = await self._keeper.keep()
            began = time.monotonic()
            sent = await once(len(refused) + 1)
            self._keeper.sent()
            kind = sent.error.kind if sent.error is not None else None
            if sent.error is None or kind not in REFUSALS:
                if kind in ANSWERED:
                    throttle.accepted()
                return _told(sent, refused, waited)
            if throttle.refused(sent.error) is not None:
                return _told(sent, refused, waited)
            why = await self._keeper.put_back(kept)
            if why is not None:
                throttle.anew = why
                return _told(sent, refused, waited)
            refused.append(sent)
            raw_dir = self._live.context.raw_dir
            await anyio.to_thread.run_sync(set_aside, raw_dir, stem, "refused")
            self._deadline.postpone(time.monotonic() - began)


def _told(sent: TurnRecord, refused: Sequence[TurnRecord], waited: float) -> TurnRecord:
    """`sent`, with what was refused before."""
    seconds = f"{math.ceil(waited)} s"
    if not refused:
        if waited < 1:
            return sent
        note = f"the message was sent after {seconds}: the provider had refused others"
        return sent.model_copy(update={"notes": [*sent.notes, note]})
    kinds = ", ".join(dict.fromkeys(turn.error.kind for turn in refused if turn.error))
    times = "once" if len(refused) == 1 else f"{len(refused)} times"
    note = f"the provider refused the message {times} ({kinds}); it was sent again after {seconds}"
    tries = [*refused, sent]
    usage = total_usage(turn.usage for turn in tries)
    return sent.model_copy(
        update={
            "notes": [*sent.notes, note],
            "usage": Usage(**usage) if usage else None,
            "cost_usd": total_cost(turn.cost_usd for turn in tries),
        }
    )
