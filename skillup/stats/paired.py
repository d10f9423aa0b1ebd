"""Intervals of means over cases: of differences of scores and rates, and of pass rates."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from skillup.stats.exact import PassCounts
from skillup.stats.proportions import Interval, t_quantile, wilson


def interval_of_mean(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Where the mean of values like these surely lies; None where they are all the same: that says
    nothing of how such values differ.

    Mean ± t·s/√n, with their standard deviation s and the quantile t of Student's distribution
    with n-1 degrees of freedom.

    Source: Student (1908), The probable error of a mean, Biometrika 6.
    """
    if len(set(values)) < 2:
        return None
    n = len(values)
    half = t_quantile(confidence, n - 1) * stdev(values) / sqrt(n)
    return Interval(fmean(values) - half, fmean(values) + half)


# Differences of pass rates, and how sure they are.


def mean_difference(cases: Sequence[PassCounts]) -> Interval:
    """The 95 % interval of the mean over cases of their differences of pass rates, B - A.

    The cases are taken as they are: what it leaves open is chance within the trials. Each limit
    lies from the mean by the root of the summed squares of the distances of the cases' own limits
    (Newcombe's), divided by their number. Raises ValueError without any case.
    """
    if not cases:
        raise ValueError("no cases, no interval")
    mean, below, above = 0.0, 0.0, 0.0
    for passed_a, trials_a, passed_b, trials_b in cases:
        before, after = wilson(passed_a, trials_a), wilson(passed_b, trials_b)
        a, b = passed_a / trials_a, passed_b / trials_b
        mean += b - a
        below += (b - after.low) ** 2 + (before.high - a) ** 2
        above += (after.high - b) ** 2 + (a - before.low) ** 2
    n = len(cases)
    return Interval(max(-1.0, (mean - sqrt(below)) / n), min(1.0, (mean + sqrt(above)) / n))


# How sure a pass rate is where each case ran several times.


def interval_over_cases(cases: Sequence[tuple[int, int]]) -> Interval | None:
    """Of the pass rate of all trials, at 95 %; `cases`: passes and verdicts of each, at least one.

    With one verdict for each case it is Wilson's. Five trials of one case are not five cases: with
    more, each end is the outer one of that and of the interval of the mean of the cases' rates,
    since cases that all came out alike say nothing of how they differ. None without any case.
    """
    if not cases:
        return None
    passed, trials = (sum(numbers) for numbers in zip(*cases, strict=True))
    within = wilson(passed, trials)
    if trials == len(cases):
        return within
    low, high = widened(within, [own / of for own, of in cases])
    return Interval(max(0.0, low), min(1.0, high))


def widened(within: Interval, values: Sequence[float]) -> Interval:
    """Each end the outer one of `within` and of the interval of the mean of `values`."""
    between = interval_of_mean(values) or within
    return Interval(min(within.low, between.low), max(within.high, between.high))
