"""Asking a provider together with all others: for judges and simulated users, as for messages.

A trial's own messages go by :class:`skillup.trial.request.Patience`, which can leave the trial.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, Protocol

from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.trial.slow_down import SlowDown

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

        `more` is for each :class:`~skillup.trial.slow_down.SlowDown`.
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
