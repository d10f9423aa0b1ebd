"""Intervals of means over cases: of differences of scores and rates, and of pass rates.

What is drawn comes from a generator with a fixed seed: the same runs give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, sqrt
from random import Random
from statistics import NormalDist, fmean

from skillup.stats.exact import PassCounts
from skillup.stats.proportions import Interval, t_quantile, wilson

_SEED = 20261
_MOST_DRAWS = 10_000
_LEAST_DRAWS = 1_000
_MOST_VALUES = 400_000  # Drawn in all, but for the least draws


def bootstrap_interval(differences: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Where the mean difference surely lies; None with fewer than two pairs.

    The pairs are drawn again with replacement, n at a time, and the quantiles of the means are
    taken at α' and 1-α' with α' = Φ(-√(n/(n-1))·t), t being the quantile of Student's distribution
    with n-1 degrees of freedom: plain percentiles are too narrow for few pairs.

    Source: B. Efron (1979), Bootstrap methods, Annals of Statistics 7; the widened percentiles:
    T. C. Hesterberg (2015), What teachers should know about the bootstrap, The American
    Statistician 69(4), §3.3.
    """
    n = len(differences)
    if n < 2:
        return None
    draws = _draws(n)
    random = Random(_SEED)  # noqa: S311 - statistics, not secrets
    means = sorted(fmean(random.choices(differences, k=n)) for _ in range(draws))
    tail = NormalDist().cdf(-sqrt(n / (n - 1)) * t_quantile(confidence, n - 1))
    place = min(floor(tail * draws), (draws - 1) // 2)
    return Interval(means[place], means[draws - 1 - place])


def _draws(n: int) -> int:
    """How many times `n` values are drawn: tens of thousands of cases would take seconds."""
    return max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_VALUES // n))


# Differences of pass rates, and how sure they are.


def mean_difference(cases: Sequence[PassCounts], confidence: float = 0.95) -> Interval:
    """The interval of the mean over cases of their differences of pass rates, B - A.

    The cases are taken as they are: what it leaves open is chance within the trials. Each limit
    lies from the mean by the root of the summed squares of the distances of the cases' own limits
    (Newcombe's), divided by their number. For one case, with Wilson's intervals (l_a, u_a) and
    (l_b, u_b) of the rates a and b, it is Newcombe's hybrid score interval,
    from b - a - √((b-l_b)² + (u_a-a)²) to b - a + √((u_b-b)² + (a-l_a)²).

    Sources: R. G. Newcombe (1998), Interval estimation for the difference between independent
    proportions: comparison of eleven methods, Statistics in Medicine 17, method 10; G. Y. Zou and
    A. Donner (2008), Construction of confidence limits about effect measures: a general approach,
    Statistics in Medicine 27. Raises ValueError without any case.
    """
    if not cases:
        raise ValueError("no cases, no interval")
    mean, below, above = 0.0, 0.0, 0.0
    for passed_a, trials_a, passed_b, trials_b in cases:
        before, after = (
            wilson(passed_a, trials_a, confidence),
            wilson(passed_b, trials_b, confidence),
        )
        a, b = passed_a / trials_a, passed_b / trials_b
        mean += b - a
        below += (b - after.low) ** 2 + (before.high - a) ** 2
        above += (after.high - b) ** 2 + (a - before.low) ** 2
    n = len(cases)
    return Interval(max(-1.0, (mean - sqrt(below)) / n), min(1.0, (mean + sqrt(above)) / n))


# How sure a pass rate is where each case ran several times.


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
    passed, trials = (sum(numbers) for numbers in zip(*cases, strict=True))
    within = wilson(passed, trials, confidence)
    rates = [own / of for own, of in cases]
    if trials == len(cases) or min(rates) == max(rates):
        return within
    between = bootstrap_interval(rates, confidence)
    if between is None:
        return within
    return Interval(min(within.low, between.low), max(within.high, between.high))
