"""When a series of counts became worse: the likeliest place, and if it is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from skillup.stats.exact import PassCounts, fisher_lower


class Passes(NamedTuple):
    passed: int
    judged: int


class Fall(NamedTuple):
    place: int  # Of the first element since which the rate is lower
    before: Passes
    since: Passes
    p: float  # That it is so much lower by chance at the likeliest of all places


def fall(series: Sequence[Passes]) -> Fall | None:
    """The place since which the pass rate is lower, found by the smallest p; None: nowhere is it.

    Of each of the m = len(series) - 1 places p is that of Fisher's exact test, one-sided, for the
    counts before and since; that of the smallest is multiplied by m (Bonferroni), because the
    smallest of m would else be below 0.05 too often. Every element has a verdict.
    """
    passed = list(accumulate(counts.passed for counts in series))
    judged = list(accumulate(counts.judged for counts in series))
    found = []
    for place in range(1, len(series)):
        before = Passes(passed[place - 1], judged[place - 1])
        since = Passes(passed[-1] - before.passed, judged[-1] - before.judged)
        if since.passed * before.judged < before.passed * since.judged:
            found.append(Fall(place, before, since, fisher_lower(PassCounts(*before, *since))))
    if not found:
        return None
    best = min(found, key=lambda one: one.p)
    return best._replace(p=min(1.0, best.p * (len(series) - 1)))


def rise(series: Sequence[Passes]) -> Fall | None:
    """As :func:`fall`, for a rate that became higher; its counts are those of failures."""
    return fall([Passes(counts.judged - counts.passed, counts.judged) for counts in series])
