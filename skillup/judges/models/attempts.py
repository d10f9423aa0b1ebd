"""Requests made with patience: a limit of time, several attempts, only so many at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
from pydantic_ai.exceptions import ModelAPIError, ModelRequestTimeout

from skillup.judges.models.errors_of_models import is_refusal, is_temporary
from skillup.judges.models.patience import Patience
from skillup.trial.slow_down import SlowDown

T = TypeVar("T")


@dataclass(slots=True)
class Attempts:
    """The attempts at the requests of one question.

    They are counted here and not in the provider's client, so that they are the same with every
    provider, and none of the places is taken while one waits.
    """

    limiter: anyio.CapacityLimiter
    patience: Patience
    slow_down: SlowDown
    """That of the provider."""
    seconds: float
    """How long each attempt may take, once it is its turn."""
    made: int = 0
    """At the latest request."""

    async def make(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        """What `request` yields. Raises its last ModelAPIError once patience is at its end."""
        self.made = 0
        refused = 0
        while True:
            self.made += 1
            await self.slow_down.ready(_tell_nobody)
            sent_in = self.slow_down.slow_downs
            try:
                answer = await self._once(model, request)
            except ModelAPIError as error:
                if self.slow_down.patience_seconds > 0 and is_refusal(error):
                    if self.slow_down.refused("", error.retry_after, sent_in, refused) is not None:
                        raise
                    refused += 1
                    continue
                wait = None
                if is_temporary(error):
                    wait = self.patience.wait_before(self.made - refused + 1, error.retry_after)
                if wait is None:
                    raise
                await anyio.sleep(wait)
            else:
                self.slow_down.accept(sent_in)
                return answer

    async def _once(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        async with self.limiter:
            try:
                with anyio.fail_after(self.seconds):
                    return await request()
            except TimeoutError as error:
                raise ModelRequestTimeout(model, self.seconds) from error


def _tell_nobody(_: str) -> None:
    """Whoever waits for the answer sees that it is not there yet."""
