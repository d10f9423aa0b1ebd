"""Where a series of counts fell: the same p as the exact test, and few false alarms."""

from __future__ import annotations

import random

import pytest

from skillup.stats.change_point import Passes, fall, rise
from skillup.stats.exact import PassCounts, fisher_lower


def series(*counts: tuple[int, int]) -> list[Passes]:
    return [Passes(*one) for one in counts]


@pytest.mark.parametrize(
    ("a", "b"), [((3, 3), (0, 3)), ((9, 10), (0, 10)), ((70, 90), (20, 40)), ((1, 300), (0, 9))]
)
def test_of_two_runs_it_is_the_exact_test(a: tuple[int, int], b: tuple[int, int]) -> None:
    found = fall(series(a, b))
    assert found is not None
    assert (found.place, found.before, found.since) == (1, a, b)
    assert found.p == pytest.approx(fisher_lower(PassCounts(*a, *b)), rel=1e-9)


def test_the_likeliest_place_is_found_and_its_p_counts_for_all_places() -> None:
    found = fall(series((9, 10), (9, 10), (0, 10), (1, 10)))
    assert found is not None
    assert (found.place, found.before, found.since) == (2, (18, 20), (1, 20))
    assert found.p == pytest.approx(3 * fisher_lower(PassCounts(18, 20, 1, 20)), rel=1e-9)


@pytest.mark.parametrize("counts", [[], [(1, 1)], [(2, 2), (2, 2)], [(0, 3), (1, 3)]])
def test_what_is_not_lower_did_not_fall(counts: list[tuple[int, int]]) -> None:
    assert fall(series(*counts)) is None


def test_a_rise_is_a_fall_of_failures() -> None:
    found = rise(series((0, 3), (3, 3)))
    assert found is not None
    assert found.p == pytest.approx(0.05)
    assert rise(series((3, 3), (0, 3))) is None


@pytest.mark.parametrize(("runs", "trials", "rate"), [(20, 3, 0.9), (20, 10, 0.9), (8, 5, 0.5)])
def test_a_steady_case_is_rarely_said_to_have_fallen(runs: int, trials: int, rate: float) -> None:
    lots = random.Random(7)
    alarms = 0
    for _ in range(1000):
        passed = [sum(lots.random() < rate for _ in range(trials)) for _ in range(runs)]
        found = fall([Passes(count, trials) for count in passed])
        alarms += found is not None and found.p <= 0.05
    assert alarms <= 50


def test_a_planted_fall_is_dated_to_the_night() -> None:
    lots = random.Random(7)
    rates = [0.9] * 12 + [0.3] * 4
    near = 0
    for _ in range(200):
        passed = [sum(lots.random() < rate for _ in range(10)) for rate in rates]
        found = fall([Passes(count, 10) for count in passed])
        near += found is not None and found.p <= 0.05 and found.place == 12
    assert near >= 180
