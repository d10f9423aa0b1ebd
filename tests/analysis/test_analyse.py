"""The whole: order, what was not run, decisions, engines."""

from __future__ import annotations

import pytest

from skillup.analysis import analyse, with_analysis
from skillup.schema.grade import RunResult
from tests.support.graded import a_grade, a_result, grades_of


def info(*cases: str, **request: object) -> dict[str, object]:
    suites = {"demo": {"cases": {name: name for name in cases}, "gates": {"min_pass_rate": 0.5}}}
    return {"suites": suites, "request": request}


def test_cases_stand_in_the_order_of_the_plan_also_those_never_held() -> None:
    grades = [*grades_of("b", "p", engine="y"), *grades_of("b", "p", engine="x")]
    result = a_result(grades, not_run=["a/y/with_skill/1", "a/x/with_skill/1"])

    found = analyse(result, info("a", "b"))

    places = [(case.case_id, case.engine, case.not_run) for case in found.cases]
    assert places == [("a", "y", 1), ("a", "x", 1), ("b", "y", 0), ("b", "x", 0)]


def test_a_run_without_anything_has_an_analysis_without_anything() -> None:
    assert analyse(a_result([]), {}).cases == []


def test_a_decision_is_told_where_the_run_asked_for_one() -> None:
    result = a_result(grades_of("c", "pep" + 17 * "p"), not_needed=["c/e/with_skill/21"])

    assert analyse(result, info("c")).cases[0].decision is None
    (case,) = analyse(result, info("c", until_decided=True)).cases
    assert case.decision is not None
    assert (case.decision.verdict, case.decision.threshold) == ("above", 0.5)
    assert case.decision.trials < case.rate.held == 19
    assert (case.decision.saved, case.not_run) == (1, 0)
    (case,) = analyse(result, info("c", until_decided=True, pass_rate=0.99)).cases
    assert case.decision is not None
    assert (case.decision.verdict, case.decision.threshold) == ("undecided", 0.99)


def test_outcomes_are_decided_on_in_the_order_of_the_trials() -> None:
    grades = grades_of("c", "p" * 12 + "f" * 12)

    (case,) = analyse(a_result(grades[::-1]), info("c", until_decided=True)).cases

    assert case.decision is not None
    assert case.decision.verdict == "above"


def test_cases_that_cannot_be_told_apart_are_not_said_to_be_undecided() -> None:
    result = a_result([*grades_of("c", "p" * 20), *grades_of("c", "p" * 20)])

    (case,) = analyse(result, info("c", until_decided=True)).cases

    assert (case.rate.held, case.decision) == (40, None)


def test_an_engine_is_summed_up_over_its_verdicts_with_the_skill() -> None:
    usage = {"input_tokens": 10, "output_tokens": 2}
    grades = [
        a_grade("a", "p", usage=usage, cost_usd=0.5),
        a_grade("b", "f", usage=usage),
        a_grade("c", "e", usage=usage, cost_usd=9.0),
        a_grade("a", "f", variant="without_skill"),
    ]
    (column,) = analyse(a_result(grades), {}).engines

    assert (column.rate.passed, column.rate.held, column.error) == (1, 2, 1)
    assert (column.score, column.turns, column.tokens) == (0.5, 1, 12)
    assert (column.cost_usd, column.duration_ms) == (0.5, 1000)


@pytest.mark.parametrize("known", [False, True])
def test_a_result_is_analysed_once(known: bool) -> None:
    result = a_result(grades_of("c", "pf"))
    analysis = analyse(result, {}) if known else None
    given: RunResult = result.model_copy(update={"analysis": analysis})

    found = with_analysis(given, {}).analysis

    assert found == analyse(result, {})
    assert not known or found is analysis
