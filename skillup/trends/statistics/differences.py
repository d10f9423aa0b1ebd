"""Differences of pass rates, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from skillup.trends.statistics.exact import Counts
from skillup.trends.statistics.proportions import Interval, wilson


def mean_difference(cases: Sequence[Counts], confidence: float = 0.95) -> Interval:
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
    for passed_a, held_a, passed_b, held_b in cases:
        before, after = wilson(passed_a, held_a, confidence), wilson(passed_b, held_b, confidence)
        a, b = passed_a / held_a, passed_b / held_b
        mean += b - a
        below += (b - after.low) ** 2 + (before.high - a) ** 2
        above += (after.high - b) ** 2 + (a - before.low) ** 2
    n = len(cases)
    return Interval(max(-1.0, (mean - sqrt(below)) / n), min(1.0, (mean + sqrt(above)) / n))
