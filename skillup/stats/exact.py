"""Exact tests of pass counts: no approximation, so that they hold for three trials, too.

What each is, and where it comes from, is in `docs/statistics.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

    Given the number of passes in both runs together, K = passed_a + passed_b, those of B are
    hypergeometric if nothing changed: P(x) = C(n_b, x)·C(n_a, K-x)/C(n_a+n_b, K).
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
    """Fisher's exact test, one-sided: p of so few passes in B if its rate were that of A.

    It never rejects more often than it says; with few trials, less.
    """
    first, chances = hypergeometric(counts)
    return min(1.0, sum(chances[: counts.passed_b - first + 1]))


def least_fisher_lower(counts: PassCounts) -> float:
    """The smallest p that :func:`fisher_lower` can give for cases with as many passes in all."""
    return hypergeometric(counts)[1][0]


def stratified(cases: Iterable[PassCounts]) -> float:
    """Two-sided p over all cases: did passes become more or fewer?

    Within each case, given its passes in both runs together, those of B are hypergeometric if
    nothing changed; their sum over the cases is the statistic, and its distribution the
    convolution of theirs. p: the chance of all sums no likelier than the one seen.
    Where every case ran once in each run, this is McNemar's test; for a single case, Fisher's.
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
    j <= i, at most 1. We bound the chance of any false alarm rather than their share, because one
    false alarm is what wakes a team. The order of the result is that of `p_values`.
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

    Let K be the smallest number such that at most K tests can reach α/K; these are kept. The rest
    could not come out significant whatever happened, so they need not weaken the correction. The
    choice sees only what the tests condition on, never their results, so Holm's correction among
    those that are kept holds as stated.
    """
    share = 1
    while sum(p <= alpha / share for p in least) > share:
        share += 1
    return [p <= alpha / share for p in least]
