"""One slow-down for all who ask the same provider: a refusal holds every one of them back.

After a refusal nobody asks for a while (exponential backoff with full jitter: a time drawn between
0 and a bound that doubles with every refusal; M. Brooker, "Exponential Backoff And Jitter", AWS
Architecture Blog, 2015). Then requests are let through one at a time, until one is answered.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable

import anyio

FIRST_BOUND_SECONDS = 2.0
LARGEST_BOUND_SECONDS = 60.0


class SlowDown:
    """Of one provider in one run. Everything happens in one event loop."""

    def __init__(
        self,
        patience_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        lots: random.Random | None = None,
    ) -> None:
        """`patience_seconds`: so long is waited in all, with nothing accepted meanwhile.

        What requests themselves take until they are refused is no waiting.
        """
        self.patience_seconds = patience_seconds
        self._clock = clock
        self._sleep = sleep
        self._lots = lots or random.Random()  # noqa: S311 - no secret
        self._changed = anyio.Event()
        # Whoever was refused goes to the end: else one that always is would keep the others back.
        self._queue: deque[object] = deque()
        self._waited = 0.0
        """In slow-downs since something was accepted."""
        self._doubled = 0
        self._next_at: float | None = None
        self._interval = 0.0
        self._reason = ""
        self.slow_downs = 0
        """How many there were. A request that was sent before the latest tells nothing new."""
        self.accepted_at: float | None = None
        self.closed = False
        """Nobody is to ask this provider any more."""

    @property
    def now(self) -> float:
        """The clock's time, in seconds."""
        return self._clock()

    async def ready(self, tell: Callable[[str], None]) -> float | None:
        """Wait until a request may be made; how long that was. None: none is to be made."""
        ticket = object()
        self._queue.append(ticket)
        try:
            return await self._wait_for_turn(ticket, tell)
        finally:
            self._queue.remove(ticket)
            self._tell_all()

    async def _wait_for_turn(self, ticket: object, tell: Callable[[str], None]) -> float | None:
        began = self.now
        told = 0
        while not self.closed:
            if self._next_at is None:
                return self.now - began
            left = self._next_at - self.now
            if left <= 0 and self._queue[0] is ticket:
                self._next_at = self.now + self._interval
                return self.now - began
            if told != self.slow_downs:
                told = self.slow_downs
                tell(f"{self._reason}: waiting {max(1, math.ceil(left))} s")
            await self._pause(left if left > 0 else self._interval)
        return None

    def refused(self, name: str, asked: float | None, sent_in: int, row: int = 0) -> str | None:
        """A request was refused for `name`; None: it may be made again, once it is `ready`.

        A text says why waiting is of no use any more. `asked`: how many seconds the provider asks
        to wait. `sent_in`: how many slow-downs there had been when the request was made. `row`: how
        many refusals whoever made it had before, one after the other.
        """
        left = self.patience_seconds - self._waited
        if left <= 0 or (asked is not None and asked > left):
            # Nobody need wait any longer to be told the same.
            self._next_at = None
            self._tell_all()
            patience = _minutes(self.patience_seconds)
            if left <= 0:
                return f"nothing was accepted in {patience} of waiting"
            return f"the provider wants {_minutes(asked or 0)} of waiting; it is given {patience}"
        if sent_in == self.slow_downs:
            bound = min(
                LARGEST_BOUND_SECONDS, FIRST_BOUND_SECONDS * 2 ** min(max(self._doubled, row), 9)
            )
            self._doubled += 1
            self._begin(name, min(left, max(asked or 0.0, self._lots.uniform(0, bound))), bound)
        elif asked is not None and self._next_at is not None:
            later = self.now + asked - self._next_at
            if later > 0:
                self._next_at += later
                self._waited += later
        return None

    def accept(self, sent_in: int) -> None:
        """A request was answered that was made when there had been `sent_in` slow-downs."""
        self.accepted_at = self.now
        self._waited = 0.0
        if self._next_at is not None and sent_in == self.slow_downs:
            # Not from the beginning: where many trials meet a tight limit it comes back at once.
            self._doubled = max(0, self._doubled - 1)
            self._next_at = None
            self._tell_all()

    def close(self) -> None:
        """Nobody is to ask any more; those that wait are told so."""
        self.closed = True
        self._tell_all()

    def _begin(self, name: str, seconds: float, interval: float) -> None:
        self.slow_downs += 1
        self._reason = name
        self._interval = interval
        self._next_at = self.now + seconds
        self._waited += seconds
        self._tell_all()

    def _tell_all(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _pause(self, seconds: float) -> None:
        """So long, or until something changes."""
        changed = self._changed

        async with anyio.create_task_group() as group:

            async def wait() -> None:
                await changed.wait()
                group.cancel_scope.cancel()

            group.start_soon(wait)
            await self._sleep(seconds)
            group.cancel_scope.cancel()


def _minutes(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.3g} min"
