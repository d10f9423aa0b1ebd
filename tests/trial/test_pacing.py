"""Asking a provider together with all others, in a time of its own."""

from __future__ import annotations

import random

import anyio
import pytest

from skillup.ratelimit.slow_down import MANY_REFUSALS, OwnPacing, Passage
from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, TurnError
from tests.support.virtual_time import VirtualTime

pytestmark = pytest.mark.anyio

URL = "http://model"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def refusal(kind: ErrorKind = "rate_limit", retry_after: float | None = None) -> TurnError:
    return TurnError(kind=kind, message="no", retry_after_seconds=retry_after)


def pacing_in(time: VirtualTime, patience: float = 600.0) -> OwnPacing:
    return OwnPacing(patience, **time.both, lots=random.Random(3))


async def waits(time: VirtualTime, passage: Passage) -> float:
    """How long a request waits before it may be made."""
    before = time.now
    assert await passage.ready()
    return time.now - before


async def test_a_refusal_holds_back_all_who_ask_with_the_same_account_and_nobody_else() -> None:
    time = VirtualTime()
    pacing = pacing_in(time)
    async with time.passing():
        refused = pacing.of_model(URL, "key")
        await refused.ready()
        assert await refused.refused(refusal(retry_after=30)) is None
        assert await waits(time, pacing.of_model(URL, "another")) == 0
        assert await waits(time, pacing.of_model("http://other", "key")) == 0
        same = pacing.of_model(URL, "key")
        assert await waits(time, same) == pytest.approx(30)
        await same.accepted()
        assert await waits(time, refused) == 0


async def test_profiles_of_one_account_are_one_provider_and_none_of_a_models() -> None:
    time = VirtualTime()
    pacing = pacing_in(time)
    profile = Profile(engine="codex", name="a", base_url=URL, api_key_env="KEY")
    async with time.passing():
        refused = pacing.of_agent(profile)
        await refused.ready()
        await refused.refused(refusal(retry_after=30))
        assert await waits(time, pacing.of_model(URL, "KEY")) == 0
        read_only = profile.model_copy(update={"name": "b", "permission": "read_only"})
        assert await waits(time, pacing.of_agent(read_only)) == pytest.approx(30)


async def test_one_that_is_given_up_while_it_waits_keeps_nobody_back() -> None:
    time = VirtualTime()
    pacing = pacing_in(time)
    async with time.passing():
        refused = pacing.of_model(URL, None)
        await refused.ready()
        await refused.refused(refusal(retry_after=30))
        async with anyio.create_task_group() as group:
            group.start_soon(pacing.of_model(URL, None).ready)
            await time.sleep(10)
            group.cancel_scope.cancel()
        assert await waits(time, refused) == pytest.approx(20)


async def test_when_nothing_is_accepted_for_so_long_it_is_not_made_again() -> None:
    time = VirtualTime()
    passage = pacing_in(time, patience=60).of_model(URL, None)
    why, began = None, time.now
    async with time.passing():
        while why is None:
            await passage.ready()
            why = await passage.refused(refusal())
    assert why == "nothing was accepted in 60 s of waiting"
    assert time.now - began == pytest.approx(60)


async def test_a_used_up_allowance_is_not_waited_for() -> None:
    passage = OwnPacing(600).of_model(URL, None)
    await passage.ready()
    assert await passage.refused(refusal("quota")) == "the allowance is used up"


async def test_without_patience_nothing_is_waited_for() -> None:
    passage = OwnPacing(0).of_model(URL, None)
    await passage.ready()
    assert "--rate-limit-wait 0" in (await passage.refused(refusal()) or "")


async def test_one_that_is_refused_again_and_again_while_others_are_not_is_given_up() -> None:
    time = VirtualTime()
    pacing = pacing_in(time, patience=100_000)
    unlucky, why, times = pacing.of_model(URL, None), None, 0
    async with time.passing():
        while why is None:
            await unlucky.ready()
            why = await unlucky.refused(refusal("overloaded"))
            times += 1
            lucky = pacing.of_model(URL, None)
            await lucky.ready()
            await lucky.accepted()
    assert times == MANY_REFUSALS
    assert why == f"it was refused {MANY_REFUSALS} times, and others were not"
