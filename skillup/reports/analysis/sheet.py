"""A table with lines below it, before it is known where it will be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from skillup.history.runs import WITH_SKILL
from skillup.reports.text import one_line, shown_id
from skillup.schema.analysis import CaseReliability, Difference, Rate
from skillup.stats import proportions

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


# Rates, intervals and differences as people read them.

_LEAST_P = 0.0001


def passed(rate: Rate) -> Cell:
    """``2/3``, in the colour of what that means."""
    if not rate.held:
        return NONE
    style = "green" if rate.passed == rate.held else "yellow" if rate.passed else "red"
    return Cell(f"{rate.passed}/{rate.held}", style)


def percent(share: float | None) -> Cell:
    """``67%``; never 100% or 0% of what is only nearly so."""
    return NONE if share is None else Cell(proportions.percent(share))


def interval(rate: Rate) -> Cell:
    """``44%–100%``."""
    if rate.low is None or rate.high is None:
        return NONE
    return Cell(f"{proportions.percent(rate.low)}–{proportions.percent(rate.high)}")


def points(difference: float | None) -> Cell:
    """``+67``: a difference of rates, in hundredths."""
    if difference is None:
        return NONE
    rounded = round(100 * difference)
    return Cell(f"{rounded:+d}" if rounded else "0")


def points_interval(low: float | None, high: float | None) -> Cell:
    """``+21 to +90``."""
    if low is None or high is None:
        return NONE
    return Cell(f"{points(low).text} to {points(high).text}")


def p_value(p: float | None) -> Cell:
    """``0.012``, or that it is too small to be worth its digits."""
    if p is None:
        return NONE
    return Cell(f"< {_LEAST_P}" if p < _LEAST_P else f"{p:.2g}")


def signed(value: float, show: Callable[[float], str]) -> str:
    """`show` of a difference, with its sign: ``-1.2k``, ``+3 s``; ``0`` stays without."""
    text = show(abs(value))
    if text == show(0):
        return text
    return ("-" if value < 0 else "+") + text


def difference(
    found: Difference, show: Callable[[float], str], apart: Callable[[float], str]
) -> list[Cell]:
    """With, without, the difference and its interval.

    `show` shows a number, `apart` a difference: finer, for it is smaller. It is that of the exact
    numbers, as on the page and in `result.json`, and not of the rounded ones beside it.
    """
    between = NONE
    if found.low is not None and found.high is not None:
        between = Cell(f"{signed(found.low, apart)} to {signed(found.high, apart)}")
    return [
        Cell(show(found.with_skill)),
        Cell(show(found.without_skill)),
        Cell(signed(found.difference, apart)),
        between,
    ]


# What tells the rows of a table from each other, and no more than that.

WITHOUT = "without skill"


class Names:
    """The names of a run's cases, engines and variants, as far as there are several."""

    def __init__(self, cases: Iterable[CaseReliability]) -> None:
        known = list(cases)
        self.several_suites = len({case.suite for case in known}) > 1
        self.several_engines = len({case.engine for case in known}) > 1

    def suite(self, suite: str, engine: str) -> str:
        """``demo``, and on which engine."""
        return f"{one_line(suite)} {one_line(engine)}" if self.several_engines else one_line(suite)

    def case(self, suite: str, case_id: str) -> str:
        """``demo: asks``, or just the case."""
        before = f"{one_line(suite)}: " if self.several_suites else ""
        return before + shown_id(case_id)

    def row(self, case: CaseReliability) -> str:
        """The case on its engine, in its variant."""
        name = self.case(case.suite, case.case_id)
        engine = f" {one_line(case.engine)}" if self.several_engines else ""
        return name + engine + ("" if case.variant == WITH_SKILL else f" ({WITHOUT})")
