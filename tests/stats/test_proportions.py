"""Intervals of pass rates, and pass@k: published values, brute force, coverage."""

from __future__ import annotations

from itertools import combinations
from math import comb

import pytest

from skillup.stats.proportions import at_each_k, percent, wilson


@pytest.mark.parametrize("digits", [0, 1])
def test_only_everything_reads_as_everything_and_only_nothing_as_nothing(digits: int) -> None:
    """V22: 299 of 300 are not 100 %, and 1 of 300 is not 0 %."""
    for held in (1, 3, 100, 201, 300, 2000, 100_000):
        for passed in {0, 1, held // 2, held - 1, held}:
            shown = percent(passed / held, digits)
            assert (float(shown[:-1].strip("<> ")) == 100) == (passed == held), shown
            assert (float(shown[:-1].strip("<> ")) == 0) == (passed == 0), shown
    assert (percent(2 / 3), percent(2 / 3, 1), percent(299 / 300)) == ("67%", "66.7%", "99.7%")
    assert percent(sum([0.1] * 10)) == "100%"


@pytest.mark.parametrize(
    ("passed", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_values_of_newcombes_table(
    passed: int, trials: int, low: float, high: float
) -> None:
    """R. G. Newcombe (1998), Statistics in Medicine 17, table I, method 3."""
    assert wilson(passed, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_is_symmetric_and_ends_at_0_and_1() -> None:
    assert wilson(0, 5).low == 0
    assert wilson(5, 5).high == 1
    assert wilson(2, 7).low == pytest.approx(1 - wilson(5, 7).high)


def test_wilson_covers_the_true_rate_about_as_often_as_it_says() -> None:
    """Computed, not drawn: the chance, over all outcomes, that the interval holds the rate."""
    rates = [step / 100 for step in range(5, 96)]
    coverages = []
    for rate in rates:
        chances = [comb(20, c) * rate**c * (1 - rate) ** (20 - c) for c in range(21)]
        inside = [wilson(c, 20).low <= rate <= wilson(c, 20).high for c in range(21)]
        coverages.append(sum(p for p, within in zip(chances, inside, strict=True) if within))
    assert sum(coverages) / len(coverages) == pytest.approx(0.95, abs=0.01)
    assert min(coverages) > 0.89


@pytest.mark.parametrize(("passed", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_proportion_is_refused(passed: int, trials: int) -> None:
    with pytest.raises(ValueError, match="no proportion"):
        wilson(passed, trials)


@pytest.mark.parametrize("passed", range(6))
def test_pass_at_k_and_pass_hat_k_count_the_choices_of_k_trials(passed: int) -> None:
    trials = [True] * passed + [False] * (5 - passed)
    told = list(at_each_k(passed, 5))
    assert [one.k for one in told] == [1, 2, 3, 4, 5]
    for k, pass_at_k, pass_hat_k in told:
        choices = list(combinations(trials, k))
        assert pass_at_k == pytest.approx(sum(map(any, choices)) / len(choices))
        assert pass_hat_k == pytest.approx(sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_both_are_unbiased(k: int) -> None:
    """Their mean over all outcomes of 6 trials is what k fresh trials would do."""
    rate = 0.3
    chances = [comb(6, c) * rate**c * (1 - rate) ** (6 - c) for c in range(7)]
    told = [list(at_each_k(c, 6))[k - 1] for c in range(7)]
    at_least_one = sum(p * one.pass_at_k for p, one in zip(chances, told, strict=True))
    all_of_them = sum(p * one.pass_hat_k for p, one in zip(chances, told, strict=True))
    assert at_least_one == pytest.approx(1 - (1 - rate) ** k)
    assert all_of_them == pytest.approx(rate**k)


def test_of_a_thousand_trials_each_k_is_right_to_the_last_digit() -> None:
    for k, pass_at_k, pass_hat_k in at_each_k(400, 1000):
        if k in (1, 17, 399, 400, 401, 600, 601, 1000):
            assert pass_at_k == 1 - comb(600, k) / comb(1000, k)
            assert pass_hat_k == comb(400, k) / comb(1000, k)


def test_without_trials_there_is_no_k() -> None:
    assert list(at_each_k(0, 0)) == []
    with pytest.raises(ValueError, match="3 of 2"):
        next(at_each_k(3, 2))
