"""Exact tests: published values, brute force, and how often they are wrong."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import pytest

from skillup.stats.exact import (
    PassCounts,
    fisher_lower,
    least_fisher_lower,
    mcnemar,
    stratified,
    swapped,
)

ONCE_WORSE, ONCE_BETTER = PassCounts(1, 1, 0, 1), PassCounts(0, 1, 1, 1)


def test_fishers_tea_tasting() -> None:
    """R. A. Fisher (1935), ch. 2: three of four cups told right, 17 in 70."""
    assert fisher_lower(PassCounts(3, 4, 1, 4)) == pytest.approx(17 / 70)


def test_fishers_convicted_twins() -> None:
    """R. A. Fisher (1934), Statistical methods for research workers, §21.02: 1 in 2150."""
    assert fisher_lower(PassCounts(10, 13, 2, 17)) == pytest.approx(1 / 2150, rel=1e-3)


@pytest.mark.parametrize(
    "counts", [PassCounts(3, 4, 1, 3), PassCounts(2, 3, 2, 4), PassCounts(4, 4, 1, 2)]
)
def test_fisher_counts_the_ways_to_deal_out_the_same_verdicts(counts: PassCounts) -> None:
    passed_a, held_a, passed_b, held_b = counts
    verdicts = [1] * (passed_a + passed_b)
    verdicts += [0] * (held_a + held_b - len(verdicts))
    deals = [sum(verdicts[i] for i in b) for b in combinations(range(len(verdicts)), held_b)]
    assert fisher_lower(counts) == pytest.approx(sum(d <= passed_b for d in deals) / len(deals))


def test_the_other_direction_is_the_runs_exchanged() -> None:
    worse, better = PassCounts(3, 3, 0, 3), PassCounts(0, 3, 3, 3)
    assert fisher_lower(worse) == fisher_lower(swapped(better)) == pytest.approx(1 / 20)
    assert fisher_lower(better) == pytest.approx(1)


def test_the_least_p_is_that_of_the_worst_outcome_with_as_many_passes() -> None:
    worst = fisher_lower(PassCounts(3, 3, 0, 3))
    assert least_fisher_lower(PassCounts(2, 3, 1, 3)) == pytest.approx(worst)
    assert least_fisher_lower(PassCounts(3, 3, 3, 3)) == 1


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("held", [(3, 3), (5, 2), (4, 6)])
def test_fisher_is_wrong_no_more_often_than_it_says(rate: float, held: tuple[int, int]) -> None:
    """Computed over all outcomes of two runs of the same case."""

    def chance(passed: int, trials: int) -> float:
        return comb(trials, passed) * rate**passed * (1 - rate) ** (trials - passed)

    for alpha in (0.05, 0.2):
        wrong = sum(
            chance(a, held[0]) * chance(b, held[1])
            for a, b in product(range(held[0] + 1), range(held[1] + 1))
            if fisher_lower(PassCounts(a, held[0], b, held[1])) <= alpha
        )
        assert wrong <= alpha


@pytest.mark.parametrize(
    ("worse", "better", "p"), [(1, 9, 22 / 1024), (6, 16, 0.0525), (0, 5, 0.0625), (4, 4, 1.0)]
)
def test_mcnemar_is_the_sign_test_of_what_changed(worse: int, better: int, p: float) -> None:
    """Tables of the sign test, as in S. Siegel (1956), table D, doubled."""
    assert mcnemar(worse, better).p == pytest.approx(p, abs=5e-5)
    assert mcnemar(better, worse) == mcnemar(worse, better)


def test_nothing_changed_is_no_evidence() -> None:
    assert mcnemar(0, 0) == (1, 1)
    assert stratified([]) == (1, 1)
    assert stratified([PassCounts(3, 3, 3, 3)]) == (1, 1)


def test_the_least_p_says_whether_the_data_could_have_shown_anything() -> None:
    assert mcnemar(1, 2).least == 0.25
    assert stratified([ONCE_WORSE, ONCE_BETTER, ONCE_WORSE]).least == 0.25


@pytest.mark.parametrize(("worse", "better"), [(0, 3), (1, 9), (6, 16), (4, 4)])
def test_with_one_trial_each_the_stratified_test_is_mcnemars(worse: int, better: int) -> None:
    cases = [ONCE_WORSE] * worse + [ONCE_BETTER] * better + [PassCounts(1, 1, 1, 1)] * 7
    assert stratified(cases) == pytest.approx(mcnemar(worse, better))


def test_with_one_case_the_stratified_test_is_fishers_two_sided_one() -> None:
    """The tea tasting again: 34 in 70."""
    assert stratified([PassCounts(3, 4, 1, 4)]).p == pytest.approx(34 / 70)


def test_the_stratified_test_counts_the_ways_to_deal_out_the_verdicts_of_each_case() -> None:
    cases = [PassCounts(3, 3, 1, 2), PassCounts(2, 3, 1, 3), PassCounts(1, 1, 0, 2)]
    sums = [0]
    for passed_a, held_a, passed_b, held_b in cases:
        verdicts = [1] * (passed_a + passed_b)
        verdicts += [0] * (held_a + held_b - len(verdicts))
        own = [sum(verdicts[i] for i in b) for b in combinations(range(len(verdicts)), held_b)]
        sums = [total + one for total in sums for one in own]
    chances = {total: sums.count(total) / len(sums) for total in sums}
    seen = sum(case.passed_b for case in cases)
    expected = sum(c for c in chances.values() if c <= chances[seen] + 1e-12)
    assert stratified(cases).p == pytest.approx(expected)


def test_many_small_losses_are_found_together_where_none_is_alone() -> None:
    cases = [PassCounts(3, 3, 2, 3)] * 8
    assert all(fisher_lower(case) == pytest.approx(0.5) for case in cases)
    assert stratified(cases).p < 0.01
