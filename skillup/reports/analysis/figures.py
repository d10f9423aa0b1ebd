"""Rates, intervals and differences as people read them."""

from __future__ import annotations

from collections.abc import Callable

from skillup.reports.analysis.sheet import NONE, Cell
from skillup.schema.analysis import Difference, Rate
from skillup.trends.statistics import proportions

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
