"""The numbers over all cases of two runs, and what they mean, in a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skillup.reports.text import money, seconds
from skillup.trends.comparison import Comparison, Means
from skillup.trends.outcomes import CaseKey, RunOutcomes
from skillup.trends.statistics.exact import ExactTest
from skillup.trends.statistics.proportions import percent
from skillup.trends.tallies import Tally, by_case, tally, together

if TYPE_CHECKING:
    from rich.table import Table

_LEAST_CHANGE = 0.0005
"""Of a mean score; less is shown as none."""


def totals_table(comparison: Comparison) -> Table:
    """What each run came to."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    for header in ("A", "B", "difference"):
        table.add_column(header, justify="right")
    both = [case for case in comparison.counted if case.a.judged and case.b.judged]
    passed = [together(case.a for case in both), together(case.b for case in both)]
    of = "" if len(both) == len(comparison.counted) else f" in {_cases(len(both))} of both"
    baseline = "" if len(comparison.counted) == len(comparison.cases) else ", with the skill"
    if both:
        shown = [f"{side.passed}/{side.judged}" for side in passed]
        table.add_row(f"trials passed{of}{baseline}", *shown, "")
    paired = _planned_by_both(comparison)
    sides = [
        tally(trial for trial in run.trials if trial.key in paired)
        for run in (comparison.a, comparison.b)
    ]
    for word, name in (("not run", "not_run"), ("skipped", "skipped")):
        values = [getattr(side, name) for side in sides]
        if any(values):
            table.add_row(f"trials {word}", *map(str, values), f"{values[1] - values[0]:+d}")
    lost = [_unanswered(run, comparison) for run in (comparison.a, comparison.b)]
    if any(lost):
        table.add_row("cases not run", *map(str, lost), f"{lost[1] - lost[0]:+d}")
    scores = comparison.scores
    if scores is not None:
        values = [f"{scores.mean_a:.3f}", f"{scores.mean_b:.3f}", f"{scores.difference:+.3f}"]
        table.add_row("mean score", *values)
    if comparison.cost is not None:
        shown = [money(comparison.cost.a), money(comparison.cost.b)]
        table.add_row("cost a trial", *shown, _increase(comparison.cost))
    if comparison.duration is not None:
        shown = [seconds(round(comparison.duration.a)), seconds(round(comparison.duration.b))]
        table.add_row("time a trial", *shown, _increase(comparison.duration))
    for change, name in (("only_in_a", "A"), ("only_in_b", "B")):
        alone = [case for case in comparison.counted if case.change == change]
        if alone:
            own = together(case.a if name == "A" else case.b for case in alone)
            _add_alone(table, name, own, _cases(len(alone)))
    return table


def _add_alone(table: Table, name: str, own: Tally, cases: str) -> None:
    """What only one of the runs planned: beside the paired numbers, not among them."""
    shown = {
        "passed": f"{own.passed}/{own.judged}" if own.judged else "",
        "not run": str(own.not_run or ""),
        "skipped": str(own.skipped or ""),
    }
    for word, value in shown.items():
        if value:
            values = (value, "–") if name == "A" else ("–", value)
            table.add_row(f"trials {word} in {cases} of {name} alone", *values, "")


def baseline_as_before(comparison: Comparison) -> list[CaseKey]:
    """Cases without the skill that fail as often as ever: no news, though true each night."""
    counted = {case.key for case in comparison.counted}
    return [case.key for case in comparison.of("still_failing") if case.key not in counted]


def _planned_by_both(comparison: Comparison) -> set[CaseKey]:
    alone = ("only_in_a", "only_in_b")
    return {case.key for case in comparison.counted if case.change not in alone}


def _cases(count: int) -> str:
    return f"{count} case{'s' if count != 1 else ''}"


def _unanswered(run: RunOutcomes, comparison: Comparison) -> int:
    paired = _planned_by_both(comparison)
    tallies = by_case(run.trials).items()
    return sum(own.state in ("error", "not_held") for key, own in tallies if key in paired)


def _increase(means: Means) -> str:
    return "–" if means.increase is None else f"{means.increase:+.0%}"


def statements(comparison: Comparison) -> Iterator[str]:
    """What the numbers over all cases mean, in a sentence each."""
    verdicts, alpha = comparison.verdicts, 1 - comparison.confidence
    if not verdicts.cases:
        yield "no case has a verdict in both runs: there is nothing to compare"
        return
    cases = f"{verdicts.cases} case{'s' if verdicts.cases != 1 else ''}"
    if not verdicts.worse and not verdicts.better:
        yield f"pass rate: the same in all of {cases}"
    else:
        said = f"pass rate: lower in {verdicts.worse}, higher in {verdicts.better} of {cases}"
        yield f"{said}; all together {_meaning(verdicts.test, alpha, verdicts.name)}"
    scores = comparison.scores
    if scores is not None and abs(scores.difference) >= _LEAST_CHANGE:
        within = ""
        if scores.interval is not None:
            low, high = scores.interval
            within = f", {percent(comparison.confidence)} between {low:+.3f} and {high:+.3f}"
        mean = f"scores: {scores.difference:+.3f} on average{within}"
        yield f"{mean}; {_meaning(scores.test, alpha, 'runs exchanged case by case')}"


def taken(comparison: Comparison) -> Iterator[str]:
    """What an average trial took, in a sentence for what both runs tell."""
    for verb, means, show in (
        ("cost", comparison.cost, money),
        ("took", comparison.duration, lambda taken: seconds(round(taken))),
    ):
        if means is not None:
            yield f"a trial {verb} {show(means.a)} in A, {show(means.b)} in B{_more(means)}"


def _more(means: Means) -> str:
    return "" if means.increase is None else f" ({_increase(means)})"


def _meaning(test: ExactTest | None, alpha: float, name: str) -> str:
    if test is None:
        return "not tested"
    if test.p <= alpha + 1e-9:
        meaning = "more than chance"
    else:
        meaning = "too little data to tell" if test.least > alpha else "may be chance"
    return f"{meaning}, p {p_value(test.p)} ({name})"


def p_value(p: float) -> str:
    """`0.012`, or that it is too small to be worth its digits."""
    return "< 0.0001" if p < 0.0001 else f"{p:.3g}"
