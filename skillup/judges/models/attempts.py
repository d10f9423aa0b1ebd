"""Requests made with patience: a limit of time, several attempts, only so many at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
from pydantic_ai.exceptions import ModelAPIError, ModelRequestTimeout

from skillup.judges.models.errors_of_models import is_temporary
from skillup.judges.models.patience import Patience

T = TypeVar("T")


@dataclass(slots=True)
class Attempts:
    """The attempts at the requests of one question.

    They are counted here and not in the provider's client, so that they are the same with every
    provider, and none of the places is taken while one waits.
    """

    limiter: anyio.CapacityLimiter
    patience: Patience
    seconds: float
    """How long each attempt may take, once it is its turn."""
    made: int = 0
    """At the latest request."""

    async def make(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        """What `request` yields. Raises its last ModelAPIError once patience is at its end."""
        self.made = 0
        while True:
            self.made += 1
            try:
                return await self._once(model, request)
            except ModelAPIError as error:
                wait = None
                if is_temporary(error):
                    wait = self.patience.wait_before(self.made + 1, error.retry_after)
                if wait is None:
                    raise
            await anyio.sleep(wait)

    async def _once(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        async with self.limiter:
            try:
                with anyio.fail_after(self.seconds):
                    return await request()
            except TimeoutError as error:
                raise ModelRequestTimeout(model, self.seconds) from error
