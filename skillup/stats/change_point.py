"""When a series of counts became worse: the likeliest place, and if it is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import exp, lgamma
from typing import NamedTuple

_NEGLIGIBLE = 1e-17
"""Of a sum: less changes nothing in a float."""


class Passes(NamedTuple):
    """Passes among verdicts."""

    passed: int
    judged: int


class Split(NamedTuple):
    """A series in two parts."""

    place: int
    """Of the first element of the second part."""
    before: Passes
    since: Passes
    p: float
    """That the second part is so much worse by chance at the likeliest of all places."""


def fall(series: Sequence[Passes]) -> Split | None:
    """The place since which the pass rate is lower, told by the smallest p; None: nowhere is it.

    Of each of the m = len(series) - 1 places p is that of Fisher's exact test, one-sided, for the
    counts before and since; and that of the smallest is multiplied by m (Bonferroni), because the
    smallest of m would else be below 0.05 too often. If the rate never changed, the result has
    p <= 0.05 with a chance of at most 5 %. Every element has a verdict.
    """
    passed = list(accumulate(counts.passed for counts in series))
    judged = list(accumulate(counts.judged for counts in series))
    best: Split | None = None
    for place in range(1, len(series)):
        before = Passes(passed[place - 1], judged[place - 1])
        since = Passes(passed[-1] - before.passed, judged[-1] - before.judged)
        if since.passed * before.judged >= before.passed * since.judged:
            continue
        p = _fisher_lower(before, since)
        if best is None or p < best.p:
            best = Split(place, before, since, p)
    return best._replace(p=min(1.0, best.p * (len(series) - 1))) if best else None


def rise(series: Sequence[Passes]) -> Split | None:
    """As :func:`fall`, for a rate that became higher; its counts are those of failures."""
    return fall([Passes(counts.judged - counts.passed, counts.judged) for counts in series])


def _fisher_lower(before: Passes, since: Passes) -> float:
    """As :func:`skillup.stats.exact.fisher_lower`, in floats, from the seen term down.

    A year of nights has hundreds of places and thousands of trials.
    """
    passes, x = before.passed + since.passed, since.passed
    term = exp(
        _log_ways(since.judged, x)
        + _log_ways(before.judged, before.passed)
        - _log_ways(before.judged + since.judged, passes)
    )
    total = term
    while x > max(0, passes - before.judged) and term > total * _NEGLIGIBLE:
        # The next term, for one pass fewer since and one more before.
        fewer = x * (before.judged - passes + x)
        term *= fewer / ((since.judged - x + 1) * (passes - x + 1))
        x -= 1
        total += term
    return min(1.0, total)


def _log_ways(of: int, chosen: int) -> float:
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)
