"""One rate limiter for all who ask the same provider: a refusal holds every one of them back.

Exponential backoff with full jitter (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture
Blog, 2015); then requests are let through one at a time, until one is answered.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence

import anyio

from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, TurnError, TurnRecord, Usage, total_cost, total_usage

REFUSALS: frozenset[ErrorKind] = frozenset({"rate_limit", "overloaded", "quota"})
ANSWERED: frozenset[ErrorKind | None] = frozenset({None, "max_turns", "budget"})
"""The agent was answered, and at most its own limit ended the turn."""
THE_RUNS_END: frozenset[ErrorKind] = frozenset({"cancelled", "quota"})
"""Errors of a simulated user that end the run: the trial has no result."""
WAIT_SECONDS = 600.0
"""How long rate limits and overload are waited out, where nobody says."""
MANY_REFUSALS = 8
"""So often in a row one request is refused, while others are not, before that is its error."""
USED_UP = "the allowance is used up"

_FIRST_BOUND_SECONDS = 2.0
_LARGEST_BOUND_SECONDS = 60.0
_NAMES = {"rate_limit": "rate limit", "overloaded": "overload"}


class RateLimiter:
    """Of all providers that are asked in one event loop; profiles of one account share theirs."""

    def __init__(
        self,
        wait_seconds: float = WAIT_SECONDS,
        end: Callable[[str], None] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        lots: random.Random | None = None,
    ) -> None:
        """`wait_seconds`: how long in all, while nothing is accepted; 0: refusals are errors.

        `end` is called with the reason why an agents' provider is worth asking no more. Without it
        that is an error of the request, as it always is of a model's provider.
        """
        self.wait_seconds = wait_seconds
        self._end = end
        self.clock, self.sleep = clock, sleep
        self.lots = lots or random.Random()  # noqa: S311 - no secret
        self._providers: dict[tuple[str | None, ...], _Provider] = {}

    def of_model(self, base_url: str, key: str | None) -> Throttle:
        """For one request to a model."""
        return Throttle(self._provider(("model", base_url, key), None))

    def of_agent(self, profile: Profile, show: Callable[[str], None] = lambda _: None) -> Throttle:
        """For the messages to one agent; `show` is for the live display."""
        account = ("agent", profile.engine, profile.base_url, profile.api_key_env)
        return Throttle(self._provider(account, self._end), show)

    def _provider(
        self, account: tuple[str | None, ...], end: Callable[[str], None] | None
    ) -> _Provider:
        return self._providers.setdefault(account, _Provider(self, end))


class Throttle:
    """What one asker does before and after each request; it makes one at a time."""

    def __init__(self, provider: _Provider, show: Callable[[str], None] = lambda _: None) -> None:
        self._provider, self._show = provider, show
        self._row = 0
        self._sent_in = 0
        self._first_refused_at = 0.0

    @property
    def closed(self) -> bool:
        """The run ends: nothing more is to be asked, and a refusal is no result."""
        return self._provider.closed

    async def ready(self) -> float | None:
        """Wait until a request may be made; for how many seconds. None: none is to be made."""
        waited = await self._provider.ready(self._show)
        self._sent_in = self._provider.slow_downs
        if waited:
            self._show("sending the message")
        return waited

    def refused(self, error: TurnError) -> str | None:
        """The request was refused; None: it may be made again, once it is `ready`; else why not."""
        provider = self._provider
        if self._row == 0:
            self._first_refused_at = provider.clock()
        self._row += 1
        why = provider.refused(error, self._sent_in, self._row - 1)
        others = provider.accepted_at > self._first_refused_at
        if why is None and self._row >= MANY_REFUSALS and others:
            return f"it was refused {self._row} times, and others were not"
        return why

    def accepted(self) -> None:
        """The request was answered."""
        self._row = 0
        self._provider.accepted(self._sent_in)


class _Provider:
    """One account at one provider."""

    def __init__(self, limiter: RateLimiter, end: Callable[[str], None] | None) -> None:
        self.clock, self._sleep, self._lots = limiter.clock, limiter.sleep, limiter.lots
        self.slow_downs = 0
        """How many there were. A request that was sent before the latest tells nothing new."""
        self.accepted_at = -math.inf
        self.closed = False  # The run ends, and nobody is to ask any more
        self._wait_seconds, self._end = limiter.wait_seconds, end
        self._pause: anyio.CancelScope | None = None  # Of who waits for the next request
        # In order: else one that is always refused would keep the others back.
        self._turn = anyio.Lock()
        self._waited = 0.0  # In slow-downs since something was accepted
        self._doubled = 0
        self._next_at: float | None = None
        self._interval = 0.0
        self._reason = ""

    async def ready(self, show: Callable[[str], None]) -> float | None:
        if self._next_at is None and not self.closed and not self._turn.locked():
            return 0.0
        began = self.clock()
        if self._next_at is not None:
            show(f"{self._reason}: waiting {max(1, math.ceil(self._next_at - began))} s")
        async with self._turn:
            while not self.closed and self._next_at is not None:
                left = self._next_at - self.clock()
                if left <= 0:
                    self._next_at = self.clock() + self._interval
                    break
                with anyio.CancelScope() as self._pause:
                    await self._sleep(left)
        return None if self.closed else self.clock() - began

    def refused(self, error: TurnError, sent_in: int, row: int) -> str | None:
        if self.closed:
            return "the provider accepts nothing, and the run ends"
        if error.kind == "quota":
            self._close(error.message)
            return USED_UP
        if self._wait_seconds <= 0:
            return "refusals are not waited out (--rate-limit-wait 0)"
        name, asked = _NAMES.get(error.kind, error.kind), error.retry_after_seconds or 0.0
        left = self._wait_seconds - self._waited
        if left <= 0 or asked > left:
            # A longer wait would end in the same refusal.
            self._next_at = None
            self._end_pause()
            limit = _minutes(self._wait_seconds)
            why = f"the provider wants {_minutes(asked)} of waiting; it is given {limit}"
            if left <= 0:
                why = f"nothing was accepted in {limit} of waiting"
            self._close(f"{name}: {why} (--rate-limit-wait); it said: {error.message}")
            return f"{why}, and the run ends" if self.closed else why
        if sent_in == self.slow_downs:
            doublings = min(max(self._doubled, row), 9)
            bound = min(_LARGEST_BOUND_SECONDS, _FIRST_BOUND_SECONDS * 2**doublings)
            seconds = min(left, max(asked, self._lots.uniform(0, bound)))
            self._doubled += 1
            self.slow_downs += 1
            self._reason, self._interval = name, bound
            self._next_at = self.clock() + seconds
            self._waited += seconds
            self._end_pause()
        elif self._next_at is not None:
            later = max(0.0, self.clock() + asked - self._next_at)
            self._next_at += later
            self._waited += later
        return None

    def accepted(self, sent_in: int) -> None:
        self.accepted_at = self.clock()
        self._waited = 0.0
        if self._next_at is not None and sent_in == self.slow_downs:
            # Not from the beginning: where many trials meet a tight limit it comes back at once.
            self._doubled = max(0, self._doubled - 1)
            self._next_at = None
            self._end_pause()

    def _close(self, why: str) -> None:
        if self._end is not None:
            self._end(why)
            self.closed = True
            self._end_pause()

    def _end_pause(self) -> None:
        """Something has changed: whoever waits looks again."""
        if self._pause is not None:
            self._pause.cancel()


def _minutes(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.3g} min"


def with_refusals(sent: TurnRecord, refused: Sequence[TurnRecord], waited: float) -> TurnRecord:
    """`sent`, with what was refused before."""
    seconds = f"{math.ceil(waited)} s"
    if refused:
        kinds = ", ".join(dict.fromkeys(turn.error.kind for turn in refused if turn.error))
        times = "once" if len(refused) == 1 else f"{len(refused)} times"
        why = f"the provider refused the message {times} ({kinds})"
        note = f"{why}; it was sent again after {seconds}"
    elif waited >= 1:
        note = f"the message was sent after {seconds}: the provider had refused others"
    else:
        return sent
    tries = [*refused, sent]
    usage = total_usage(turn.usage for turn in tries)
    update = {
        "notes": [*sent.notes, note],
        "usage": Usage(**usage) if usage else None,
        "cost_usd": total_cost(turn.cost_usd for turn in tries),
    }
    return sent.model_copy(update=update)
