"""Corrections for many tests."""

from __future__ import annotations

from random import Random

import pytest

from skillup.stats.exact import holm, worth_testing


def test_holm_by_hand() -> None:
    """0.005·4, 0.01·3, 0.03·2, 0.04·1, and no smaller than the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1, 1]


def test_holm_keeps_the_chance_of_any_false_alarm() -> None:
    """Of ten true hypotheses any is rejected with a chance of 1 - 0.995¹⁰ = 0.0489."""
    random = Random(2)
    alarms = sum(min(holm([random.random() for _ in range(10)])) <= 0.05 for _ in range(20_000))
    assert alarms / 20_000 == pytest.approx(0.0489, abs=3 * (0.0489 / 20_000) ** 0.5)


def test_tests_that_could_not_come_out_are_left_out() -> None:
    """Tarone's own reasoning: nine that can reach 0.05/9, and many that cannot reach 0.05."""
    assert worth_testing([0.05, 1.0, 0.5, 1.0], 0.05) == [True, False, False, False]
    assert worth_testing([0.004] * 9 + [0.05] * 20, 0.05) == [True] * 9 + [False] * 20
    assert worth_testing([0.05, 0.05], 0.05) == [False, False]
    assert worth_testing([], 0.05) == []
