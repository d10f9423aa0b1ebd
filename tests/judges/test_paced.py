"""One message to an agent that judges: what its provider is told of how it went."""

from __future__ import annotations

import pytest

from skillup.engines.base import EngineTurn
from skillup.judges.agent.runner import send_throttled
from skillup.ratelimit import Throttle
from skillup.schema.record import ErrorKind, TurnError

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Way(Throttle):
    """A throttle that remembers; `again` is what it says of refusals."""

    def __init__(self, *, open_: bool = True, again: str | None = None) -> None:
        self.seen: list[str] = []
        self._open = open_
        self._again = again

    async def ready(self) -> float | None:
        self.seen.append("ready")
        return 0.0 if self._open else None

    def refused(self, error: TurnError) -> str | None:
        self.seen.append(f"refused: {error.kind}")
        return self._again

    def accepted(self) -> None:
        self.seen.append("accepted")


async def sent(way: Way, kind: ErrorKind | None) -> tuple[EngineTurn, bool]:
    error = TurnError(kind=kind, message="no") if kind is not None else None

    async def send() -> EngineTurn:
        way.seen.append("sent")
        return EngineTurn(None, response="yes", error=error)

    return await send_throttled(way, send)


@pytest.mark.parametrize("kind", [None, "max_turns", "budget"])
async def test_an_agent_that_was_answered_was_accepted(kind: ErrorKind | None) -> None:
    way = Way()
    outcome, again = await sent(way, kind)
    assert (outcome.response, again) == ("yes", False)
    assert way.seen == ["ready", "sent", "accepted"]


@pytest.mark.parametrize("kind", ["crash", "timeout", "auth"])
async def test_other_trouble_says_nothing_of_the_provider(kind: ErrorKind) -> None:
    way = Way()
    assert not (await sent(way, kind))[1]
    assert way.seen == ["ready", "sent"]


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "quota"])
async def test_a_refused_one_is_sent_again_or_its_error_says_why_not(kind: ErrorKind) -> None:
    way = Way()
    assert (await sent(way, kind))[1]
    assert way.seen == ["ready", "sent", f"refused: {kind}"]
    outcome, again = await sent(Way(again="enough of it"), kind)
    assert not again
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.message) == (kind, "no (enough of it)")


async def test_what_is_not_to_be_sent_any_more_is_not() -> None:
    way = Way(open_=False)
    outcome, again = await sent(way, None)
    assert way.seen == ["ready"]
    assert not again
    assert outcome.error is not None
    assert "the run ends" in outcome.error.message
