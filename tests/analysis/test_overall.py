"""The run's pass rate: sure as far as its cases make it, not its trials."""

from __future__ import annotations

import pytest

from skillup.analysis import analyse
from skillup.schema.analysis import Overall
from skillup.stats.proportions import wilson
from tests.support.graded import a_grade, a_result, grades_of


def overall(*cases: str) -> Overall:
    """Of a case for each text, with a trial for each of its letters."""
    grades = [
        grade for number, marks in enumerate(cases) for grade in grades_of(f"c{number}", marks)
    ]
    found = analyse(a_result(grades), {}).overall
    assert found is not None
    return found


def test_with_one_verdict_for_each_case_it_is_wilsons_interval() -> None:
    found = overall("p", "p", "f", "p", "e")
    assert (found.passed, found.held, found.rate, found.cases) == (3, 4, 0.75, 4)
    assert (found.low, found.high) == pytest.approx(wilson(3, 4, 0.95))


def test_trials_of_the_same_cases_do_not_make_it_surer_than_the_cases_are() -> None:
    cases = ["ppppp"] * 4 + ["fffff"] * 4
    low, high = wilson(20, 40, 0.95)
    found = overall(*cases)
    assert found.low is not None
    assert found.high is not None
    assert (found.held, found.cases, found.rate) == (40, 8, 0.5)
    assert found.low < low - 0.1
    assert found.high > high + 0.1


def test_cases_that_came_out_alike_leave_what_chance_does_within_them() -> None:
    found = overall("ppppp", "ppppp")
    assert (found.low, found.high) == pytest.approx(wilson(10, 10, 0.95))


def test_it_is_of_trials_with_the_skill_and_a_case_on_two_engines_is_one() -> None:
    grades = [
        *grades_of("c", "pp", engine="x"),
        *grades_of("c", "ff", engine="y"),
        a_grade("c", "f", variant="without_skill"),
    ]
    found = analyse(a_result(grades), {}).overall
    assert found is not None
    assert (found.passed, found.held, found.cases) == (2, 4, 1)


def test_without_a_verdict_there_is_none() -> None:
    assert analyse(a_result([a_grade("c", "e")]), {}).overall is None
