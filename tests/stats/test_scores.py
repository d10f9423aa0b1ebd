"""Intervals and tests of paired scores and of rates over cases."""

from __future__ import annotations

from random import Random

import pytest

from skillup.stats.exact import PassCounts
from skillup.stats.intervals import (
    interval_of_mean,
    interval_over_cases,
    mean_difference,
    t_quantile,
    wilson,
)


def test_students_own_example() -> None:
    """Student (1908): ten patients slept 1.58 hours longer on average, s = 1.23 (n - 1)."""
    longer = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert interval_of_mean(longer) == pytest.approx((0.700, 2.460), abs=1e-3)
    assert interval_of_mean([0.5]) is None
    assert interval_of_mean([0.25] * 4) is None


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


def test_the_mean_over_one_case_is_that_case_and_more_cases_make_it_surer() -> None:
    counts = PassCounts(1, 3, 3, 3)
    low, high = mean_difference([counts])
    assert (low, high) == mean_difference([counts])
    low_of_16, high_of_16 = mean_difference([counts] * 16)
    assert 2 / 3 - low_of_16 == pytest.approx((2 / 3 - low) / 4)
    assert high_of_16 < high


# How sure a pass rate is where cases were held several times.


@pytest.mark.parametrize("cases", [[(1, 1), (0, 1), (1, 1)], [(3, 4)], [(2, 4), (1, 2), (5, 10)]])
def test_where_cases_do_not_differ_it_is_wilsons(cases: list[tuple[int, int]]) -> None:
    passed, held = (sum(numbers) for numbers in zip(*cases, strict=True))
    assert interval_over_cases(cases) == wilson(passed, held)


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
