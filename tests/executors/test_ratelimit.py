"""What all who ask a provider do together about its refusals, in a time of its own."""

from __future__ import annotations

import random
from collections.abc import Callable

import anyio
import pytest

from skillup.ratelimit import MANY_REFUSALS, RateLimiter, Throttle
from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, TurnError
from tests.support.virtual_time import VirtualTime

pytestmark = pytest.mark.anyio

URL = "http://x"
TRIAL = Profile(engine="codex", name="trial", base_url=URL, model="m")
JUDGE = Profile(engine="codex", name="judge", base_url=URL, permission="read_only")
OTHER = Profile(engine="codex", name="other", base_url="http://y")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Bench:
    """A limiter whose time is virtual, and a provider that refuses while it wants to."""

    def __init__(self, seconds: float = 600, seed: int = 3) -> None:
        self.time = VirtualTime()
        self.ended: list[str] = []
        self.told: list[str] = []
        self.asked: list[float] = []
        self.limiter = RateLimiter(
            seconds, self.ended.append, **self.time.both, lots=random.Random(seed)
        )

    def trial(self) -> Throttle:
        return self.limiter.of_agent(TRIAL, self.told.append)

    async def ask(self, throttle: Throttle, kind: Callable[[int], ErrorKind | None]) -> str:
        """One message, as a conversation sends it; `kind` says by number how it is refused."""
        while await throttle.ready() is not None:
            self.asked.append(self.time.now)
            refusal = kind(len(self.asked))
            await self.time.sleep(0.1)
            if refusal is None:
                throttle.accepted()
                return "answered"
            if throttle.refused(TurnError(kind=refusal, message="429: no")) is not None:
                return "left" if throttle.closed else "error"
        return "left"

    async def all_ask(self, many: int, kind: Callable[[int], ErrorKind | None]) -> list[str]:
        said: list[str] = []

        async def one() -> None:
            said.append(await self.ask(self.trial(), kind))

        async with self.time.passing(), anyio.create_task_group() as group:
            for _ in range(many):
                group.start_soon(one)
        return said


def refusal(kind: ErrorKind = "rate_limit", after: float | None = None) -> TurnError:
    return TurnError(kind=kind, message="no", retry_after_seconds=after)


async def test_a_refusal_of_many_at_once_is_one_slow_down_and_no_stampede_follows() -> None:
    bench = Bench()
    assert await bench.all_ask(8, lambda n: "rate_limit" if n <= 12 else None) == ["answered"] * 8
    assert bench.ended == []
    # The first eight at once; then one at a time until one was answered; then the rest at once.
    first, probes, rest = bench.asked[:8], bench.asked[8:13], bench.asked[13:]
    assert (len(set(first)), len(set(probes))) == (1, 5)
    assert (len(rest), len(set(rest))) == (7, 1)
    assert bench.told[0].startswith("rate limit: waiting ")


async def test_pauses_are_drawn_below_a_bound_that_doubles() -> None:
    longest: list[float] = []
    for seed in range(30):
        bench = Bench(9999, seed)
        await bench.all_ask(1, lambda n: "overloaded" if n <= 8 else None)
        gaps = [b - a - 0.1 for a, b in zip(bench.asked, bench.asked[1:], strict=False)]
        longest = [max(pair) for pair in zip(gaps, longest or gaps, strict=True)]
        bounds = [2, 4, 8, 16, 32, 60, 60, 60]
        assert all(gap <= bound + 1e-6 for gap, bound in zip(gaps, bounds, strict=True))
    assert longest[0] > 1
    assert max(longest) > 50


