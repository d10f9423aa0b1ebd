"""A table with lines below it, before it is known where it will be shown; and its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from skillup.history.runs import WITH_SKILL
from skillup.reports.text import count, one_line, shown_id
from skillup.schema.grade import CaseReliability, Difference, Rate
from skillup.stats import intervals

MOST_ROWS = 40  # From more rows than these, those are left out that say nothing
WITHOUT = "without skill"


class Cell(NamedTuple):
    """A text, which may be anybody's, and its style on a terminal."""

    text: str
    style: str = ""


NONE = Cell("–", "dim")  # Nothing is known, or nothing can be


@dataclass(slots=True)
class Sheet:
    """One answer: a title, a table whose first column names its rows, and lines of text."""

    title: str
    heads: Sequence[str] = ()  # Of all columns; the first is that of the names
    rows: list[Sequence[Cell]] = field(default_factory=list)
    lines: list[Cell] = field(default_factory=list)
    align: str = ""  # A letter for each column, as of the terminal's tables
    _dull: set[int] = field(default_factory=set)  # Which rows say nothing

    def add(self, row: Sequence[Cell], *, dull: bool = False) -> None:
        """`dull`: one that is only counted where there are many."""
        if dull:
            self._dull.add(len(self.rows))
        self.rows.append(row)

    def shortened(self) -> Self:
        dull = len(self._dull)
        if len(self.rows) > MOST_ROWS and dull:
            self.rows = [row for n, row in enumerate(self.rows) if n not in self._dull]
            cases = count(dull, "case")
            text = f"not shown: {cases} that always passed, made no difference, or did not run"
            self.lines.insert(0, Cell(text, "dim"))
        return self


def passed(rate: Rate) -> Cell:
    """``2/3``, in the colour of what that means."""
    if not rate.judged:
        return NONE
    style = "green" if rate.passed == rate.judged else "yellow" if rate.passed else "red"
    return Cell(f"{rate.passed}/{rate.judged}", style)


def percent(share: float | None) -> Cell:
    """``67%``; never 100% or 0% of what is only nearly so."""
    return NONE if share is None else Cell(intervals.percent(share))


def interval(low: float | None, high: float | None) -> Cell:
    if low is None or high is None:
        return NONE
    return Cell(f"{intervals.percent(low)}–{intervals.percent(high)}")


def points(difference: float) -> str:
    """``+67``: a difference of rates, in hundredths."""
    rounded = round(100 * difference)
    return f"{rounded:+d}" if rounded else "0"


def difference(found: Difference, show: Callable[[float], str]) -> list[Cell]:
    """With, without, the difference and its interval.

    The difference is that of the exact numbers, as on the page and in `result.json`, and not of
    the rounded ones beside it.
    """

    def signed(value: float) -> str:
        text = show(abs(value))
        return text if text == show(0) else ("-" if value < 0 else "+") + text

    between = NONE
    if found.low is not None and found.high is not None:
        between = Cell(f"{signed(found.low)} to {signed(found.high)}")
    numbers = show(found.with_skill), show(found.without_skill), signed(found.difference)
    return [*map(Cell, numbers), between]


class Names:
    """The names of a run's cases, engines and variants, as far as there are several."""

    def __init__(self, cases: Iterable[CaseReliability]) -> None:
        known = list(cases)
        self.several_suites = len({case.suite for case in known}) > 1
        self.several_engines = len({case.engine for case in known}) > 1

    def engine(self, engine: str) -> str:
        """`` codex``, where there are several."""
        return f" {one_line(engine)}" if self.several_engines else ""

    def suite(self, suite: str, engine: str) -> str:
        """``demo``, and on which engine."""
        return one_line(suite) + self.engine(engine)

    def case(self, suite: str, case_id: str) -> str:
        """``demo: asks``, or just the case."""
        return (f"{one_line(suite)}: " if self.several_suites else "") + shown_id(case_id)

    def row(self, case: CaseReliability) -> str:
        variant = "" if case.variant == WITH_SKILL else f" ({WITHOUT})"
        return self.case(case.suite, case.case_id) + self.engine(case.engine) + variant
