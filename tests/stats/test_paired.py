"""Paired differences: the interval covers, the test keeps its rate, both repeat themselves."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from skillup.stats.paired import bootstrap_interval, sign_test_of_mean

# Charles Darwin's 15 pairs of maize, in eighths of an inch, as in Fisher (1935), ch. 3.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_darwins_maize_as_fisher_counted_it() -> None:
    """Fisher counted 1726 of the 2¹⁵ choices of signs as at least as extreme: 5.27 %."""
    p = sign_test_of_mean([float(d) for d in DARWIN]).p
    assert p == pytest.approx(1726 / 2**15, abs=0.008)


def test_few_pairs_are_counted_out_whole() -> None:
    values = [0.5, -0.25, 0.125, 0.75, 0.3]
    signs = product((1, -1), repeat=5)
    sums = [abs(sum(s * v for s, v in zip(sign, values, strict=True))) for sign in signs]
    expected = sum(total >= abs(sum(values)) - 1e-9 for total in sums) / 32
    assert sign_test_of_mean(values) == (expected, 2 / 32)


def test_pairs_that_do_not_differ_tell_nothing() -> None:
    assert sign_test_of_mean([0.0, 0.0]) == (1, 1)
    assert sign_test_of_mean([0.5, 0.0, 0.0]) == sign_test_of_mean([0.5])


def test_the_same_scores_give_the_same_numbers() -> None:
    values = [random.gauss(0.1, 0.3) for random in [Random(3)] for _ in range(30)]
    assert len(set(values)) == 30
    assert bootstrap_interval(values) == bootstrap_interval(values)
    assert sign_test_of_mean(values) == sign_test_of_mean(values)


@pytest.mark.parametrize(("pairs", "draws"), [(99, 10_000), (100, 2_000)])
def test_from_100_values_on_fewer_draws_do(pairs: int, draws: int) -> None:
    random = Random(6)
    values = [random.gauss(0, 1) for _ in range(pairs)]
    assert bootstrap_interval(values) == bootstrap_interval(values, draws=draws)
    assert bootstrap_interval(values) != bootstrap_interval(values, draws=draws // 2)


@pytest.mark.parametrize("pairs", [13, 16, 17])
def test_more_pairs_are_drawn_and_come_near_to_all_choices_of_signs(pairs: int) -> None:
    random = Random(pairs)
    values = [random.gauss(0.3, 1) for _ in range(pairs)]
    sums = [0.0]
    for value in values:
        sums = [total + signed for total in sums for signed in (value, -value)]
    p = sum(abs(total) >= abs(sum(values)) - 1e-9 for total in sums) / len(sums)
    assert sign_test_of_mean(values).p == pytest.approx(p, abs=4 * (p * (1 - p) / 10_000) ** 0.5)
    assert sign_test_of_mean([1.0] * pairs).p < 0.002


def test_one_pair_has_no_interval_and_equal_ones_a_point() -> None:
    assert bootstrap_interval([0.5]) is None
    assert bootstrap_interval([0.25] * 4) == (0.25, 0.25)


def test_more_confidence_is_a_wider_interval() -> None:
    values = [0.1, -0.2, 0.3, 0.25, -0.05, 0.0, 0.4, 0.1]
    wide, narrow = bootstrap_interval(values, 0.99), bootstrap_interval(values, 0.8)
    assert wide is not None
    assert narrow is not None
    assert wide.low < narrow.low < sum(values) / 8 < narrow.high < wide.high


@pytest.mark.parametrize("pairs", [8, 25])
def test_the_interval_covers_the_true_difference_as_often_as_it_says(pairs: int) -> None:
    random = Random(4)
    covered = 0
    for _ in range(300):
        differences = [random.gauss(0.2, 0.5) for _ in range(pairs)]
        interval = bootstrap_interval(differences, draws=1000)
        assert interval is not None
        covered += interval.low <= 0.2 <= interval.high
    assert 0.92 <= covered / 300 <= 0.985


def test_the_test_is_wrong_no_more_often_than_it_says() -> None:
    random = Random(5)

    # Skewed and with ties, as scores are: mostly no difference, sometimes a large one.
    def noise() -> float:
        return random.choice([0, 0, 0, 0.25, -0.25, 0.5, -0.5, 1, -1])

    alarms = sum(sign_test_of_mean([noise() for _ in range(15)]).p <= 0.05 for _ in range(600))
    assert alarms / 600 <= 0.05 + 2 * (0.05 * 0.95 / 600) ** 0.5
