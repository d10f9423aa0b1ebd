"""Sums of what messages and judges took; what was told by none stays unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skillup.schema.grade import Judging
from skillup.schema.record import Usage


def sum_of_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Field by field, of those that told it."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    return Usage(**{name: _sum(getattr(u, name) for u in known) for name in Usage.model_fields})


def sum_of_costs(costs: Iterable[float | None]) -> float | None:
    """In USD; None: none was told."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def sum_of_judging(first: Judging | None, then: Judging | None) -> Judging | None:
    """What judges took in both parts of a conversation."""
    if first is None or then is None:
        return first or then
    return Judging(
        calls=first.calls + then.calls,
        cached_calls=first.cached_calls + then.cached_calls,
        models=list(dict.fromkeys([*first.models, *then.models])),
        usage=_usage(first.usage, then.usage),
        cost_usd=sum_of_costs([first.cost_usd, then.cost_usd]),
    )


def _usage(first: dict[str, Any] | None, then: dict[str, Any] | None) -> dict[str, Any] | None:
    if first is None or then is None:
        return first or then
    return {name: _sum([first.get(name), then.get(name)]) for name in {**first, **then}}


def _sum(counts: Iterable[Any]) -> Any:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


# Sums of what turns took, where it is known.

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
