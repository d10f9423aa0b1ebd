"""What the skill adds, paired by case, and how often its interval is right."""

from __future__ import annotations

from math import sqrt
from random import Random
from statistics import fmean
from typing import Any

import pytest

from skillup.analysis import analyse, uplift_interval
from skillup.schema.grade import Grade, Uplift
from skillup.stats import PassCounts, interval_of_mean, mean_difference, stratified
from tests.support.graded import a_grade, a_turn, grades_of

# What the skill adds, paired by case.


def both(case_id: str, with_skill: str, without: str) -> list[Grade]:
    return grades_of(case_id, with_skill) + grades_of(case_id, without, variant="without_skill")


def uplift_of(*grades: Grade) -> dict[str | None, Uplift]:
    return {item.case_id: item for item in analyse(grades, {}).uplift}


def test_one_case_has_newcombes_interval_in_its_own_row_and_that_of_its_suite() -> None:
    found = uplift_of(*both("a", "pppp", "pfff"))

    for item in (found["a"], found[None]):
        assert item.uplift == 0.75
        assert (item.low, item.high) == pytest.approx(mean_difference([PassCounts(1, 4, 4, 4)]))
        assert item.p == pytest.approx(stratified([PassCounts(1, 4, 4, 4)]))
        assert (item.with_skill.passed, item.without_skill.passed) == (4, 1)


def test_a_suite_is_the_mean_over_its_cases_however_often_each_was_held() -> None:
    found = uplift_of(*both("a", "p" * 10, "f" * 10), *both("b", "p", "p"), *both("c", "pf", "ff"))

    suite = found[None]
    assert suite.uplift == pytest.approx((1 + 0 + 0.5) / 3)
    assert suite.cases == 3
    between = interval_of_mean([1, 0, 0.5])
    assert between is not None
    assert suite.low is not None
    assert suite.low <= between.low
    counts = [PassCounts(0, 10, 10, 10), PassCounts(1, 1, 1, 1), PassCounts(0, 2, 1, 2)]
    assert suite.p == pytest.approx(stratified(counts))


def test_cases_that_all_gain_alike_do_not_make_a_suite_surer_than_its_trials() -> None:
    found = uplift_of(*both("a", "p", "f"), *both("b", "p", "f"), *both("c", "p", "f"))

    suite = found[None]
    assert suite.uplift == suite.high == 1
    assert suite.low is not None
    assert suite.low < 0.5


@pytest.mark.parametrize("without", ["ee", "ss", ""])
def test_a_case_without_a_verdict_in_one_variant_is_named_and_not_counted(without: str) -> None:
    found = uplift_of(*both("a", "pp", "ff"), *both("b", "pp", without))

    assert found[None].not_counted == ["b"]
    assert (found[None].uplift, found[None].cases) == (1, 1)
    assert found["b"].uplift is found["b"].low is found["b"].p is None
    assert found["b"].with_skill.judged == 2


def test_what_trials_took_is_told_over_cases_that_tell_it_in_both() -> None:
    def taking(case_id: str, variant: str, tokens: int | None, cost: float | None) -> Grade:
        usage = {"input_tokens": tokens, "output_tokens": 5}
        turns = [a_turn(1), a_turn(2)] if variant == "with_skill" else [a_turn(1)]
        about: dict[str, Any] = {"usage": usage, "cost_usd": cost, "turns": turns}
        return a_grade(case_id, variant=variant, **about)

    suite = uplift_of(
        taking("a", "with_skill", 95, 2.0),
        taking("a", "without_skill", 45, None),
        taking("b", "with_skill", 195, 1.0),
        taking("b", "without_skill", None, 0.5),
    )[None]

    assert suite.tokens is not None
    assert (suite.tokens.with_skill, suite.tokens.without_skill) == (100, 50)
    assert (suite.tokens.difference, suite.tokens.cases, suite.tokens.low) == (50, 1, None)
    assert suite.cost_usd is not None
    assert (suite.cost_usd.difference, suite.cost_usd.cases) == (0.5, 1)
    assert suite.turns is not None
    assert (suite.turns.difference, suite.turns.cases) == (1, 2)
    assert suite.turns.low is suite.turns.high is None


def test_that_the_skill_is_used_is_not_what_it_adds() -> None:
    """V17: the verdict apart from that counts; a case with no other is named and not counted."""
    found = uplift_of(
        *grades_of("only", "pp", status_apart="NONE"),
        *grades_of("only", "ff", status_apart="NONE", variant="without_skill"),
        *grades_of("same", "pp", status_apart="PASS"),
        *grades_of("same", "ff", status_apart="PASS", variant="without_skill"),
        *both("gain", "pp", "pf"),
    )
    suite = found[None]
    assert (suite.cases, suite.uplift, suite.not_counted) == (2, 0.25, ["only"])
    assert found["same"].uplift == 0
    assert found["only"].uplift is None
    assert suite.turns is not None
    assert suite.turns.cases == 3, "what trials took is told of all that have a verdict"


@pytest.mark.parametrize(
    "rates",
    [
        [(0.5, 0.8)] * 4 + [(0.2, 0.9)] * 3 + [(0.9, 0.9)] * 5,
        [(0.0, 1.0)] * 6,
        [(1.0, 1.0)] * 6 + [(0.7, 0.7)] * 2,
    ],
)
def test_the_interval_of_a_suites_uplift_covers_it_at_least_as_often_as_it_says(
    rates: list[tuple[float, float]],
) -> None:
    """Runs of five trials, without and with the skill, whose cases pass with these chances."""
    random, true, runs = Random(1), fmean(b - a for a, b in rates), 200

    def passed(rate: float) -> int:
        return sum(random.random() < rate for _ in range(5))

    intervals = [
        uplift_interval([PassCounts(passed(a), 5, passed(b), 5) for a, b in rates])
        for _ in range(runs)
    ]
    limits = [interval for interval in intervals if interval is not None]
    assert len(limits) == runs
    covered = fmean(low - 1e-9 <= true <= high + 1e-9 for low, high in limits)
    assert covered >= 0.95 - 3 * sqrt(0.95 * 0.05 / runs)
    # Nor is that because it says nothing.
    assert fmean(high - low for low, high in limits) < 0.6
