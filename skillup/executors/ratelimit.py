"""One pace for all trials that ask the same provider: what they do about refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from skillup.ratelimit.slow_down import (
    MANY_REFUSALS,
    NOT_WAITED,
    USED_UP,
    Kind,
    OwnPacing,
    Passage,
    SlowDown,
    account_of_agent,
    refused_alone,
)
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError

MOST_ANEW = 5
"""So often a trial is held anew because of refusals: every attempt asks its earlier turns again."""

_DOUBLED_BY_ATTEMPT = 3
"""An attempt more is dear, so the pause before it is longer."""

_NAMES = {"rate_limit": "rate limit", "overloaded": "overload"}


class ProviderLimiter(SlowDown):
    """Of one provider in one run of trials, which ends when waiting is of no use any more."""

    def __init__(self, patience_seconds: float, end: Callable[[str], None], **more: Any) -> None:
        """`end` is told why no message of this provider's is worth sending any more.

        That is so when nothing was accepted in `patience_seconds` of waiting, or its allowance is
        used up. `more` is for :class:`~skillup.ratelimit.slow_down.SlowDown`.
        """
        super().__init__(patience_seconds, **more)
        self._end = end

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
        if self.patience_seconds <= 0:
            return "error"
        name = _NAMES.get(error.kind, error.kind)
        over = self.refused(name, error.retry_after_seconds, sent_in, row)
        if over is not None:
            return self._close(f"{name}: {over} (--rate-limit-wait); it said: {error.message}")
        return "again"

    def _close(self, message: str) -> Literal["leave"]:
        self._end(message)
        self.close()
        return "leave"


class TrialPatience:
    """The :class:`~skillup.trial.request.Patience` of one attempt at a trial."""

    def __init__(
        self,
        pace: ProviderLimiter,
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


class Paces(OwnPacing):
    """Of all providers of a run; `Pacing` for the judges in it."""

    def __init__(
        self,
        patience_seconds: float = 0.0,
        end: Callable[[str], None] = lambda _: None,
        **more: Any,
    ) -> None:
        """`end` is told why no more messages are worth sending; `more` as of :class:`Pace`."""
        super().__init__(patience_seconds, **more)
        self._end = end
        self._paces: dict[str, ProviderLimiter] = {}

    def of(self, profile: Profile) -> ProviderLimiter:
        """That of the profile's provider: profiles with the same account share it."""
        return self._pace(account_of_agent(profile))

    def passage(self, kind: Kind, account: str) -> Passage:
        if kind == "agent":
            return _AgentPassage(self._pace(account))
        return super().passage(kind, account)

    def _pace(self, account: str) -> ProviderLimiter:
        if account not in self._paces:
            self._paces[account] = ProviderLimiter(self.patience_seconds, self._end, **self._more)
        return self._paces[account]


class _AgentPassage:
    """`Passage` of an agent that belongs to no trial, at their pace."""

    def __init__(self, pace: ProviderLimiter) -> None:
        self._pace = pace
        self._patience = TrialPatience(pace, lambda _: None)
        self._row = 0

    async def ready(self) -> bool:
        return await self._patience.ready() is not None

    async def refused(self, error: TurnError) -> str | None:
        self._row += 1
        what_next = await self._patience.refused(error, self._row)
        if what_next == "again":
            return None
        if error.kind == "quota":
            return USED_UP
        if what_next == "leave":
            return "the provider accepts nothing, and the run ends"
        return refused_alone(self._row) if self._pace.patience_seconds > 0 else NOT_WAITED

    async def accepted(self) -> None:
        self._patience.accepted()
