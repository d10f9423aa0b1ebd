"""Tokens and cost of the answers to one question, as the provider told them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillup.schema.record import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage


class Account:
    """Adds up. What a provider does not tell, or has no known price, is None in the sum."""

    def __init__(self) -> None:
        self.model: str | None = None
        self._usages: list[Usage | None] = []
        self._costs: list[float | None] = []

    def add(self, response: ModelResponse) -> None:
        """One answer of the model, whether it was of the right form or not."""
        self.model = response.model_name or self.model
        self._usages.append(usage_of(response.usage))
        self._costs.append(_price_of(response))

    def usage(self) -> Usage | None:
        """Over all answers; None: there were none, or one did not tell."""
        told = [usage for usage in self._usages if usage is not None]
        if not told or len(told) < len(self._usages):
            return None
        return Usage(**{name: _sum(told, name) for name in Usage.model_fields})

    def cost_usd(self) -> float | None:
        """Over all answers; None: of one it is not known."""
        known = [cost for cost in self._costs if cost is not None]
        return sum(known) if known and len(known) == len(self._costs) else None


def usage_of(usage: RequestUsage) -> Usage | None:
    """In our words; None where the provider told nothing."""
    if not usage.input_tokens and not usage.output_tokens:
        return None
    return Usage(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.details.get("reasoning_tokens"),
        requests=1,
    )


def _price_of(response: ModelResponse) -> float | None:
    if not response.model_name or usage_of(response.usage) is None:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None  # a model or an address that has no known price


def _sum(usages: list[Usage], name: str) -> int | None:
    values = [getattr(usage, name) for usage in usages]
    return None if None in values else sum(values)
