"""One slow-down for all who ask the same provider: a refusal holds every one of them back.

After a refusal nobody asks for a while (exponential backoff with full jitter: a time drawn between
0 and a bound that doubles with every refusal; M. Brooker, "Exponential Backoff And Jitter", AWS
Architecture Blog, 2015). Then requests are let through one at a time, until one is answered.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import anyio

from skillup.schema.profile import Profile
from skillup.schema.record import TurnError

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


# Asking a provider together with all others: for judges and simulated users, as for messages.

Kind = Literal["model", "agent"]

PATIENCE_SECONDS = 600.0
"""How long rate limits and overload are waited out, where nobody says."""

MANY_REFUSALS = 8
"""So often in a row one request is refused, while others are not, before that is its error."""


USED_UP = "the allowance is used up"
NOT_WAITED = "refusals are not waited out (--rate-limit-wait 0)"


def refused_alone(times: int) -> str:
    """Why a request is not made again that was refused so often, while others were answered."""
    return f"it was refused {times} times, and others were not"


class Passage(Protocol):
    """One request's way to its provider: a refusal holds back all who go there."""

    async def ready(self) -> bool:
        """Wait until the request may be made; False: it is not to be made any more."""
        ...

    async def refused(self, error: TurnError) -> str | None:
        """The provider wants fewer requests; None: it may be made again, once it is `ready`.

        A text says why not. How long it wants to be left alone is read from the error.
        """
        ...

    async def accepted(self) -> None:
        """The request was answered."""
        ...


class Pacing(Protocol):
    """The ways to all providers; a passage is for one request, however often it is made."""

    @property
    def patience_seconds(self) -> float:
        """So long a provider may accept nothing; 0: a refusal is an error, as others are."""
        ...

    def of_model(self, base_url: str, key: str | None) -> Passage:
        """To a model, with its account."""
        ...

    def of_agent(self, profile: Profile) -> Passage:
        """To the account that a profile's CLI uses, to which trials send their messages, too."""
        ...


class OwnPacing:
    """:class:`Pacing` of whoever asks by himself: what is refused for too long is an error."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS, **more: Any) -> None:
        """`patience_seconds`: so long a provider may accept nothing; 0: refusals are errors.

        `more` is for each :class:`~skillup.ratelimit.slow_down.SlowDown`.
        """
        self._patience_seconds = patience_seconds
        self._more = more
        self._slow_downs: dict[tuple[Kind, str], SlowDown] = {}

    @property
    def patience_seconds(self) -> float:
        return self._patience_seconds

    def of_model(self, base_url: str, key: str | None) -> Passage:
        return self.passage("model", account_of_model(base_url, key))

    def of_agent(self, profile: Profile) -> Passage:
        return self.passage("agent", account_of_agent(profile))

    def passage(self, kind: Kind, account: str) -> Passage:
        """To the provider of that account, see :func:`account_of_model`."""
        place = (kind, account)
        if place not in self._slow_downs:
            self._slow_downs[place] = SlowDown(self.patience_seconds, **self._more)
        return SlowedDown(self._slow_downs[place])


class SlowedDown:
    """:class:`Passage` to a provider whose refusals end nothing but what was asked."""

    def __init__(self, slow_down: SlowDown) -> None:
        self._slow_down = slow_down
        self._sent_in = 0
        self._row = 0
        self._first_refused_at = 0.0

    async def ready(self) -> bool:
        waited = await self._slow_down.ready(_tell_nobody)
        self._sent_in = self._slow_down.slow_downs
        return waited is not None

    async def refused(self, error: TurnError) -> str | None:
        slow_down = self._slow_down
        if error.kind == "quota":
            return USED_UP
        if slow_down.patience_seconds <= 0:
            return NOT_WAITED
        if self._row == 0:
            self._first_refused_at = slow_down.now
        why = slow_down.refused(error.kind, error.retry_after_seconds, self._sent_in, self._row)
        self._row += 1
        accepted_at = slow_down.accepted_at
        others = accepted_at is not None and accepted_at > self._first_refused_at
        if why is None and self._row >= MANY_REFUSALS and others:
            return refused_alone(self._row)
        return why

    async def accepted(self) -> None:
        self._slow_down.accept(self._sent_in)


def account_of_model(base_url: str, key: str | None) -> str:
    """Tells accounts apart; no key can be had from it."""
    return _digest([base_url, key])


def account_of_agent(profile: Profile) -> str:
    """The same of the account that the profile's CLI uses: several profiles may share one."""
    return _digest([profile.engine, profile.base_url, profile.api_key_env])


def _digest(parts: list[str | None]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _tell_nobody(_: str) -> None:
    """Whoever waits for the answer sees that it is not there yet."""
