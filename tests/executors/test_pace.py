"""What all trials do together about a provider that refuses, in a time of its own."""

from __future__ import annotations

import random
from collections.abc import Callable

import anyio
import pytest

from skillup.executors.ratelimit import Paces, ProviderLimiter, TrialPatience
from skillup.ratelimit.slow_down import MANY_REFUSALS
from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, TurnError
from tests.support.virtual_time import VirtualTime

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Provider:
    """Refuses while it wants to; knows when it was asked."""

    def __init__(self, time: VirtualTime, refuses: Callable[[int], ErrorKind | None]) -> None:
        self.asked: list[float] = []
        self._time = time
        self._refuses = refuses

    async def ask(self) -> TurnError | None:
        self.asked.append(self._time.now)
        kind = self._refuses(len(self.asked))
        await self._time.sleep(0.1)
        return TurnError(kind=kind, message="429: no") if kind else None


def pace_of(time: VirtualTime, patience: float, ended: list[str]) -> ProviderLimiter:
    return ProviderLimiter(
        patience, ended.append, clock=time.clock, sleep=time.sleep, lots=random.Random(3)
    )


async def say(provider: Provider, patience: TrialPatience) -> str:
    """One message, as a conversation sends it."""
    times = 0
    while True:
        if await patience.ready() is None:
            return "left"
        error = await provider.ask()
        if error is None:
            patience.accepted()
            return "answered"
        times += 1
        what_next = await patience.refused(error, times)
        if what_next != "again":
            return {"error": "error", "leave": "left"}[what_next]


async def all_say(
    time: VirtualTime,
    provider: Provider,
    pace: ProviderLimiter,
    many: int,
    told: list[str] | None = None,
) -> list[str]:
    said: list[str] = []
    tell = told.append if told is not None else lambda _: None

    async def one() -> None:
        said.append(await say(provider, TrialPatience(pace, tell)))

    async with time.passing(), anyio.create_task_group() as group:
        for _ in range(many):
            group.start_soon(one)
    return said


async def test_a_refusal_of_many_at_once_is_one_slow_down_and_no_stampede_follows() -> None:
    time, ended, told = VirtualTime(), list[str](), list[str]()
    provider = Provider(time, lambda n: "rate_limit" if n <= 12 else None)
    pace = pace_of(time, 600, ended)
    assert await all_say(time, provider, pace, 8, told) == ["answered"] * 8
    assert ended == []
    # The first eight at once; then one at a time until one was answered; then the rest at once.
    first, probes, rest = provider.asked[:8], provider.asked[8:13], provider.asked[13:]
    assert len(set(first)) == 1
    assert len(set(probes)) == 5
    assert len(rest) == 7
    assert len(set(rest)) == 1
    assert told[0].startswith("rate limit: waiting ")
    assert pace.slow_downs == 5


async def test_pauses_are_drawn_below_a_bound_that_doubles() -> None:
    longest: list[float] = []
    for seed in range(30):
        time = VirtualTime()
        pace = ProviderLimiter(
            9999, lambda _: None, clock=time.clock, sleep=time.sleep, lots=random.Random(seed)
        )
        provider = Provider(time, lambda n: "overloaded" if n <= 8 else None)
        await all_say(time, provider, pace, 1)
        gaps = [b - a - 0.1 for a, b in zip(provider.asked, provider.asked[1:], strict=False)]
        longest = [max(pair) for pair in zip(gaps, longest or gaps, strict=True)]
        bounds = [2, 4, 8, 16, 32, 60, 60, 60]
        assert all(gap <= bound + 1e-6 for gap, bound in zip(gaps, bounds, strict=True))
    assert longest == sorted(longest) or max(longest) > 50
    assert longest[0] > 1


async def test_what_the_provider_asks_for_is_waited() -> None:
    time = VirtualTime()
    pace = pace_of(time, 600, [])
    patience = TrialPatience(pace, lambda _: None)
    async with time.passing():
        await patience.ready()
        error = TurnError(kind="rate_limit", message="no", retry_after_seconds=90)
        assert await patience.refused(error, 1) == "again"
        assert await patience.ready() == pytest.approx(90)


async def test_one_that_asks_for_more_than_is_waited_ends_it_at_once() -> None:
    time, ended = VirtualTime(), list[str]()
    patience = TrialPatience(pace_of(time, 600, ended), lambda _: None)
    async with time.passing():
        await patience.ready()
        error = TurnError(kind="rate_limit", message="no", retry_after_seconds=7200)
        assert await patience.refused(error, 1) == "leave"
    assert patience.left
    assert "120 min of waiting; it is given 10 min (--rate-limit-wait)" in ended[0]


async def test_when_nothing_was_accepted_for_so_long_everybody_leaves() -> None:
    time, ended = VirtualTime(), list[str]()
    provider = Provider(time, lambda _: "rate_limit")
    assert await all_say(time, provider, pace_of(time, 300, ended), 4) == ["left"] * 4
    assert len(ended) == 1
    assert "nothing was accepted in 5 min of waiting" in ended[0]
    asking = 0.1 * len(provider.asked)  # which is no waiting
    assert 300 <= provider.asked[-1] - provider.asked[0] <= 301 + asking


async def test_what_a_message_takes_until_it_is_refused_is_no_waiting() -> None:
    time, ended = VirtualTime(), list[str]()
    patience = TrialPatience(pace_of(time, 6, ended), lambda _: None)
    error = TurnError(kind="rate_limit", message="429: no")
    async with time.passing():
        for times in (1, 2):
            await patience.ready()
            await time.sleep(60)
            assert await patience.refused(error, times) == "again"
    assert ended == []


