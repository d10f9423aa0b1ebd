"""Differences of pass rates, against published numbers."""

from __future__ import annotations

import pytest

from skillup.stats.exact import PassCounts
from skillup.stats.paired import mean_difference


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
