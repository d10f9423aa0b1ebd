"""How long a run took before it was gone on with: from its journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

_STARTS = ("run_created", "run_reopened")


def milliseconds_of_starts(events: Iterable[Mapping[str, Any]]) -> int:
    """Of all starts together, each from when the run was opened to the last that it wrote.

    The time between two starts, in which nobody held anything, does not count.
    """
    total = 0.0
    first: datetime | None = None
    last: datetime | None = None
    for event in events:
        time = _time(event.get("time"))
        if time is None:
            continue
        if first is None or event.get("event") in _STARTS:
            total += _seconds(first, last)
            first = time
        last = time
    return round((total + _seconds(first, last)) * 1000)


def _seconds(first: datetime | None, last: datetime | None) -> float:
    """Not less than none: a clock may have been put back."""
    return 0.0 if first is None or last is None else max(0.0, (last - first).total_seconds())


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
