"""What the trials of a run say together."""

from __future__ import annotations

from math import sqrt
from random import Random
from statistics import fmean
from typing import Any

import pytest

from skillup.analysis import analyse, uplift_interval, with_analysis
from skillup.schema.grade import (
    Analysis,
    CheckResult,
    FollowUpGrade,
    Grade,
    RunResult,
    Triggering,
    TurnGrade,
    Uplift,
)
from skillup.schema.line import line_of, skill_uses
from skillup.stats import PassCounts, interval_of_mean, mean_difference, stratified, wilson
from tests.support.graded import a_check, a_grade, a_result, a_turn, grades_of

# The whole: order, what was not run, decisions, engines.


def analysis_of(result: RunResult, run_info: dict[str, Any]) -> Analysis:
    found = with_analysis(result, run_info).analysis
    assert found is not None
    return found


def info(*cases: str, **request: object) -> dict[str, Any]:
    suites = {"demo": {"cases": {name: name for name in cases}, "gates": {"min_pass_rate": 0.5}}}
    return {"suites": suites, "request": request}


def test_a_decision_is_told_where_the_run_asked_for_one() -> None:
    result = a_result(grades_of("c", "pep" + 17 * "p"), not_needed=["c/e/with_skill/21"])

    assert analysis_of(result, info("c")).cases[0].decision is None
    (case,) = analysis_of(result, info("c", until_decided=True)).cases
    assert case.decision is not None
    assert (case.decision.verdict, case.decision.threshold) == ("above", 0.5)
    assert case.decision.trials < case.rate.judged == 19
    assert (case.decision.saved, case.not_run) == (1, 0)
    (case,) = analysis_of(result, info("c", until_decided=True, pass_rate=0.99)).cases
    assert case.decision is not None
    assert (case.decision.verdict, case.decision.threshold) == ("undecided", 0.99)


def test_an_engine_is_summed_up_over_its_verdicts_with_the_skill() -> None:
    usage = {"input_tokens": 10, "output_tokens": 2}
    grades = [
        a_grade("a", "p", usage=usage, cost_usd=0.5),
        a_grade("b", "f", usage=usage),
        a_grade("c", "e", usage=usage, cost_usd=9.0),
        a_grade("a", "f", variant="without_skill"),
    ]
    (column,) = analysis_of(a_result(grades), {}).engines

    assert (column.rate.passed, column.rate.judged, column.error) == (1, 2, 1)
    assert (column.score, column.turns, column.tokens) == (0.5, 1, 12)
    assert (column.cost_usd, column.duration_ms) == (0.5, 1000)


def test_it_is_of_trials_with_the_skill_and_a_case_on_two_engines_is_one() -> None:
    grades = [
        *grades_of("c", "pp", engine="x"),
        *grades_of("c", "ff", engine="y"),
        a_grade("c", "f", variant="without_skill"),
    ]
    found = analysis_of(a_result(grades), {}).overall
    assert found is not None
    assert (found.passed, found.judged, found.cases) == (2, 4, 1)


# How often a case passes.


def test_rates_are_over_verdicts_and_the_rest_is_counted_apart() -> None:
    not_run = ["c/e/with_skill/6", "c/e/with_skill/7"]
    (case,) = analysis_of(a_result(grades_of("c", "ppfes"), not_run=not_run), info("c")).cases

    assert (case.rate.passed, case.rate.judged, case.rate.rate) == (2, 3, 2 / 3)
    assert (case.rate.low, case.rate.high) == wilson(2, 3)
    assert (case.error, case.skip, case.not_run) == (1, 1, 2)
    assert case.flaky


# Precision, recall and F1 of skills.

INFO = {"suites": {"demo": {"cases": {}, "skills": ["x"], "distractors": ["other"]}}}


def trials(expected: str, outcomes: str, **more: Any) -> list[Grade]:
    """`expected`: skill_used or skill_not_used; a trial for each letter: the check passed (p)."""
    return [
        a_grade(expected, trial=n, **{"assertions": [
            a_check(expected, expected="x", passed=mark == "p")], **more})
        for n, mark in enumerate(outcomes, start=1)
    ]  # fmt: skip


def triggering(*grades: Grade) -> list[Triggering]:
    return analysis_of(a_result(grades), INFO).triggering


def test_each_trial_is_one_of_four_outcomes() -> None:
    (found,) = triggering(*trials("skill_used", "pppf"), *trials("skill_not_used", "ppfff"))

    assert (found.used_rightly, found.not_used_wrongly) == (3, 1)
    assert (found.used_wrongly, found.not_used_rightly) == (3, 2)
    assert (found.precision, found.recall) == (0.5, 0.75)
    assert found.f1 == 2 * 0.5 * 0.75 / (0.5 + 0.75)
    assert (found.skill, found.distractors) == ("x", ["other"])


def test_trials_without_the_skill_and_those_without_a_verdict_do_not_count() -> None:
    baseline = trials("skill_used", "ff", variant="without_skill")
    broken = trials("skill_used", "f", status="ERROR")
    (found,) = triggering(*trials("skill_used", "p"), *baseline, *broken)

    assert (found.used_rightly, found.not_used_wrongly) == (1, 0)


# What the checks of a trial say of skills, wherever they stand.


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
    own, shared = (
        a_turn(1, checks=[used()]),
        a_turn(1, checks=[used()], counted_by="c/e/with_skill/1"),
    )
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


def both(case_id: str, with_skill: str, without: str) -> list[Grade]:
    return grades_of(case_id, with_skill) + grades_of(case_id, without, variant="without_skill")


def uplift_of(*grades: Grade) -> dict[str | None, Uplift]:
    return {item.case_id: item for item in analyse(map(line_of, grades), {}).uplift}


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
