"""All that an analysis has to say, in the order in which it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from skillup.history.runs import WITH_SKILL
from skillup.reports.analysis.sheet import (
    MOST_ROWS,
    NONE,
    WITHOUT,
    Cell,
    Names,
    Sheet,
    difference,
    interval,
    left_out,
    p_value,
    passed,
    percent,
    points,
    points_interval,
    telling,
)
from skillup.reports.text import listed_ids, money, one_line, plain, seconds, shown_id, tokens
from skillup.reports.view_model import decided_words
from skillup.schema.analysis import (
    Analysis,
    CaseReliability,
    Decision,
    EngineColumn,
    Triggering,
    Uplift,
)

# Cases that were held several times: how often each passed, which waver, where they fail.

_LARGEST_K = 5
_DECIDED = {"above": ("above", "green"), "below": ("below", "red"), "undecided": ("?", "yellow")}
_BIASED = "rates of decided cases lie further from the threshold than the truth, on average"
"""As wherever trials stop at the outcome that was waited for."""
_FLAKY_NAMED = 20
_WIDEST_NAME = 40
"""To which curves are aligned; what is longer sticks out by itself."""


def trials(cases: Sequence[CaseReliability], names: Names, level: str) -> Iterator[Sheet]:
    """A table of the cases that were held, or were to be held, more than once."""
    repeated = [case for case in cases if _planned(case) > 1]
    if not repeated:
        return
    k = _k(repeated)
    # A row of dashes tells nothing, and a run that was stopped early has many.
    tried = [case for case in repeated if not _is_not_held(case)]
    decided = any(case.decision is not None for case in tried)
    lost = any(_lost(case) for case in tried)
    heads = ["case", "passed", "rate", level]
    heads += [f"pass@{k}", f"pass^{k}"] if k is not None else []
    heads += ["surely"] if decided else []
    heads += ["no verdict"] if lost else []
    sheet = Sheet("Trials", heads)
    shown, (steady,) = telling(tried, _is_steady)
    for case in shown:
        row = [Cell(names.row(case)), passed(case.rate), percent(case.rate.rate)]
        row.append(interval(case.rate))
        row += _at_k(case, k) if k is not None else []
        row += [_decision(case.decision)] if decided else []
        row += [Cell(_lost(case), "magenta")] if lost else []
        sheet.rows.append(row)
    sheet.lines += left_out(steady, "case", "that passed every time")
    sheet.lines += left_out(len(repeated) - len(tried), "case", "of which no trial was held")
    sheet.lines += _flaky(repeated, names)
    sheet.lines += _curves(repeated, names)
    sheet.lines += [Cell(line, "dim") for line in deciding(repeated)]
    yield sheet


def deciding(cases: Sequence[CaseReliability]) -> Iterator[str]:
    """What `--until-decided` came to, and how rates are to be read then; else nothing."""
    words = decided_words([case for case in cases if _planned(case) > 1])
    if words is None:
        return
    yield words
    if any(case.decision is not None and case.decision.verdict != "undecided" for case in cases):
        yield _BIASED


def _is_steady(case: CaseReliability) -> bool:
    return 0 < case.rate.passed == case.rate.held and not _lost(case)


def _is_not_held(case: CaseReliability) -> bool:
    return not case.rate.held and not case.error and not case.skip


def _planned(case: CaseReliability) -> int:
    saved = case.decision.saved if case.decision is not None else 0
    return case.rate.held + case.error + case.skip + case.not_run + saved


def _k(cases: Sequence[CaseReliability]) -> int | None:
    """A k that says more than whether all passed: half of the trials, but not less than 2."""
    held = [case.rate.held for case in cases if case.rate.held > 1]
    return min(_LARGEST_K, max(2, min(held) // 2)) if held else None


def _at_k(case: CaseReliability, k: int) -> list[Cell]:
    found = next((item for item in case.at_k if item.k == k), None)
    if found is None:
        return [NONE, NONE]
    return [percent(found.pass_at_k), percent(found.pass_hat_k)]


def _decision(decision: Decision | None) -> Cell:
    if decision is None:
        return NONE
    word, style = _DECIDED[decision.verdict]
    return Cell(f"{word} {percent(decision.threshold).text}", style)


def _lost(case: CaseReliability) -> str:
    errors = "error" if case.error == 1 else "errors"
    counts = ((case.error, errors), (case.skip, "skipped"), (case.not_run, "not run"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _flaky(cases: Sequence[CaseReliability], names: Names) -> Iterator[Cell]:
    flaky = [f"{names.row(case)} ({passed(case.rate).text})" for case in cases if case.flaky]
    if flaky:
        more = len(flaky) - _FLAKY_NAMED
        rest = f" and {more} more" if more > 0 else ""
        yield Cell(f"flaky: {', '.join(flaky[:_FLAKY_NAMED])}{rest}", "yellow")


def _curves(cases: Sequence[CaseReliability], names: Names) -> Iterator[Cell]:
    """Where conversations go wrong first; of those of one turn the table says all."""
    from rich.cells import cell_len

    curves = [
        (f"{names.row(case)}:", " → ".join(_steps(case)))
        for case in cases
        if len(case.turns) > 1
        and case.rate.held > 1
        and any(turn.first_failures for turn in case.turns)
    ]
    if curves:
        yield Cell("trials in which no turn had failed by then:")
    widths = [cell_len(plain(name)) for name, _ in curves]
    column = min(max(widths, default=0), _WIDEST_NAME)
    for (name, steps), width in zip(curves[:MOST_ROWS], widths, strict=False):
        yield Cell(f"  {name}{' ' * (column - width)}  {steps}")
    yield from left_out(len(curves) - MOST_ROWS, "more case", "in which a turn failed")


def _steps(case: CaseReliability) -> Iterator[str]:
    """The turns at which the curve falls, with the first and the last."""
    last = len(case.turns) - 1
    for place, turn in enumerate(case.turns):
        if turn.first_failures or place in (0, last):
            yield f"turn {turn.turn_number} {percent(turn.unfailed).text}"


# Whether skills were used when they should be.


def triggering(found: Sequence[Triggering], names: Names) -> Iterator[Sheet]:
    """A row for each skill; one that was looked at once has nothing to be counted."""
    shown = [item for item in found if _observed(item) > 1]
    sheet = Sheet(
        "Triggering: skills used where that was wanted, and left alone where it was not",
        ["skill", "used", "left alone", "precision", "recall", "F1"],
    )
    for item in shown:
        wanted = item.used_rightly + item.not_used_wrongly
        unwanted = item.used_wrongly + item.not_used_rightly
        sheet.rows.append(
            [
                Cell(_name(item, names)),
                _share(item.used_rightly, wanted),
                _share(item.not_used_rightly, unwanted),
                percent(item.precision),
                percent(item.recall),
                NONE if item.f1 is None else Cell(f"{item.f1:.2f}"),
            ]
        )
    sheet.lines += _beside(shown, names)
    yield sheet


def _beside(shown: Sequence[Triggering], names: Names) -> Iterator[Cell]:
    """Which choice there was, once for each skill of a suite: engines have the same."""
    for item in {(item.suite, item.skill): item for item in shown}.values():
        if item.distractors:
            name = names.case(item.suite, item.skill)
            yield Cell(f"{name}: installed beside it: {listed_ids(item.distractors)}", "dim")


def _observed(item: Triggering) -> int:
    expected = item.used_rightly + item.not_used_wrongly
    return expected + item.used_wrongly + item.not_used_rightly


def _name(item: Triggering, names: Names) -> str:
    suite = f"{one_line(item.suite)}: " if names.several_suites else ""
    engine = f" {one_line(item.engine)}" if names.several_engines else ""
    return f"{suite}{one_line(item.skill)}{engine}"


def _share(right: int, of: int) -> Cell:
    return Cell(f"{right}/{of}", "green" if right == of else "yellow") if of else NONE


# What the skill adds, and what it costs.

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
            shown, (not_held, equal) = telling(cases, _is_not_held_uplift, lambda c: c.uplift == 0)
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


def _is_not_held_uplift(case: Uplift) -> bool:
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


# Several engines side by side: a row for each case, a column for each engine.

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
        lambda name: _is_steady_matrix(rows[name].values()),
    )
    for name in shown:
        sheet.rows.append([Cell(shown_id(name)), *(rows[name].get(e, NONE) for e in engines)])
    sheet.rows += _totals(engines, cases, columns)
    sheet.lines += left_out(steady, "case", "that passed every time on each engine")
    sheet.lines += left_out(not_held, "case", "of which no trial was held")
    if any(case.error for case in cases):
        sheet.lines.append(Cell("E: errors, which are no verdict", "dim"))
    return sheet


def _is_steady_matrix(cells: Iterable[Cell]) -> bool:
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


def sheets_of(analysis: Analysis) -> list[Sheet]:
    """What several trials, a baseline, triggering checks or several engines came to; else none."""
    names = Names(analysis.cases)
    level = f"{100 * analysis.confidence:g} %"
    found = [
        *trials(analysis.cases, names, level),
        *uplift(analysis.uplift, names, level),
        *triggering(analysis.triggering, names),
        *matrix(analysis, names),
    ]
    return [sheet for sheet in found if sheet.rows or sheet.lines]
