"""What a turn cost, by the profile's own prices."""

from __future__ import annotations

from skillup.schema.profile import Price, Profile
from skillup.schema.record import Usage


def cost_usd(profile: Profile, model: str | None, usage: Usage | None) -> float | None:
    """The cost by `prices`; None without a price for this model or without token counts.

    A dictionary of prices is looked up by the model's name as the engine reports it, then by the
    name in the profile.
    """
    price = _price(profile, model)
    if price is None or usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = usage.cached_input_tokens or 0
    written = usage.cache_write_tokens or 0
    plain = max(0, usage.input_tokens - cached - written)
    total = plain * price.input + usage.output_tokens * price.output
    total += cached * (price.input if price.cached_input is None else price.cached_input)
    total += written * (price.input if price.cache_write is None else price.cache_write)
    return total / 1_000_000


def _price(profile: Profile, model: str | None) -> Price | None:
    prices = profile.prices
    if prices is None or isinstance(prices, Price):
        return prices
    for name in (model, profile.model):
        if name is not None and name in prices:
            return prices[name]
    return None
