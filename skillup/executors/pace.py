"""One pace for all trials that ask the same provider: a refusal slows every one of them down.

After a refusal nobody sends for a while (exponential backoff with full jitter: a time drawn between
0 and a bound that doubles with every refusal; M. Brooker, "Exponential Backoff And Jitter", AWS
Architecture Blog, 2015). Then messages are let through one at a time, until one is answered.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal

import anyio

from skillup.schema.profile import Profile
from skillup.schema.record import TurnError

FIRST_BOUND_SECONDS = 2.0
LARGEST_BOUND_SECONDS = 60.0
MANY_REFUSALS = 8
"""So often in a row one message is refused, while others are not, before that is its error."""
MOST_ANEW = 5
"""So often a trial is held anew because of refusals: every attempt asks its earlier turns again."""

_DOUBLED_BY_ATTEMPT = 3
"""An attempt more is dear, so the pause before it is longer."""

_NAMES = {"rate_limit": "rate limit", "overloaded": "overload"}
_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "day": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|sec|s|min|m|hour|h|day)[a-z]*", re.IGNORECASE)
_ASKED = re.compile(
    r"(?:try again|retry|wait)\s+(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_HEADER = re.compile(r"retry[-_]after[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)\b", re.IGNORECASE)


class Pace:
    """Of one provider in one run. Everything happens in one event loop."""

    def __init__(
        self,
        patience_seconds: float,
        end: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        lots: random.Random | None = None,
    ) -> None:
        """`end` is told why no message of this provider's is worth sending any more.

        That is so when nothing was accepted for `patience_seconds`, or its allowance is used up.
        """
        self._patience = patience_seconds
        self._end = end
        self._clock = clock
        self._sleep = sleep
        self._lots = lots or random.Random()  # noqa: S311 - no secret
        self._changed = anyio.Event()
        # Whoever was refused goes to the end: else one that always is would keep the others back.
        self._queue: deque[object] = deque()
        self._refused_since: float | None = None
        self._doubled = 0
        self._next_at: float | None = None
        self._interval = 0.0
        self._reason = ""
        self.slow_downs = 0
        """How many there were. A message that was sent before the latest tells nothing new."""
        self.accepted_at: float | None = None
        self.closed = False
        """The run does not wait for this provider any longer."""

    @property
    def now(self) -> float:
        """The clock's time, in seconds."""
        return self._clock()

    async def ready(self, tell: Callable[[str], None]) -> float | None:
        """Wait until a message may be sent; how long that was. None: none is to be sent."""
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

    def refuse(
        self, error: TurnError, sent_in: int, row: int = 0
    ) -> Literal["again", "error", "leave"]:
        """A message was refused that was sent when there had been `sent_in` slow-downs.

        `row` is how many refusals the same trial had before, in a row.
        """
        if self.closed:
            return "leave"
        if error.kind == "quota":
            return self._close(error.message)
        if self._patience <= 0:
            return "error"
        since = self._refused_since = (
            self.now if self._refused_since is None else self._refused_since
        )
        left = since + self._patience - self.now
        asked = asked_wait(error)
        name = _NAMES.get(error.kind, error.kind)
        if left <= 0:
            what = f"nothing was accepted for {_minutes(self._patience)}"
            return self._close(f"{name}: {what}; the last refusal: {error.message}")
        if asked is not None and asked > left:
            what = f"the provider wants {_minutes(asked)} of waiting, beyond --rate-limit-wait"
            return self._close(f"{name}: {what}; it said: {error.message}")
        if sent_in == self.slow_downs:
            bound = min(
                LARGEST_BOUND_SECONDS, FIRST_BOUND_SECONDS * 2 ** min(max(self._doubled, row), 9)
            )
            self._doubled += 1
            self._slow_down(name, min(left, max(asked or 0.0, self._lots.uniform(0, bound))), bound)
        elif asked is not None and self._next_at is not None:
            self._next_at = max(self._next_at, self.now + asked)
        return "again"

    def accept(self, sent_in: int) -> None:
        """A message was answered that was sent when there had been `sent_in` slow-downs."""
        self.accepted_at = self.now
        if self._next_at is None:
            return
        if sent_in == self.slow_downs:
            # Not from the beginning: where many trials meet a tight limit it comes back at once.
            self._doubled = max(0, self._doubled - 1)
            self._next_at = self._refused_since = None
            self._tell_all()
        else:
            self._refused_since = self.now  # it was sent before, and still it got through

    def _slow_down(self, name: str, seconds: float, interval: float) -> None:
        self.slow_downs += 1
        self._reason = name
        self._interval = interval
        self._next_at = self.now + seconds
        self._tell_all()

    def _close(self, message: str) -> Literal["leave"]:
        self.closed = True
        self._end(message)
        self._tell_all()
        return "leave"

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


class TrialPatience:
    """The :class:`~skillup.trial.request.Patience` of one attempt at a trial."""

    def __init__(
        self,
        pace: Pace,
        tell: Callable[[str], None],
        note: Callable[[TurnError, int], None] = lambda _error, _times: None,
        *,
        attempt: int = 1,
    ) -> None:
        """`tell` is for the live display; `note` for the journal, once for each refusal."""
        self.left = False
        self.anew: str | None = None
        self._pace = pace
        self._tell = tell
        self._note = note
        self._before = _DOUBLED_BY_ATTEMPT * (attempt - 1)
        self._sent_in = 0
        self._first_refused_at = 0.0

    async def ready(self) -> float | None:
        waited = await self._pace.ready(self._tell)
        self._sent_in = self._pace.slow_downs
        self.left = waited is None
        if waited:
            self._tell("sending the message")
        return waited

    async def refused(self, error: TurnError, times: int) -> Literal["again", "error", "leave"]:
        pace = self._pace
        if times == 1:
            self._first_refused_at = pace.now
        self._note(error, times)
        what_next = pace.refuse(error, self._sent_in, self._before + times - 1)
        self.left = what_next == "leave"
        others = pace.accepted_at is not None and pace.accepted_at > self._first_refused_at
        if what_next == "again" and times >= MANY_REFUSALS and others:
            return "error"
        return what_next

    def not_again(self, why: str) -> None:
        self.anew = why

    def accepted(self) -> None:
        self._pace.accept(self._sent_in)


class Paces:
    """Of all providers of a run."""

    def __init__(self, patience_seconds: float, end: Callable[[str], None]) -> None:
        self._patience = patience_seconds
        self._end = end
        self._paces: dict[tuple[str, str | None, str | None], Pace] = {}

    def of(self, profile: Profile) -> Pace:
        """That of the profile's provider: profiles with the same account share it."""
        key = (profile.engine, profile.base_url, profile.api_key_env)
        if key not in self._paces:
            self._paces[key] = Pace(self._patience, self._end)
        return self._paces[key]


def asked_wait(error: TurnError) -> float | None:
    """How many seconds the provider asks to wait for; None: it does not say."""
    found = _ASKED.search(error.message)
    if found:
        parts = _DURATION.findall(found[1])
        if parts:
            return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
    header = _HEADER.search(error.message) or _HEADER.search(error.evidence)
    return float(header[1]) if header else None


def _minutes(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.3g} min"
