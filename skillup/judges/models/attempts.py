"""Requests made with patience: a limit of time, several attempts, only so many at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
from pydantic_ai.exceptions import ModelAPIError, ModelRequestTimeout

from skillup.judges.models.errors_of_models import is_temporary, refusal_of
from skillup.judges.models.failures import CannotAskError
from skillup.judges.models.patience import Patience
from skillup.trial.pacing import Passage

T = TypeVar("T")


@dataclass(slots=True)
class Attempts:
    """The attempts at the requests of one question.

    They are counted here and not in the provider's client, so that they are the same with every
    provider, and none of the places is taken while one waits.
    """

    limiter: anyio.CapacityLimiter
    patience: Patience
    passage: Callable[[], Passage]
    """To the provider, for one request."""
    waits: bool
    """Refusals are waited out, with all others who ask there, and are no attempts."""
    seconds: float
    """How long each attempt may take, once it is its turn."""
    made: int = 0
    """At the latest request."""
    given_up: str = ""
    """Why the latest request, which was refused, is not made again."""

    async def make(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        """What `request` yields. Raises its last ModelAPIError once patience is at its end.

        Raises CannotAskError if the request is not to be made any more.
        """
        self.made, self.given_up = 0, ""
        refused = 0
        passage = self.passage()
        while True:
            if not await passage.ready():
                raise CannotAskError("the run has ended, and asks its provider nothing more")
            self.made += 1
            try:
                answer = await self._once(model, request)
            except ModelAPIError as error:
                refusal = refusal_of(error) if self.waits else None
                if refusal is not None:
                    why = await passage.refused(refusal)
                    if why is not None:
                        self.given_up = why
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
                await passage.accepted()
                return answer

    async def _once(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        async with self.limiter:
            try:
                with anyio.fail_after(self.seconds):
                    return await request()
            except TimeoutError as error:
                raise ModelRequestTimeout(model, self.seconds) from error
