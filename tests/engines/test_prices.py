"""What a turn costs by the profile's prices."""

from __future__ import annotations

import pytest

from skillup.engines.pricing import cost_usd
from skillup.schema.profile import Price, Profile
from skillup.schema.record import Usage

USAGE = Usage(input_tokens=1000, cached_input_tokens=200, cache_write_tokens=100, output_tokens=50)


def profile(prices: Price | dict[str, Price] | None, model: str | None = None) -> Profile:
    return Profile(engine="codex", model=model, prices=prices)


def test_cached_and_written_tokens_have_their_own_prices() -> None:
    prices = Price(input=1.0, cached_input=0.1, cache_write=2.0, output=10.0)

    cost = cost_usd(profile(prices), None, USAGE)

    assert cost == pytest.approx((700 * 1.0 + 200 * 0.1 + 100 * 2.0 + 50 * 10.0) / 1e6)


def test_without_their_own_prices_they_cost_as_any_input() -> None:
    cost = cost_usd(profile(Price(input=1.0, output=10.0)), None, USAGE)

    assert cost == pytest.approx((1000 * 1.0 + 50 * 10.0) / 1e6)


def test_prices_are_looked_up_by_the_reported_model_then_by_the_profiles() -> None:
    prices = {
        "alias": Price(input=1.0, output=1.0),
        "full-name": Price(input=2.0, output=2.0),
    }

    assert cost_usd(profile(prices, "alias"), "full-name", USAGE) == pytest.approx(1050 * 2 / 1e6)
    assert cost_usd(profile(prices, "alias"), "other", USAGE) == pytest.approx(1050 / 1e6)
    assert cost_usd(profile(prices), "other", USAGE) is None


def test_what_is_not_known_has_no_cost() -> None:
    prices = Price(input=1.0, output=1.0)

    assert cost_usd(profile(None), "x", USAGE) is None
    assert cost_usd(profile(prices), "x", None) is None
    assert cost_usd(profile(prices), "x", Usage(input_tokens=5)) is None
