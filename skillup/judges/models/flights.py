"""Work that several want at once is done once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.result: list[T] = []


class Flights(Generic[T]):
    """What is under way, by key. To be used in one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Flight[T]] = {}

    async def join(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The result of `work`, and whether it was someone else's with the same key.

        If whoever does it is cancelled, or fails, one of those who wait takes over.
        """
        while (flight := self._under_way.get(key)) is not None:
            await flight.landed.wait()
            if flight.result:
                return flight.result[0], True
        flight = self._under_way[key] = _Flight()
        try:
            result = await work()
            flight.result.append(result)
            return result, False
        finally:
            del self._under_way[key]
            flight.landed.set()
