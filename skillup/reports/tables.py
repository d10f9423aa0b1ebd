"""What a run's trials say together, for people, in tables that terminal and Markdown lay out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillup import stats
from skillup.dataclass import mutable
from skillup.history.runs import WITH_SKILL, CaseKey, mean_known
from skillup.reports.result import STYLE, Row, RunView, is_bad, summarize, total_tokens
from skillup.reports.text import (
    count,
    listed,
    listed_ids,
    money,
    one_line,
    p_value,
    seconds,
    tokens,
    total,
)
from skillup.schema.grade import Analysis, CaseReliability, Difference, Rate, Triggering, Uplift
from skillup.schema.line import TrialLine, grouped

if TYPE_CHECKING:
    from skillup.schema.past_runs import CaseRef

T = TypeVar("T")
_MOST_ROWS = 40  # From more rows than these, those are left out that say nothing
_LARGEST_K = 5
_FLAKY_NAMED = 20
_DECIDED = {"above": ("above", "green"), "below": ("below", "red"), "undecided": ("?", "yellow")}
_BIASED = "rates of decided cases lie further from the threshold than the truth, on average"
"""As wherever trials stop at the outcome that was waited for."""


class Cell(NamedTuple):
    """A text, which may be anybody's, and its style on a terminal."""

    text: str
    style: str = ""


NONE = Cell("–", "dim")  # Nothing is known, or nothing can be


@mutable
class Sheet:
    """One answer: a title, a table whose first column names its rows, and lines of text."""

    title: str
    heads: Sequence[str] = ()  # Of all columns; the first is that of the names
    rows: list[Sequence[Cell]] = field(default_factory=list)
    lines: list[Cell] = field(default_factory=list)
    align: str = ""  # A letter for each column, as of the terminal's tables
    indent: int = 0
    dull: set[int] = field(default_factory=set)

    def add(self, row: Sequence[Cell], *, dull: bool = False) -> None:
        """`dull`: one that says nothing, and is only counted where there are many."""
        if dull:
            self.dull.add(len(self.rows))
        self.rows.append(row)


def _passed(rate: Rate) -> Cell:
    """``2/3``, in the colour of what that means."""
    if not rate.judged:
        return NONE
    style = "green" if rate.passed == rate.judged else "yellow" if rate.passed else "red"
    return Cell(f"{rate.passed}/{rate.judged}", style)


def known(value: T | None, show: Callable[[T], str] = str) -> Cell:
    return NONE if value is None else Cell(show(value))


def percent(share: float | None) -> Cell:
    """``67%``; never 100% or 0% of what is only nearly so."""
    return known(share, stats.percent)


def interval(
    low: float | None, high: float | None, show: Callable[[float], str], to: str = " to "
) -> Cell:
    return NONE if low is None or high is None else Cell(f"{show(low)}{to}{show(high)}")


class CaseNames:
    """The names of cases, with suite, engine and variant as far as there are several."""

    def __init__(self, cases: Sequence[CaseKey | CaseRef | CaseReliability]) -> None:
        self.several_suites = len({case.suite for case in cases}) > 1
        self._several_engines = len({case.engine for case in cases}) > 1

    def engine(self, name: str, engine: str) -> str:
        """``demo codex``, where there are several."""
        return f"{name} {one_line(engine)}" if self._several_engines else name

    def case(self, suite: str, case_id: str) -> str:
        """``demo: asks``, or just the case."""
        return (f"{one_line(suite)}: " if self.several_suites else "") + one_line(case_id)

    def row(self, case: CaseKey | CaseRef | CaseReliability) -> str:
        variant = "" if case.variant == WITH_SKILL else " (without skill)"
        return self.engine(self.case(case.suite, case.case_id), case.engine) + variant


