"""How sure a pass rate is where each case was held several times."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.trends.statistics.paired import bootstrap_interval
from skillup.trends.statistics.proportions import Interval, wilson


def interval_over_cases(
    cases: Sequence[tuple[int, int]], confidence: float = 0.95
) -> Interval | None:
    """Of the pass rate of all trials; `cases` are passes and verdicts of each, at least one.

    With one verdict for each case it is Wilson's. Five trials of one case are not five cases: with
    more, the cases' rates are drawn again (bootstrap), and each end is the outer one of both, since
    cases that all came out alike leave nothing to draw. None without any case.
    """
    if not cases:
        return None
    passed, held = (sum(numbers) for numbers in zip(*cases, strict=True))
    within = wilson(passed, held, confidence)
    rates = [own / of for own, of in cases]
    if held == len(cases) or min(rates) == max(rates):
        return within
    between = bootstrap_interval(rates, confidence)
    if between is None:
        return within
    return Interval(min(within.low, between.low), max(within.high, between.high))
