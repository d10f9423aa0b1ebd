"""Exact tests of pass counts: no approximation, so that they hold for three trials, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import exp, lgamma
from typing import NamedTuple

_SAME = 1 + 1e-9
"""Probabilities that differ by less are equal: outcomes as likely as the one seen count with it."""


class PassCounts(NamedTuple):
    """The verdicts of one case in two runs."""

    passed_a: int
    trials_a: int
    passed_b: int
    trials_b: int


def swapped(counts: PassCounts) -> PassCounts:
    """The same, with the runs exchanged: :func:`fisher_lower` then tests for *more* passes in B."""
    return PassCounts(counts.passed_b, counts.trials_b, counts.passed_a, counts.trials_a)


def hypergeometric(counts: PassCounts) -> tuple[int, list[float]]:
    """The least possible number of passes in B, and the chance of it and of each number above.

    Given the passes of both together, K, if nothing changed: C(n_b, x)·C(n_a, K-x)/C(n_a+n_b, K).
    """
    passed_a, trials_a, passed_b, trials_b = counts
    passes = passed_a + passed_b
    first, last = max(0, passes - trials_a), min(trials_b, passes)
    ways = _log_ways(trials_a + trials_b, passes)
    return first, [
        exp(_log_ways(trials_b, x) + _log_ways(trials_a, passes - x) - ways)
        for x in range(first, last + 1)
    ]


def _log_ways(of: int, chosen: int) -> float:
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)


def fisher_lower(counts: PassCounts) -> float:
    """Fisher's exact test, one-sided: p of so few passes in B if its rate were that of A."""
    first, chances = hypergeometric(counts)
    return min(1.0, sum(chances[: counts.passed_b - first + 1]))


def least_fisher_lower(counts: PassCounts) -> float:
    """The smallest p that :func:`fisher_lower` can give for cases with as many passes in all."""
    return hypergeometric(counts)[1][0]


def stratified(cases: Iterable[PassCounts]) -> float:
    """Two-sided p over all cases: did passes become more or fewer?

    The statistic is the sum of B's passes over the cases, its distribution the convolution of
    theirs; p: the chance of all sums no likelier than the one seen. Where every case ran once in
    each run, this is McNemar's test; for a single case, Fisher's.
    """
    chances = [1.0]
    seen = 0
    for counts in cases:
        first, own = hypergeometric(counts)
        if len(own) > 1:
            seen += counts.passed_b - first
            sums = [0.0] * (len(chances) + len(own) - 1)
            for shift, factor in enumerate(own):
                for index, chance in enumerate(chances, start=shift):
                    sums[index] += chance * factor
            chances = sums
    return min(1.0, sum(chance for chance in chances if chance <= chances[seen] * _SAME))


# Many tests at once: how to keep the chance of *any* false alarm at the stated rate.


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected so that calling each one <= α a finding is wrong at all with chance <= α.

    Of m p-values in ascending order, the i-th (from 1) becomes the largest of (m-j+1)·p_(j) for
    j <= i, at most 1. The order of the result is that of `p_values`.
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, place in enumerate(order):
        largest = max(largest, (len(p_values) - rank) * p_values[place])
        corrected[place] = min(1.0, largest)
    return corrected


def worth_testing(least: Sequence[float], alpha: float) -> list[bool]:
    """Which of many exact tests can matter, by the smallest p that each could have given.

    Tarone's rule: those that reach α/K, K being the smallest number such that at most K can. The
    choice sees only what the tests condition on, so Holm's correction among them holds as stated.
    """
    share = 1
    while sum(p <= alpha / share for p in least) > share:
        share += 1
    return [p <= alpha / share for p in least]


# When a series of counts became worse: the likeliest place, and if it is more than chance.


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

    The smallest of the p of len(series) - 1 places is multiplied by their number (Bonferroni).
    Every element has a verdict.
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
