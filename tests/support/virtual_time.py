"""Time that passes only when somebody sleeps; see :class:`skillup.ratelimit.RateLimiter`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypedDict

import anyio
import anyio.lowlevel


class Clock(TypedDict):
    """As slow-downs take it."""

    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


class VirtualTime:
    """A clock that jumps to the next moment that somebody sleeps for, once all tasks wait."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, anyio.Event]] = []

    @property
    def both(self) -> Clock:
        return Clock(clock=self.clock, sleep=self.sleep)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Only within :meth:`passing` does it ever end."""
        sleeper = (self.now + seconds, anyio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:

            async def pass_on() -> None:
                while True:
                    for _ in range(50):  # all that can go on now does
                        await anyio.lowlevel.checkpoint()
                    if self._sleepers:
                        first = min(self._sleepers, key=lambda sleeper: sleeper[0])
                        self._sleepers.remove(first)
                        self.now = max(self.now, first[0])
                        first[1].set()

            group.start_soon(pass_on)
            yield
            group.cancel_scope.cancel()


class HurriedTime:
    """A clock that jumps at once, whoever else is at work; `slept` are the jumps, in seconds."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    @property
    def both(self) -> Clock:
        return Clock(clock=lambda: sum(self.slept), sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()