def sheets_of(analysis: Analysis | None, trials: Sequence[TrialLine] = ()) -> list[Sheet]:
    """What several engines, trials, a baseline or triggering checks came to; else none."""
    if analysis is None:
        return []
    names = CaseNames(analysis.cases)
    level = f"{100 * analysis.confidence:g} %"
    found = [
        *_engines(analysis, names, trials),
        *_trials(analysis.cases, names, level),
        *_uplift(analysis.uplift, names, level),
        _triggering(analysis.triggering, names),
    ]
    for sheet in found:
        if len(sheet.rows) > _MOST_ROWS and sheet.dull:
            sheet.rows = [row for n, row in enumerate(sheet.rows) if n not in sheet.dull]
            cases = count(len(sheet.dull), "case")
            text = f"not shown: {cases} that always passed, made no difference, or did not run"
            sheet.lines.insert(0, Cell(text, "dim"))
    return [sheet for sheet in found if sheet.rows or sheet.lines]


def trial_sheet(view: RunView, rows: Sequence[Row]) -> Sheet:
    """A row for each trial; `dim` is a failure without the skill, which is expected."""
    with_cost = any(row.grade.cost_usd is not None for row in rows)
    heads = ["", "case", "turns", "checks", "score", "time", "tokens", *["cost"] * with_cost]
    sheet = Sheet("", heads, align="nl" + "r" * (len(heads) - 2))
    for row in rows:
        grade = row.grade
        is_expected = grade.status == "FAIL" and not is_bad(grade)
        cells = [
            Cell(grade.status, "dim" if is_expected else STYLE[grade.status]),
            Cell("  ".join(filter(None, (view.label(grade), row.attempt)))),
            Cell(f"{row.turns_done}/{len(grade.turns)}"),
            Cell(f"{row.passed_checks}/{len(row.checks)}"),
            known(row.score, "{:.2f}".format),
            Cell(seconds(grade.duration_ms)),
            Cell(tokens(row.tokens)),
        ]
        sheet.add(cells + [Cell(money(grade.cost_usd))] * with_cost)
    return sheet


def _planned(case: CaseReliability) -> int:
    saved = case.decision.saved if case.decision is not None else 0
    return case.rate.judged + case.error + case.skip + case.not_run + saved


def _without_verdict(case: CaseReliability) -> str:
    errors = "error" if case.error == 1 else "errors"
    counts = ((case.error, errors), (case.skip, "skipped"), (case.not_run, "not run"))
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def deciding(cases: Iterable[CaseReliability]) -> Iterator[str]:
    """What `--until-decided` came to and saved, and how rates are to be read then; else nothing."""
    repeated = [case for case in cases if _planned(case) > 1]
    tests = [case.decision for case in repeated if case.decision is not None]
    if not tests:
        return
    parts = []
    counts = sorted(test.trials for test in tests if test.verdict != "undecided")
    if counts:
        fewest = f"{counts[0]} to " if counts[0] != counts[-1] else ""
        parts.append(f"decided after {fewest}{count(counts[-1], 'trial')}")
    saved = sum(test.saved for test in tests)
    if saved:
        planned = sum(map(_planned, repeated))
        parts.append(f"{saved} of {planned} trials were not needed")
    if len(counts) < len(tests):
        parts.append(f"{count(len(tests) - len(counts), 'case')} not decided")
    yield "; ".join(parts)
    if counts:
        yield _BIASED


