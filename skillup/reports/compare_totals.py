"""The numbers over all cases of two runs, and what they mean, in a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skillup.reports.text import money, seconds
from skillup.trends.comparison import Comparison, Means
from skillup.trends.outcomes import RunOutcomes
from skillup.trends.statistics.exact import ExactTest
from skillup.trends.tallies import by_case, tally

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
    counted = {case.key for case in comparison.counted}
    sides = [
        tally(trial for trial in run.trials if trial.key in counted)
        for run in (comparison.a, comparison.b)
    ]
    baseline = "" if len(counted) == len(comparison.cases) else ", with the skill"
    table.add_row(f"trials passed{baseline}", *(f"{s.passed}/{s.judged}" for s in sides), "")
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
    return table


def _unanswered(run: RunOutcomes, comparison: Comparison) -> int:
    counted = {case.key for case in comparison.counted}
    tallies = by_case(run.trials).items()
    return sum(own.state in ("error", "not_held") for key, own in tallies if key in counted)


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
            within = f", {comparison.confidence:.0%} between {low:+.3f} and {high:+.3f}"
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
