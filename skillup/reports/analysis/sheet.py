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


def telling(items: Sequence[T], *are_dull: Callable[[T], bool]) -> tuple[list[T], list[int]]:
    """Those to be shown, and how many are left out for each of `are_dull`.

    Where there are too many rows, those that the first calls dull are left out; if there still are
    too many, those that the second does, too.
    """
    shown, counts = list(items), []
    for is_dull in are_dull:
        before = len(shown)
        if before > MOST_ROWS:
            shown = [item for item in shown if not is_dull(item)]
        counts.append(before - len(shown))
    return shown, counts


def left_out(count: int, what: str, why: str) -> list[Cell]:
    """A line on `count` rows that are not shown; none if all are."""
    if count <= 0:
        return []
    return [Cell(f"not shown: {count} {what if count == 1 else what + 's'} {why}", "dim")]
