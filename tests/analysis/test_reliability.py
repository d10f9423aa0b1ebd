"""How often a case passes, in whole and turn by turn."""

from __future__ import annotations

import pytest

from skillup.analysis import analyse
from skillup.schema.analysis import Analysis, CaseReliability
from skillup.schema.grade import Grade
from skillup.stats.proportions import wilson
from tests.support.graded import a_check, a_grade, a_result, a_turn, grades_of


def analysed(*grades: Grade, **more: list[str]) -> Analysis:
    suites = {"demo": {"cases": {"c": "c"}}}
    return analyse(a_result(grades, **more), {"suites": suites})


def only(*grades: Grade, **more: list[str]) -> CaseReliability:
    (case,) = analysed(*grades, **more).cases
    return case


def conversation(trial: int, turns: str) -> Grade:
    """A trial whose turns pass (p) or not (f); `-`: not held, as one before it failed."""
    held = [
        a_turn(n, status="skipped", score=0) if mark == "-" else a_turn(n, passed=mark == "p")
        for n, mark in enumerate(turns, start=1)
    ]
    return a_grade("c", "p" if set(turns) == {"p"} else "f", trial, turns=held)


def test_rates_are_over_verdicts_and_the_rest_is_counted_apart() -> None:
    case = only(*grades_of("c", "ppfes"), not_run=["c/e/with_skill/6", "c/e/with_skill/7"])

    assert (case.rate.passed, case.rate.held, case.rate.rate) == (2, 3, 2 / 3)
    assert (case.rate.low, case.rate.high) == wilson(2, 3)
    assert (case.error, case.skip, case.not_run) == (1, 1, 2)
    assert case.flaky


def test_for_each_k_the_chances_that_one_and_that_all_of_k_trials_pass() -> None:
    case = only(*grades_of("c", "ppf"))

    assert [item.k for item in case.at_k] == [1, 2, 3]
    assert [item.pass_at_k for item in case.at_k] == pytest.approx([2 / 3, 1, 1])
    assert [item.pass_hat_k for item in case.at_k] == pytest.approx([2 / 3, 1 / 3, 0])


@pytest.mark.parametrize("marks", ["ppp", "fff", "pe", "p"])
def test_a_case_that_always_ends_alike_is_not_flaky(marks: str) -> None:
    assert not only(*grades_of("c", marks)).flaky


def test_a_case_that_was_never_held_has_no_rate() -> None:
    case = only(*grades_of("c", "ee"))

    assert (case.rate.held, case.rate.rate, case.rate.low, case.rate.high) == (0, None, None, None)
    assert (case.at_k, case.turns) == ([], [])


def test_the_curve_falls_where_a_trial_first_failed() -> None:
    case = only(*(conversation(n, t) for n, t in enumerate(["ppp", "pfp", "pff", "pp-"], 1)))

    assert [turn.rate.passed for turn in case.turns] == [4, 2, 2]
    assert [turn.rate.held for turn in case.turns] == [4, 4, 3]
    assert [turn.first_failures for turn in case.turns] == [0, 2, 0]
    assert [turn.unfailed for turn in case.turns] == [1, 0.5, 0.5]


def test_a_turn_that_failed_its_gate_or_any_check_did_not_pass() -> None:
    gate = a_check("contains", passed=False, role="post_condition")
    gated = a_turn(status="failed", checks=[gate])
    partly = a_turn(checks=[a_check("contains"), a_check("contains", passed=False, weight=0.1)])
    for turn in (gated, partly):
        (told,) = only(a_grade("c", "p", turns=[turn])).turns
        assert (told.rate.passed, told.first_failures) == (0, 1)


def test_a_turn_that_passed_on_a_follow_up_passed() -> None:
    asked = {"asked_by": [0], "content": "?", "response": "!", "passed": True, "score": 1}
    follow_up = {"label": "first follow-up", **asked, "checks": [a_check("contains")]}
    turn = a_turn(passed=False, passed_on="first follow-up", follow_ups=[follow_up])

    assert only(a_grade(turns=[turn])).turns[0].rate.passed == 1


def test_turns_of_trials_without_a_verdict_do_not_count() -> None:
    case = only(a_grade("c", "p", 1), a_grade("c", "e", 2), a_grade("c", "s", 3))

    assert case.turns[0].rate.held == 1
    assert case.turns[0].unfailed == 1


def test_a_turn_that_trials_share_counts_once() -> None:
    own = a_grade("c", "p", 1, turns=[a_turn(1), a_turn(2)])
    shared = a_turn(1, held_by="c/e/with_skill/1")
    others = [a_grade("c", "f", n, turns=[shared, a_turn(2, passed=False)]) for n in (2, 3)]
    case = only(own, *others)

    assert [turn.rate.held for turn in case.turns] == [1, 3]
    assert [turn.unfailed for turn in case.turns] == [1, 1 / 3]


def test_turns_shared_with_another_case_count_in_each_trial() -> None:
    trials = [
        a_grade("c/b", "p", n, turns=[a_turn(1, held_by=f"c/a/e/with_skill/{n}"), a_turn(2)])
        for n in (1, 2)
    ]
    assert [turn.rate.held for turn in only(*trials).turns] == [2, 2]
