"""What the skill adds, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from skillup.reports.analysis.figures import (
    difference,
    p_value,
    passed,
    percent,
    points,
    points_interval,
)
from skillup.reports.analysis.naming import Names
from skillup.reports.analysis.sheet import Cell, Sheet, left_out, telling
from skillup.reports.text import listed_ids, money, seconds, tokens
from skillup.schema.analysis import Uplift

_FINE_MS = 10_000
_FINE_TOKENS = 10_000


def uplift(found: Sequence[Uplift], names: Names, level: str) -> Iterator[Sheet]:
    """Pass rates of each suite and its cases; then what trials took, with and without."""
    rates = Sheet(
        "With and without the skill", ["pass rate", "with", "without", "points", level, "p"]
    )
    for item in found:
        if item.case_id is None:
            cases = [c for c in found if c.case_id is not None and _place(c) == _place(item)]
            rates.rows.append(_of_suite(item, cases, names))
            shown, (not_held, equal) = telling(cases, _is_not_held, lambda c: c.uplift == 0)
            rates.rows += [_of_case(case, names) for case in shown]
            where = names.suite(item.suite, item.engine)
            why = "with nothing to compare"
            rates.lines += left_out(not_held, "case", f"of {where} {why}")
            why = "that passed as often without the skill"
            rates.lines += left_out(equal, "case", f"of {where} {why}")
            rates.lines += _not_counted(item, where)
    yield rates
    for item in found:
        if item.case_id is None:
            yield _taken(item, names, level)


def _is_not_held(case: Uplift) -> bool:
    return not case.with_skill.held and not case.without_skill.held


def _not_counted(item: Uplift, where: str) -> Iterator[Cell]:
    if item.not_counted:
        which = listed_ids(item.not_counted)
        yield Cell(
            f"{where}: without a verdict in both, or only on whether the skill was used, so not "
            f"counted: {which}",
            "magenta",
        )


def _place(item: Uplift) -> tuple[str, str]:
    return item.suite, item.engine


def _of_suite(item: Uplift, cases: Sequence[Uplift], names: Names) -> list[Cell]:
    """Rates are means over the cases, as the difference is; not of all trials together."""
    many = "1 case" if item.cases == 1 else f"{item.cases} cases"
    many = f"mean of {many}" if item.cases > 1 else many
    told = [case for case in cases if case.uplift is not None]
    sides = [[case.with_skill.rate for case in told], [case.without_skill.rate for case in told]]
    means = [percent(fmean(r or 0.0 for r in side) if side else None) for side in sides]
    name = Cell(f"{names.suite(item.suite, item.engine)} ({many})", "bold")
    return [name, *means, *_difference(item)]


def _of_case(item: Uplift, names: Names) -> list[Cell]:
    name = Cell(f"  {names.case(item.suite, item.case_id or '')}")
    return [name, passed(item.with_skill), passed(item.without_skill), *_difference(item)]


def _difference(item: Uplift) -> list[Cell]:
    between = points_interval(item.low, item.high)
    return [Cell(points(item.uplift).text, _style(item)), between, p_value(item.p)]


def _style(item: Uplift) -> str:
    """Coloured only where the interval leaves no doubt."""
    if item.low is not None and item.low > 0:
        return "green"
    return "red" if item.high is not None and item.high < 0 else ""


def _taken(item: Uplift, names: Names, level: str) -> Sheet:
    name = f"{names.suite(item.suite, item.engine)}, a trial"
    sheet = Sheet("", [name, "with", "without", "difference", level])
    for head, found, show, apart in (
        ("turns", item.turns, _turns, _turns),
        ("tokens", item.tokens, lambda value: tokens(round(value)), _tokens_apart),
        ("cost", item.cost_usd, money, money),
        ("time", item.duration_ms, _time, _time_apart),
    ):
        if found is not None:
            sheet.rows.append([Cell(head), *difference(found, show, apart)])
    return sheet


def _turns(count: float) -> str:
    return f"{count:.2f}"


def _tokens_apart(count: float) -> str:
    return str(round(count)) if round(count) < _FINE_TOKENS else tokens(round(count))


def _time(milliseconds: float) -> str:
    """Finer than elsewhere: differences are smaller than what they are differences of."""
    if round(milliseconds, -1) < _FINE_MS:
        return f"{milliseconds / 1000:.2f} s"
    return seconds(max(round(milliseconds), _FINE_MS))


def _time_apart(milliseconds: float) -> str:
    """As fine as on the page."""
    if round(milliseconds) < 1000:
        return f"{round(milliseconds)} ms"
    if round(milliseconds, -2) < _FINE_MS:
        return f"{milliseconds / 1000:.1f} s"
    return seconds(max(round(milliseconds), _FINE_MS))
