"""What the checks of a trial say of skills, wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.analysis.observation import skill_uses
from skillup.schema.grade import CheckResult, FollowUpGrade, TurnGrade
from tests.support.graded import a_check, a_grade, a_turn


def used(skill: str = "x", *, passed: bool = True, **more: Any) -> CheckResult:
    return a_check("skill_used", expected=skill, passed=passed, **more)


def not_used(skill: str = "x", *, passed: bool = True, **more: Any) -> CheckResult:
    return a_check("skill_not_used", expected=f"no use of {skill}", passed=passed, **more)


def of(kind: str, *children: CheckResult, **more: Any) -> CheckResult:
    return a_check(kind, children=list(children), **more)


def seen(*checks: CheckResult, **more: Any) -> set[tuple[str, bool, bool]]:
    """Skill, expected, used."""
    return {
        (use.skill, use.expected, use.used)
        for use in skill_uses(a_grade(assertions=list(checks), **more))
    }


def failure(check: CheckResult) -> CheckResult:
    """As a judge's failure rule stands in a grade: turned round."""
    turned = {"role": "failure", "passed": not check.passed, "expected": f"not: {check.expected}"}
    return check.model_copy(update=turned)


@pytest.mark.parametrize(
    ("check", "expected", "was_used"),
    [
        (used(), True, True),
        (used(passed=False), True, False),
        (not_used(), False, False),
        (not_used(passed=False), False, True),
        (of("all_of", used(), a_check("contains")), True, True),
        (of("none_of", used(passed=False)), False, False),
        (of("none_of", not_used()), True, False),
        (of("none_of", of("any_of", used(), a_check("contains"))), False, True),
        (of("any_of", used()), True, True),
        (failure(used()), False, True),
        (failure(used(passed=False)), False, False),
        (failure(not_used()), True, False),
        (failure(of("any_of", used(), a_check("contains"))), False, True),
    ],
)
def test_what_was_expected_and_what_happened(
    check: CheckResult, expected: bool, was_used: bool
) -> None:
    assert seen(check) == {("x", expected, was_used)}


@pytest.mark.parametrize(
    "check",
    [
        of("any_of", used("x"), used("y")),
        of("none_of", of("all_of", used("x"), used("y"))),
        of("none_of", of("none_of", used("x"), used("y"))),
        used(assertable=False, passed=False),
        used(error="broken", passed=False),
    ],
)
def test_alternatives_and_what_could_not_be_looked_at_say_nothing(check: CheckResult) -> None:
    assert seen(check) == set()


def test_a_trial_is_one_observation_for_each_skill_and_expectation() -> None:
    assert seen(used(), used("X", passed=False), not_used("y"), not_used("y", passed=False)) == {
        ("x", True, False),
        ("y", False, True),
    }
    assert seen(used(), not_used()) == {("x", True, True), ("x", False, False)}


def test_checks_of_turns_count_and_those_of_shared_turns_count_once() -> None:
    own, shared = a_turn(1, checks=[used()]), a_turn(1, checks=[used()], held_by="c/e/with_skill/1")
    assert seen(turns=[own]) == {("x", True, True)}
    assert seen(turns=[shared]) == set()


def test_a_turn_that_went_on_with_a_follow_up_is_an_observation_of_its_first_message() -> None:
    """V18: what a follow-up healed is evidence, and what it asks for itself counts as well."""

    def held(first: CheckResult, *later: CheckResult) -> TurnGrade:
        label = "first follow-up"
        follow_up = FollowUpGrade(
            label=label, asked_by=[0], content="And?", response="Done.", passed=True, score=1,
            checks=list(later),
        )  # fmt: skip
        return a_turn(1, checks=[first], follow_ups=[follow_up], passed_on=label)

    assert seen(turns=[held(used(passed=False), used())]) == {("x", True, False)}
    assert seen(turns=[held(used(), a_check("contains"))]) == {("x", True, True)}
    assert seen(turns=[held(a_check("contains", passed=False), used())]) == {("x", True, True)}
    assert seen(turns=[held(not_used(passed=False), not_used())]) == {("x", False, True)}
