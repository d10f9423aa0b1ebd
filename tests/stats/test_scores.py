"""Intervals and tests of paired scores and of rates over cases."""

from __future__ import annotations

from itertools import product
from math import pi
from random import Random

import pytest

from skillup.stats.exact import PassCounts
from skillup.stats.paired import (
    bootstrap_interval,
    interval_over_cases,
    mean_difference,
    sign_test_of_mean,
)
from skillup.stats.proportions import t_between, t_quantile, wilson

# Paired differences: the interval covers, the test keeps its rate, both repeat themselves.

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


# Differences of pass rates, against published numbers.


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [  # Newcombe (1998), table II, method 10: first - second
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_intervals_of_differences_are_those_of_the_paper(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    assert mean_difference([PassCounts(*second, *first)]) == pytest.approx((low, high), abs=5e-5)


def test_exchanging_the_sides_mirrors_the_interval() -> None:
    low, high = mean_difference([PassCounts(3, 10, 9, 10)])
    assert mean_difference([PassCounts(9, 10, 3, 10)]) == pytest.approx((-high, -low))


def test_the_mean_over_one_case_is_that_case_and_more_cases_make_it_surer() -> None:
    counts = PassCounts(1, 3, 3, 3)
    low, high = mean_difference([counts])
    assert (low, high) == mean_difference([counts])
    low_of_16, high_of_16 = mean_difference([counts] * 16)
    assert 2 / 3 - low_of_16 == pytest.approx((2 / 3 - low) / 4)
    assert high_of_16 < high


def test_cases_that_all_differ_alike_still_leave_something_open() -> None:
    low, high = mean_difference([PassCounts(0, 1, 1, 1)] * 10)
    assert 0.5 < low < 1
    assert high == 1


def test_no_cases_have_no_interval() -> None:
    with pytest.raises(ValueError, match="no cases"):
        mean_difference([])


# How sure a pass rate is where cases were held several times.


@pytest.mark.parametrize("cases", [[(1, 1), (0, 1), (1, 1)], [(3, 4)], [(2, 4), (1, 2), (5, 10)]])
def test_where_cases_do_not_differ_it_is_wilsons(cases: list[tuple[int, int]]) -> None:
    passed, held = (sum(numbers) for numbers in zip(*cases, strict=True))
    assert interval_over_cases(cases) == wilson(passed, held)


def test_without_a_case_there_is_none() -> None:
    assert interval_over_cases([]) is None


@pytest.mark.slow
def test_it_covers_the_true_rate_where_cases_differ_as_trials_alone_would_not() -> None:
    """Cases pass with rates between 0 and 1, ten trials each; the mean of the rates is 0.5."""
    random = Random(1)
    covered = by_trials = 0
    for _ in range(200):
        rates = [random.random() for _ in range(15)]
        cases = [(sum(random.random() < rate for _ in range(10)), 10) for rate in rates]
        found = interval_over_cases(cases)
        assert found is not None
        alone = wilson(sum(passed for passed, _ in cases), 150)
        covered += found.low <= 0.5 <= found.high
        by_trials += alone.low <= 0.5 <= alone.high
    assert covered / 200 >= 0.92
    assert by_trials / 200 < 0.85


# Quantiles of Student's t against the printed tables.


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (30, 2.042), (120, 1.980), (500, 1.965)],
)
def test_the_quantiles_of_the_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(quantile, abs=6e-3 if degrees > 400 else 6e-4)


def test_a_quarter_of_cauchy_and_the_closed_form_of_two() -> None:
    assert t_between(1, 1) == pytest.approx(0.5)
    assert t_between(3, 2) == pytest.approx(3 / 11**0.5)
    assert t_between(1e9, 1) == pytest.approx(1, abs=1 / pi * 1e-8)


def test_no_degrees_of_freedom_are_refused() -> None:
    with pytest.raises(ValueError, match="0 degrees"):
        t_between(1, 0)