async def test_a_refusal_holds_back_all_who_ask_with_the_same_account_and_nobody_else() -> None:
    bench = Bench()
    model = bench.limiter.of_model
    async with bench.time.passing():
        judge = bench.limiter.of_agent(JUDGE)
        await judge.ready()
        assert judge.refused(refusal(after=30)) is None
        for other in (bench.limiter.of_agent(OTHER), model(URL, None)):
            assert await other.ready() == 0
        trial = bench.trial()
        assert await trial.ready() == pytest.approx(30)
        assert trial.refused(refusal(after=30)) is None
        assert await judge.ready() == pytest.approx(30)
        judge.accepted()
        assert await trial.ready() == 0
        one, same, another = model(URL, "key"), model(URL, "key"), model(URL, "another")
        await one.ready()
        one.refused(refusal(after=20))
        assert await another.ready() == 0
        assert await same.ready() == pytest.approx(20)
    assert bench.ended == []


async def test_one_that_is_given_up_while_it_waits_keeps_nobody_back() -> None:
    bench = Bench()
    async with bench.time.passing():
        refused = bench.trial()
        await refused.ready()
        refused.refused(refusal(after=30))
        async with anyio.create_task_group() as group:
            group.start_soon(bench.trial().ready)
            await bench.time.sleep(10)
            group.cancel_scope.cancel()
        assert await refused.ready() == pytest.approx(20)


async def test_when_nothing_was_accepted_for_so_long_everybody_leaves() -> None:
    bench = Bench(300)
    assert await bench.all_ask(4, lambda _: "rate_limit") == ["left"] * 4
    (ended,) = bench.ended
    assert "nothing was accepted in 5 min of waiting (--rate-limit-wait)" in ended
    asking = 0.1 * len(bench.asked)  # which is no waiting
    assert 300 <= bench.asked[-1] - bench.asked[0] <= 301 + asking


@pytest.mark.parametrize("agent", [True, False])
@pytest.mark.parametrize(
    ("seconds", "error", "why", "told"),
    [
        (600, refusal("quota"), "the allowance is used up", "no"),
        (0, refusal("quota"), "the allowance is used up", "no"),
        (0, refusal("overloaded"), "not waited out (--rate-limit-wait 0)", None),
        (
            600,
            refusal(after=7200),
            "the provider wants 120 min of waiting; it is given 10 min",
            "rate limit: the provider wants 120 min of waiting; it is given 10 min",
        ),
    ],
)
async def test_what_is_not_waited_out_ends_a_run_of_agents_and_is_an_error_of_models(
    agent: bool, seconds: float, error: TurnError, why: str, told: str | None
) -> None:
    bench = Bench(seconds)
    throttle = bench.trial() if agent else bench.limiter.of_model(URL, None)
    await throttle.ready()
    assert why in (throttle.refused(error) or "")
    ends = agent and told is not None
    assert throttle.closed == ends
    assert [text.startswith(told or "") for text in bench.ended] == [True] * ends
    assert (await bench.limiter.of_agent(JUDGE).ready() is None) == ends
    alone = RateLimiter(seconds).of_agent(TRIAL)  # of no run
    await alone.ready()
    assert why in (alone.refused(error) or "")
    assert not alone.closed


async def test_a_quota_is_not_waited_out_by_those_that_wait() -> None:
    bench = Bench(300)
    said = await bench.all_ask(5, lambda n: "quota" if n == 3 else "rate_limit")
    assert (said, bench.ended, len(bench.asked)) == (["left"] * 5, ["429: no"], 5)


async def test_one_that_is_refused_again_and_again_while_others_are_not_ends_in_its_error() -> None:
    bench, times, why = Bench(100_000), 0, None
    unlucky, lucky = bench.trial(), bench.trial()
    async with bench.time.passing():
        while why is None:
            await unlucky.ready()
            why, times = unlucky.refused(refusal()), times + 1
            await lucky.ready()
            lucky.accepted()
    assert (times, unlucky.closed, bench.ended) == (MANY_REFUSALS, False, [])


async def test_one_that_was_sent_before_the_slow_down_does_not_end_it_but_shows_life() -> None:
    bench = Bench(100)
    early, late = bench.trial(), bench.trial()
    async with bench.time.passing():
        await early.ready()
        await late.ready()
        late.refused(refusal())
        await bench.time.sleep(90)
        early.accepted()
        await late.ready()
        await bench.time.sleep(20)
        assert late.refused(refusal()) is None
