"""Many tests at once: how to keep the chance of *any* false alarm at the stated rate."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected so that calling each one <= α a finding is wrong at all with chance <= α.

    Of m p-values in ascending order, the i-th (from 1) becomes the largest of
    (m-j+1)·p_(j) for j <= i, at most 1. It needs no independence, and rejects all that
    Bonferroni's m·p does, and more. We hold the chance of any false alarm rather than their share
    (Benjamini-Hochberg), because one false alarm is what wakes a team.

    Source: S. Holm (1979), A simple sequentially rejective multiple test procedure,
    Scandinavian Journal of Statistics 6. The order of the result is that of `p_values`.
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
    could not come out significant whatever happened, so they need not weaken the correction: a
    hundred steady cases do not hide one that broke. The choice sees only what the tests condition
    on, never their results, so Holm's correction among those that are kept holds as stated.

    Source: R. E. Tarone (1990), A modified Bonferroni method for discrete data, Biometrics 46.
    """
    share = 1
    while sum(p <= alpha / share for p in least) > share:
        share += 1
    return [p <= alpha / share for p in least]
