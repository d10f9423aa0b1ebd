"""How sure pass rates, means and their differences are; what it means to try several times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import atan, cos, pi, sin, sqrt
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

from skillup.stats.exact import PassCounts


class Interval(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float


def percent(share: float, digits: int = 0) -> str:
    """``67%``, with at least `digits` digits; never 100% or 0% of what is only nearly so."""
    everything_or_nothing = min(abs(share), abs(1 - share)) < 1e-9
    for more in range(digits, max(digits, 1) + 1):
        shown = f"{share:.{more}%}"
        if everything_or_nothing or float(shown[:-1]) not in (0, 100):
            return shown
    return "> 99.9%" if share > 0.5 else "< 0.1%"


def wilson(passed: int, trials: int, confidence: float = 0.95) -> Interval:
    """The score interval of a proportion: the rates that `passed` of `trials` does not rule out.

    Raises ValueError unless 0 <= passed <= trials and trials > 0.
    """
    if not 0 <= passed <= trials or trials == 0:
        raise ValueError(f"{passed} of {trials} is no proportion")
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    rate = passed / trials
    middle = rate + z2 / (2 * trials)
    half = sqrt(z2 * (rate * (1 - rate) / trials + z2 / (4 * trials**2)))
    scale = 1 + z2 / trials
    # At the ends the formula gives 0 and 1, but for rounding.
    low = 0.0 if passed == 0 else (middle - half) / scale
    high = 1.0 if passed == trials else (middle + half) / scale
    return Interval(low, high)


def at_each_k(passed: int, trials: int) -> Iterator[tuple[int, float, float]]:
    """k, pass@k and pass^k for each k up to `trials`: the chance that one of k passes, that all do.

    They are the shares of all choices of k among the trials that have a pass in them, or nothing
    but passes: unbiased, which 1 - (1 - c/n)^k and (c/n)^k are not.
    """
    ways = failures_only = passes_only = 1
    for k in range(1, trials + 1):
        # Each from the one before, in whole numbers: those of a thousand trials are very large.
        ways = ways * (trials - k + 1) // k
        failures_only = failures_only * (trials - passed - k + 1) // k
        passes_only = passes_only * (passed - k + 1) // k
        yield k, 1 - failures_only / ways, passes_only / ways


# Student's t distribution: how much wider an interval must be because there are few values.

_NORMAL_FROM = 400
"""Degrees of freedom from which the normal quantile is right to 1 % up to a confidence of 0.999."""


def _t_between(t: float, degrees: int) -> float:
    """The chance that |T| <= t, for at least one degree of freedom: a sum in θ = atan(t/√ν).

    Source: M. Abramowitz and I. A. Stegun (1964), Handbook of mathematical functions,
    26.7.3 (odd ν) and 26.7.4 (even ν).
    """
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + odd, degrees - 1, 2):
        term *= cos(angle) ** 2 * (step - 1) / step
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def t_quantile(confidence: float, degrees: int) -> float:
    """The t with P(|T| <= t) = confidence: 2.262 for 0.95 and 9 degrees of freedom."""
    if degrees >= _NORMAL_FROM:
        return NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = 0.0, 1.0
    while _t_between(high, degrees) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _t_between(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return high


def interval_of_mean(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Where the mean of values like these surely lies, by Student's t; None where they are all the
    same: that says nothing of how such values differ.
    """
    if len(set(values)) < 2:
        return None
    n = len(values)
    half = t_quantile(confidence, n - 1) * stdev(values) / sqrt(n)
    return Interval(fmean(values) - half, fmean(values) + half)


# Over cases that ran several times: differences of pass rates, and the pass rate of all trials.


def mean_difference(cases: Sequence[PassCounts]) -> Interval:
    """The 95 % interval of the mean over cases, at least one, of their pass rates' differences.

    The cases are taken as they are: what it leaves open is chance within the trials. The limits
    are put together from Newcombe's of each case.
    """
    mean, below, above = 0.0, 0.0, 0.0
    for passed_a, trials_a, passed_b, trials_b in cases:
        before, after = wilson(passed_a, trials_a), wilson(passed_b, trials_b)
        a, b = passed_a / trials_a, passed_b / trials_b
        mean += b - a
        below += (b - after.low) ** 2 + (before.high - a) ** 2
        above += (after.high - b) ** 2 + (a - before.low) ** 2
    n = len(cases)
    return Interval(max(-1.0, (mean - sqrt(below)) / n), min(1.0, (mean + sqrt(above)) / n))


def interval_over_cases(cases: Sequence[tuple[int, int]]) -> Interval | None:
    """Of the pass rate of all trials, at 95 %; `cases`: passes and verdicts of each, at least one.

    With one verdict for each case it is Wilson's. Five trials of one case are not five cases: with
    more, it is widened by how the cases' rates differ. None without any case.
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
