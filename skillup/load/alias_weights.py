"""How much data an alias stands for, so that a small file cannot stand for an endless one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# A long text is read again wherever it stands, so it counts for more than one value.
_TEXT_UNIT = 64


class Weights:
    """How many values a value holds, once its own aliases are followed; counted up to `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # With the value itself: an id is only good while its owner lives.
        self._known: dict[int, tuple[Any, int]] = {}

    def of(self, value: Any) -> int:
        """The weight of `value`; somewhat more than the limit stands for anything beyond."""
        if not isinstance(value, dict | list):
            return _weight_of_scalar(value)
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        total = 0
        waiting: list[Iterable[Any]] = [(value,)]
        while waiting and total <= self._limit:
            for inner in waiting.pop():
                total += _weight_of_scalar(inner)
                if isinstance(inner, dict):
                    total += len(inner)
                    waiting.append(inner.values())
                elif isinstance(inner, list):
                    waiting.append(inner)
        self._known[id(value)] = value, total
        return total


def _weight_of_scalar(value: Any) -> int:
    return 1 + (len(value) // _TEXT_UNIT if isinstance(value, str) else 0)