def _trials(cases: Sequence[CaseReliability], names: CaseNames, level: str) -> Iterator[Sheet]:
    repeated = [case for case in cases if _planned(case) > 1]
    if not repeated:
        return
    # A k that says more than whether all passed: half of the trials, but not less than 2.
    verdicts = [case.rate.judged for case in repeated if case.rate.judged > 1]
    k = min(_LARGEST_K, max(2, min(verdicts) // 2)) if verdicts else None
    decided = any(case.decision is not None for case in repeated)
    lost = any(map(_without_verdict, repeated))
    heads = ["case", "passed", "rate", level]
    heads += [f"pass@{k}", f"pass^{k}"] if k is not None else []
    sheet = Sheet("Trials", heads + ["surely"] * decided + ["no verdict"] * lost)
    for case in repeated:
        rate = case.rate
        row = [Cell(names.row(case)), _passed(rate), percent(rate.rate)]
        row.append(interval(rate.low, rate.high, stats.percent, "–"))
        if k is not None:
            at = next((item for item in case.at_k if item.k == k), None)
            row += [NONE, NONE] if at is None else map(percent, (at.pass_at_k, at.pass_hat_k))
        if case.decision is not None:
            word, style = _DECIDED[case.decision.verdict]
            row.append(Cell(f"{word} {percent(case.decision.threshold).text}", style))
        elif decided:
            row.append(NONE)
        row += [Cell(_without_verdict(case), "magenta")] * lost
        all_passed = rate.passed == rate.judged and not _without_verdict(case)
        sheet.add(row, dull=all_passed or not (rate.judged or case.error or case.skip))
    flaky = [f"{names.row(case)} ({_passed(case.rate).text})" for case in repeated if case.flaky]
    if flaky:
        sheet.lines.append(Cell(f"flaky: {listed(flaky[:_FLAKY_NAMED], len(flaky))}", "yellow"))
    sheet.lines += [Cell(line, "dim") for line in deciding(repeated)]
    yield sheet


def _triggering(found: Sequence[Triggering], names: CaseNames) -> Sheet:
    """A row for each skill; one that was observed once has nothing to be counted."""
    sheet = Sheet(
        "Triggering: skills used where that was expected, and left alone where it was not",
        ["skill", "used", "left alone", "precision", "recall", "F1"],
    )

    def share(right: int, of: int) -> Cell:
        return Cell(f"{right}/{of}", "green" if right == of else "yellow") if of else NONE

    beside: dict[str, str] = {}  # once for each skill of a suite: engines have the same
    for item in found:
        expected = item.used_rightly + item.not_used_wrongly
        unexpected = item.used_wrongly + item.not_used_rightly
        if expected + unexpected < 2:
            continue
        name = names.case(item.suite, item.skill)
        sheet.rows.append(
            [
                Cell(names.engine(name, item.engine)),
                share(item.used_rightly, expected),
                share(item.not_used_rightly, unexpected),
                percent(item.precision),
                percent(item.recall),
                known(item.f1, "{:.2f}".format),
            ]
        )
        if item.distractors:
            beside[name] = f"{name}: installed beside it: {listed_ids(item.distractors)}"
    sheet.lines += [Cell(line, "dim") for line in beside.values()]
    return sheet


def _uplift(found: Sequence[Uplift], names: CaseNames, level: str) -> Iterator[Sheet]:
    """Pass rates of each suite and its cases; then what trials took, with and without."""
    heads = ["pass rate", "with", "without", "points", level, "p"]
    rates = Sheet("With and without the skill", heads)
    taken = []
    for whole in (item for item in found if item.case_id is None):
        place = (whole.suite, whole.engine)
        cases = [c for c in found if c.case_id is not None and (c.suite, c.engine) == place]
        where = names.engine(one_line(whole.suite), whole.engine)
        # Rates are means over the cases, as the difference is; not of all trials together.
        compared = [case for case in cases if case.uplift is not None]
        means = [
            percent(mean_known(getattr(case, side).rate for case in compared))
            for side in ("with_skill", "without_skill")
        ]
        many = ("mean of " if whole.cases > 1 else "") + count(whole.cases, "case")
        rates.rows.append([Cell(f"{where} ({many})", "bold"), *means, *_points(whole)])
        for case in cases:
            name = Cell(f"  {names.case(case.suite, case.case_id or '')}")
            both = _passed(case.with_skill), _passed(case.without_skill)
            rates.add([name, *both, *_points(case)], dull=not case.uplift)
        if whole.not_counted:
            why = "without a verdict in both, or only on whether the skill was used, so not counted"
            line = f"{where}: {why}: {listed_ids(whole.not_counted)}"
            rates.lines.append(Cell(line, "magenta"))
        taken.append(Sheet("", [f"{where}, a trial", "with", "without", "difference", level]))
        for head, quantity, show in (
            ("turns", whole.turns, "{:.2f}".format),
            ("tokens", whole.tokens, "{:,.0f}".format),
            ("cost", whole.cost_usd, money),
            ("time", whole.duration_ms, lambda value: f"{value / 1000:.2f} s"),
        ):
            if quantity is not None:
                taken[-1].rows.append([Cell(head), *_difference(quantity, show)])
    yield from (rates, *taken)


def _difference(found: Difference, show: Callable[[float], str]) -> list[Cell]:
    """With, without, the difference, of the exact numbers as everywhere, and its interval."""

    def signed(value: float) -> str:
        text = show(abs(value))
        return text if text == show(0) else ("-" if value < 0 else "+") + text

    numbers = show(found.with_skill), show(found.without_skill), signed(found.difference)
    return [*map(Cell, numbers), interval(found.low, found.high, signed)]


def _points(item: Uplift) -> list[Cell]:
    """In hundredths (``+67``), their interval and p; coloured only where that leaves no doubt."""
    if item.uplift is None:
        return [NONE, NONE, NONE]

    def shown(difference: float) -> str:
        rounded = round(100 * difference)
        return f"{rounded:+d}" if rounded else "0"

    style = "green" if (item.low or 0) > 0 else "red" if (item.high or 0) < 0 else ""
    between = interval(item.low, item.high, shown)
    return [Cell(shown(item.uplift), style), between, known(item.p, p_value)]


# Of an engine's trials, whatever their verdicts.
_TOTALS: dict[str, Callable[[Sequence[TrialLine]], str]] = {
    "cost": lambda own: total(trial.cost_usd for trial in own if trial.status != "SKIP"),
    "tokens": lambda own: tokens(total_tokens(summarize(own).usage)),
    "time": lambda own: seconds(summarize(own).duration_ms),
}


def _engines(analysis: Analysis, names: CaseNames, trials: Sequence[TrialLine]) -> Iterator[Sheet]:
    together = grouped(analysis.cases, lambda case: (case.suite, case.variant))
    for (suite, variant), cases in together.items():
        if len({case.engine for case in cases}) > 1:
            title = "Engines" + (f", {one_line(suite)}" if names.several_suites else "")
            title += "" if variant == WITH_SKILL else ", without skill"
            own = [t for t in trials if (t.suite, t.variant) == (suite, variant)]
            yield _engine_sheet(title, cases, own)


def _engine_sheet(
    title: str, cases: Sequence[CaseReliability], trials: Sequence[TrialLine]
) -> Sheet:
    engines = list(dict.fromkeys(case.engine for case in cases))
    sheet = Sheet(title, ["case", *map(one_line, engines)])
    rows: dict[str, dict[str, Cell]] = {}
    for case in cases:
        rows.setdefault(case.case_id, {})[case.engine] = _matrix_cell(case)
    for name, found in rows.items():
        of_engines = [found.get(engine, NONE) for engine in engines]
        dull = all(c.text in "?–" or (c.style == "green" and c.text[-1] != "E") for c in of_engines)
        sheet.add([Cell(one_line(name)), *of_engines], dull=dull)
    counts = []
    for engine in engines:
        rates = [case.rate for case in cases if case.engine == engine]
        counts.append((sum(rate.passed for rate in rates), sum(rate.judged for rate in rates)))
    passes = [Cell(f"{p}/{n}") if n else NONE for p, n in counts]
    sheet.rows.append([Cell("passed", "bold"), *passes])
    sheet.rows.append([Cell("rate", "bold"), *(percent(p / n if n else None) for p, n in counts)])
    for name, show in _TOTALS.items():
        cells = [Cell(show([t for t in trials if t.engine == engine])) for engine in engines]
        if {cell.text for cell in cells} != {NONE.text}:
            sheet.rows.append([Cell(name, "bold"), *cells])
    if any(case.error and _planned(case) > 1 for case in cases):
        sheet.lines.append(Cell("E: errors, which are no verdict", "dim"))
    return sheet


def _matrix_cell(case: CaseReliability) -> Cell:
    """``✓ 3/3``, ``~ 2/3``, ``✗ 0/3``; errors among them are named; E: no verdict for errors. Of
    one trial its status.
    """
    rate = case.rate
    if _planned(case) == 1 and not case.not_run:
        passed = "PASS" if rate.passed else "FAIL"
        status = "ERROR" if case.error else "SKIP" if case.skip else passed
        return Cell(status, STYLE[status])
    if not rate.judged:
        return Cell("E", "magenta") if case.error else Cell("-" if case.skip else "?", "dim")
    shown = _passed(rate)
    mark = {"green": "✓", "yellow": "~", "red": "✗"}[shown.style]
    errors = f" {case.error}E" if case.error else ""
    return Cell(f"{mark} {shown.text}{errors}", shown.style)
