"""A table with lines below it, before it is known where it will be shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

MOST_ROWS = 40
"""From more rows than these, those are left out that say nothing."""
T = TypeVar("T")


class Cell(NamedTuple):
    """A text, which may be anybody's, and its style on a terminal."""

    text: str
    style: str = ""


NONE = Cell("–", "dim")
"""Nothing is known, or nothing can be."""


@dataclass(slots=True)
class Sheet:
    """One answer: a title, a table whose first column names its rows, and lines of text."""

    title: str
    heads: Sequence[str] = ()
    """Of all columns; the first is that of the names."""
    rows: list[Sequence[Cell]] = field(default_factory=list)
    lines: list[Cell] = field(default_factory=list)


def telling(items: Sequence[T], is_dull: Callable[[T], bool]) -> tuple[list[T], int]:
    """Those to be shown, and how many are left out: dull ones, where there are too many rows."""
    if len(items) <= MOST_ROWS:
        return list(items), 0
    shown = [item for item in items if not is_dull(item)]
    return shown, len(items) - len(shown)


def left_out(count: int, what: str, why: str) -> list[Cell]:
    """A line on `count` rows that are not shown; none if all are."""
    if count <= 0:
        return []
    return [Cell(f"not shown: {count} {what if count == 1 else what + 's'} {why}", "dim")]
