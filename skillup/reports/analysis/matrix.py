"""Several engines side by side: a row for each case, a column for each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from skillup.reports.analysis.figures import percent
from skillup.reports.analysis.naming import WITHOUT, Names
from skillup.reports.analysis.sheet import NONE, Cell, Sheet, left_out, telling
from skillup.reports.text import money, one_line, seconds, shown_id, tokens
from skillup.schema.analysis import Analysis, CaseReliability, EngineColumn
from skillup.trends.outcomes import WITH_SKILL

_PASSED = "✓"
_NOT_HELD = "?"


def matrix(analysis: Analysis, names: Names) -> Iterator[Sheet]:
    """For each suite that was held on several engines: its cases, then its totals."""
    places = dict.fromkeys((case.suite, case.variant) for case in analysis.cases)
    for suite, variant in places:
        cases = [c for c in analysis.cases if (c.suite, c.variant) == (suite, variant)]
        if len({case.engine for case in cases}) > 1:
            of_suite = f", {one_line(suite)}" if names.several_suites else ""
            without = "" if variant == WITH_SKILL else f", {WITHOUT}"
            columns = {item.engine: item for item in analysis.engines if item.suite == suite}
            # What the baseline took is in its own table.
            known = columns if variant == WITH_SKILL else {}
            yield _sheet(f"Engines{of_suite}{without}", cases, known)


def _sheet(
    title: str, cases: Sequence[CaseReliability], columns: Mapping[str, EngineColumn]
) -> Sheet:
    engines = list(dict.fromkeys(case.engine for case in cases))
    sheet = Sheet(title, ["case", *map(one_line, engines)])
    rows: dict[str, dict[str, Cell]] = {}
    for case in cases:
        rows.setdefault(case.case_id, {})[case.engine] = _cell(case)
    shown, (not_held, steady) = telling(
        list(rows),
        lambda name: all(cell.text == _NOT_HELD for cell in rows[name].values()),
        lambda name: _is_steady(rows[name].values()),
    )
    for name in shown:
        sheet.rows.append([Cell(shown_id(name)), *(rows[name].get(e, NONE) for e in engines)])
    sheet.rows += _totals(engines, cases, columns)
    sheet.lines += left_out(steady, "case", "that passed every time on each engine")
    sheet.lines += left_out(not_held, "case", "of which no trial was held")
    if any(case.error for case in cases):
        sheet.lines.append(Cell("E: errors, which are no verdict", "dim"))
    return sheet


def _is_steady(cells: Iterable[Cell]) -> bool:
    return all(cell.text.startswith(_PASSED) and not cell.text.endswith("E") for cell in cells)


def _cell(case: CaseReliability) -> Cell:
    """``✓ 3/3``, ``~ 2/3``, ``✗ 0/3``; errors among them are said; E: no verdict for errors."""
    rate = case.rate
    if not rate.held:
        if case.error:
            return Cell("E", "magenta")
        return Cell("-" if case.skip else _NOT_HELD, "dim")
    mark, style = (_PASSED, "green") if rate.passed == rate.held else ("~", "yellow")
    if not rate.passed:
        mark, style = "✗", "red"
    lost = f" {case.error}E" if case.error else ""
    return Cell(f"{mark} {rate.passed}/{rate.held}{lost}", style)


def _totals(
    engines: Sequence[str], cases: Sequence[CaseReliability], columns: Mapping[str, EngineColumn]
) -> Iterator[list[Cell]]:
    of = {e: [case.rate for case in cases if case.engine == e] for e in engines}
    held = [sum(rate.held for rate in rates) for rates in of.values()]
    passes = [sum(rate.passed for rate in rates) for rates in of.values()]
    counts = list(zip(passes, held, strict=True))
    yield [Cell("passed", "bold"), *(Cell(f"{p}/{n}") if n else NONE for p, n in counts)]
    yield [Cell("rate", "bold"), *(percent(p / n if n else None) for p, n in counts)]
    for name, value_of, show in _SHOWN:
        values = [value_of(columns[e]) if e in columns else None for e in engines]
        if any(value is not None for value in values):
            shown = [NONE if value is None else Cell(show(value)) for value in values]
            yield [Cell(name, "bold"), *shown]


_SHOWN: tuple[tuple[str, Callable[[EngineColumn], float | None], Callable[[float], str]], ...] = (
    ("score", lambda column: column.score, lambda value: f"{value:.2f}"),
    ("turns a trial", lambda column: column.turns, lambda value: f"{value:.1f}"),
    ("tokens a trial", lambda column: column.tokens, lambda value: tokens(round(value))),
    ("cost a trial", lambda column: column.cost_usd, money),
    ("time a trial", lambda column: column.duration_ms, lambda value: seconds(round(value))),
)