async def test_a_quota_is_not_waited_out() -> None:
    time, ended = VirtualTime(), list[str]()
    provider = Provider(time, lambda n: "quota" if n == 3 else "rate_limit")
    assert await all_say(time, provider, pace_of(time, 300, ended), 5) == ["left"] * 5
    assert ended == ["429: no"]
    assert len(provider.asked) == 5


async def test_without_patience_a_refusal_is_an_error_and_a_quota_still_the_end() -> None:
    time, ended = VirtualTime(), list[str]()
    pace = pace_of(time, 0, ended)
    assert await all_say(time, Provider(time, lambda _: "overloaded"), pace, 3) == ["error"] * 3
    assert ended == []
    assert await all_say(time, Provider(time, lambda _: "quota"), pace, 2) == ["left"] * 2
    assert ended == ["429: no"]


async def test_one_that_is_refused_again_and_again_while_others_are_not_ends_in_its_error() -> None:
    time, ended = VirtualTime(), list[str]()
    pace = pace_of(time, 100_000, ended)
    unlucky = Provider(time, lambda _: "rate_limit")
    lucky = Provider(time, lambda _: None)
    said: list[str] = []

    async def others() -> None:
        while not said:
            await say(lucky, TrialPatience(pace, lambda _: None))
            await time.sleep(5)

    async with time.passing(), anyio.create_task_group() as group:
        group.start_soon(others)
        said.append(await say(unlucky, TrialPatience(pace, lambda _: None)))
    assert said == ["error"]
    assert len(unlucky.asked) == MANY_REFUSALS
    assert ended == []


async def test_one_that_was_sent_before_the_slow_down_does_not_end_it_but_shows_life() -> None:
    time, ended = VirtualTime(), list[str]()
    pace = pace_of(time, 100, ended)
    early, late = (TrialPatience(pace, lambda _: None) for _ in range(2))
    error = TurnError(kind="rate_limit", message="no")
    async with time.passing():
        await early.ready()
        await late.ready()
        await late.refused(error, 1)
        await time.sleep(90)
        early.accepted()
        await late.ready()
        await time.sleep(20)
        assert await late.refused(error, 2) == "again"


async def test_profiles_with_the_same_account_share_a_pace() -> None:
    paces = Paces(1, lambda _: None)
    one = Profile(engine="codex", name="a", base_url="http://x", model="m")
    same = Profile(engine="codex", name="b", base_url="http://x", model="n")
    other = Profile(engine="codex", name="c", base_url="http://y")
    assert paces.of(one) is paces.of(same)
    assert paces.of(one) is not paces.of(other)


JUDGE = Profile(engine="codex", name="judge", base_url="http://x", permission="read_only")
HELD = Profile(engine="codex", name="held", base_url="http://x", model="m")


def paces_in(time: VirtualTime, patience: float, ended: list[str]) -> Paces:
    return Paces(patience, ended.append, **time.both, lots=random.Random(3))


async def test_a_refused_judge_holds_back_the_trials_of_its_account_and_they_it() -> None:
    time, ended = VirtualTime(), list[str]()
    paces = paces_in(time, 600, ended)
    error = TurnError(kind="rate_limit", message="no", retry_after_seconds=30)
    async with time.passing():
        judge, trial = paces.of_agent(JUDGE), TrialPatience(paces.of(HELD), lambda _: None)
        await judge.ready()
        assert await judge.refused(error) is None
        assert await trial.ready() == pytest.approx(30)
        assert await trial.refused(error, 1) == "again"
        before = time.now
        assert await judge.ready()
        assert time.now - before == pytest.approx(30)
        await judge.accepted()
        assert await trial.ready() == 0
    assert paces.of(HELD).slow_downs == 2
    assert ended == []


async def test_a_judge_whose_allowance_is_used_up_ends_the_run_as_a_trial_does() -> None:
    time, ended = VirtualTime(), list[str]()
    paces = paces_in(time, 600, ended)
    judge = paces.of_agent(JUDGE)
    await judge.ready()
    error = TurnError(kind="quota", message="no credits")
    assert await judge.refused(error) == "the allowance is used up"
    assert ended == ["no credits"]
    assert not await paces.of_agent(JUDGE).ready()
    assert await TrialPatience(paces.of(HELD), lambda _: None).ready() is None


async def test_a_judge_is_told_why_it_is_not_asked_again() -> None:
    time, ended = VirtualTime(), list[str]()
    error = TurnError(kind="overloaded", message="no")
    impatient = paces_in(time, 0, ended).of_agent(JUDGE)
    await impatient.ready()
    assert "--rate-limit-wait 0" in (await impatient.refused(error) or "")
    assert ended == []
    late = TurnError(kind="overloaded", message="no", retry_after_seconds=7200)
    patient = paces_in(time, 60, ended).of_agent(JUDGE)
    await patient.ready()
    assert "the run ends" in (await patient.refused(late) or "")
    assert len(ended) == 1


async def test_a_model_that_judges_has_a_pace_of_its_own_that_ends_no_run() -> None:
    time, ended = VirtualTime(), list[str]()
    paces = paces_in(time, 60, ended)
    model = paces.of_model("http://x", None)
    await model.ready()
    assert await model.refused(TurnError(kind="quota", message="no")) == "the allowance is used up"
    assert await TrialPatience(paces.of(HELD), lambda _: None).ready() == 0
    assert ended == []
