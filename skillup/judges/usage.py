"""Sums of what turns took, where it is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skillup.schema.record import Usage

_FIELDS = tuple(Usage.model_fields)


def total_usage(usages: Iterable[Usage | None]) -> dict[str, Any] | None:
    """The sum by field, over the turns that told; a field that none told stays None."""
    told = [vars(usage) for usage in usages if usage is not None]
    if not told:
        return None
    if len(told) == 1:
        return dict(told[0])
    return {name: _total([usage[name] for usage in told]) for name in _FIELDS}


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum of the known costs, USD; None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
