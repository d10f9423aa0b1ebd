"""Two runs: what became of each case, the numbers over all of them, and gates."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.history.comparison import (
    CaseChange,
    Comparison,
    cases_without_verdict,
    changes,
    check_gates,
    gates_by_suite,
    given_gates,
)
from skillup.history.index import compare_with_index
from skillup.history.runs import RunOutcomes, by_case
from tests.support.outcomes import a_key, a_run

# What became of each case, and how sure that is.


def changed(
    before: dict[str, str], after: dict[str, str], confidence: float = 0.95
) -> dict[str, CaseChange]:
    """By case id."""
    # A dict of texts is none of texts and keys to mypy, as it may be added to.
    a = by_case(a_run("a", before).trials)  # type: ignore[arg-type]
    b = by_case(a_run("b", after).trials)  # type: ignore[arg-type]
    return {change.key.case_id: change for change in changes(a, b, confidence)}


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        ("p", "f", "newly_failing"),
        ("f", "p", "newly_passing"),
        ("p", "p", "still_passing"),
        ("f", "f", "still_failing"),
        ("p", "e", "not_run"),
        ("e", "f", "not_run"),
        ("p", "n", "not_run"),
        ("p", "s", "skipped"),
        ("s", "e", "not_run"),
        ("", "p", "only_in_b"),
        ("p", "", "only_in_a"),
        ("ppp", "pfp", "unsure"),
        ("pfp", "fpp", "still_failing"),
        ("ppe", "epp", "still_passing"),
    ],
)
def test_a_case_has_one_change(a: str, b: str, change: str) -> None:
    before = {"case": a} if a else {"other": "p"}
    after = {"case": b} if b else {"other": "p"}
    assert changed(before, after)["case"].change == change


def test_three_trials_each_are_just_enough_for_one_case_that_broke() -> None:
    case = changed({"case": "ppp", "steady": "ppp"}, {"case": "fff", "steady": "ppp"})["case"]
    assert case.sure
    assert case.p == pytest.approx(1 / 20)


def test_steady_cases_do_not_hide_one_that_broke() -> None:
    steady = {f"steady-{n}": "ppppp" for n in range(200)}
    case = changed({**steady, "case": "ppppp"}, {**steady, "case": "fffff"})["case"]
    assert case.sure
    assert case.p_corrected == pytest.approx(1 / 252)


def test_many_cases_that_waver_make_it_harder_to_be_sure() -> None:
    wavering = {f"wavering-{n}": "ppppfpfpfp" for n in range(30)}
    before, after = {"case": "pppppppppp"}, {"case": "ppppffffff"}
    assert changed(before, after)["case"].sure
    assert changed({**wavering, **before}, {**wavering, **after})["case"].change == "unsure"


def test_passed_always_and_now_never_counts_even_where_it_cannot_be_sure() -> None:
    """Two cases that broke, three trials each: neither is sure by itself after the correction."""
    found = changed({"one": "ppp", "two": "ppp"}, {"one": "fff", "two": "fff"})
    assert {case.change for case in found.values()} == {"newly_failing"}
    assert not any(case.sure for case in found.values())


def test_engines_and_variants_are_told_apart() -> None:
    other, bare = a_key("case", engine="other"), a_key("case", variant="without_skill")
    a = by_case(a_run("a", {"case": "p", other: "p", bare: "f"}).trials)
    b = by_case(a_run("b", {"case": "p", other: "f", bare: "f"}).trials)
    found = {change.key: change.change for change in changes(a, b, 0.95)}
    assert found == {
        a_key("case"): "still_passing",
        other: "newly_failing",
        bare: "still_failing",
    }


# The numbers over all cases of two runs.


def test_verdicts_of_single_trials_are_tested_by_mcnemar() -> None:
    a = a_run("a", {"one": "p", "two": "p", "three": "f", "four": "e"})
    b = a_run("b", {"one": "f", "two": "p", "three": "p", "four": "f"})
    verdicts = Comparison(a, b, 0.95).verdicts
    assert (verdicts.cases, verdicts.worse, verdicts.better) == (3, 1, 1)
    assert verdicts.p == 1


def test_scores_are_paired_by_case_and_errors_have_none() -> None:
    a = a_run("a", {"one": "pp", "two": "pp", "three": "e"})
    b = a_run("b", {"one": "pf", "two": "pp", "three": "f"})
    scores = Comparison(a, b, 0.95).scores
    assert scores is not None
    assert (scores.cases, scores.a, scores.b) == (2, 1.0, 0.75)
    assert scores.interval is not None
    assert scores.interval.low <= -0.25 <= scores.interval.high


def test_one_case_on_two_engines_is_one_pair_of_scores() -> None:
    other = a_key("one", engine="other")
    comparison = Comparison(
        a_run("a", {"one": "p", other: "p"}), a_run("b", {"one": "p", other: "f"}), 0.95
    )
    assert comparison.scores is not None
    assert (comparison.scores.cases, comparison.scores.b) == (1, 0.5)
    assert comparison.verdicts.cases == 2


def test_cost_is_that_of_a_trial_over_cases_that_tell_it_in_both() -> None:
    a = a_run("a", {"one": "p", "two": "p"}, cost=0.10)
    b = a_run("b", {"one": "ppp", "two": "e"}, cost=0.15)
    cost = Comparison(a, b, 0.95).cost
    assert cost is not None
    assert cost.cases == 1
    assert (cost.a, cost.b) == pytest.approx((0.10, 0.15))
    assert cost.increase == pytest.approx(0.5)


def test_a_baseline_is_listed_and_not_counted() -> None:
    bare = a_key("one", variant="without_skill")
    comparison = Comparison(
        a_run("a", {"one": "p", bare: "p"}), a_run("b", {"one": "p", bare: "f"}), 0.95
    )
    assert [case.key for case in comparison.of("newly_failing")] == [bare]
    assert comparison.verdicts.worse == 0
    assert comparison.scores is not None
    assert comparison.scores.a == comparison.scores.b


@pytest.mark.parametrize("between", ["eeeee", "sssss"])
def test_an_earlier_run_stands_in_for_an_error_and_for_a_skip(between: str) -> None:
    """Passed on Monday, an error on Tuesday, failed on Wednesday: it is newly failing. So, too, if
    what it depends on met the error.
    """
    monday, tuesday = a_run("monday", {"one": "ppppp"}), a_run("tuesday", {"one": between})
    wednesday = a_run("wednesday", {"one": "fffff"})
    assert cases_without_verdict(tuesday, wednesday) == {a_key("one")}
    earlier = {key: (monday, own) for key, own in by_case(monday.trials).items()}
    comparison = Comparison(tuesday, wednesday, 0.95, earlier)
    assert [(case.change, case.sure) for case in comparison.cases] == [("newly_failing", True)]
    assert comparison.earlier == {a_key("one"): "monday"}


def test_a_run_of_a_few_cases_in_between_hides_nothing() -> None:
    night, between = a_run("1", {"one": "p" * 9 + "f", "two": "p"}), a_run("2", {"two": "p"})
    after = a_run("3", {"one": "f" * 10, "two": "p", "new": "f"})
    assert cases_without_verdict(between, after) == {a_key("one"), a_key("new")}
    earlier = {key: (night, own) for key, own in by_case(night.trials).items()}
    del earlier[a_key("two")]
    comparison = Comparison(between, after, 0.95, earlier)
    assert {case.key.case_id: case.change for case in comparison.cases} == {
        "one": "newly_failing",
        "two": "still_passing",
        "new": "only_in_b",
    }
    assert comparison.notes == ["1 case without a verdict in A compared with 1"]


# Gates: what they count, what they cannot tell, and who says what they are.


def met(a: RunOutcomes, b: RunOutcomes, **given: Any) -> dict[str, bool]:
    """Which gates are met, by name."""
    gates = gates_by_suite(b, given)
    results = check_gates(compare_with_index(a, b, gates, ""), gates)
    return {result.gate: result.passed for result in results}


@pytest.mark.parametrize(("limit", "expected"), [(0, False), (1, False), (2, True)])
def test_new_failures_are_counted_by_case(limit: int, expected: bool) -> None:
    a, b = a_run("a", {"x": "p", "y": "p", "z": "f"}), a_run("b", {"x": "f", "y": "f", "z": "f"})
    assert met(a, b, max_new_failures=limit) == {"max_new_failures": expected}


def test_a_failure_that_may_be_chance_is_no_new_failure() -> None:
    a, b = a_run("a", {"x": "ppppp"}), a_run("b", {"x": "pppff"})
    assert met(a, b, max_new_failures=0) == {"max_new_failures": True}
    assert met(a, b, max_new_failures=0, confidence=0.7) == {"max_new_failures": False}


def test_an_error_is_no_new_failure_and_has_a_gate_of_its_own() -> None:
    a, b = a_run("a", {"x": "ppp", "y": "p"}), a_run("b", {"x": "eee", "y": "n"})
    assert met(a, b, max_new_failures=0, max_not_run=1) == {
        "max_new_failures": True,
        "max_not_run": False,
    }
    assert met(a, b, max_not_run=2) == {"max_not_run": True}


def test_the_pass_rate_is_over_verdicts_of_b() -> None:
    a, b = a_run("a", {"x": "p"}), a_run("b", {"x": "pppppppppf", "y": "eee", "z": "s"})
    assert met(a, b, min_pass_rate=0.9) == {"min_pass_rate": True}
    assert met(a, b, min_pass_rate=0.91) == {"min_pass_rate": False}


def test_each_case_counts_the_same_in_the_pass_rate_however_often_it_was_held() -> None:
    a, b = a_run("a", {"x": "p"}), a_run("b", {"x": "p" * 30, "y": "fff"})
    (result,) = check_gates(Comparison(a, b, 0.95), gates_by_suite(b, {"min_pass_rate": 0.6}))
    assert (result.found, result.passed) == (0.5, False)
    assert result.finding == "50.0% passed, the mean of 2 cases"


def test_a_gate_that_is_not_met_never_says_that_its_limit_was_reached() -> None:
    """V22: with as many digits as it takes."""
    for marks, limit, said in [
        ("p" * 2999 + "f", 1.0, "> 99.9% passed"),
        ("p" * 299 + "f", 1.0, "99.7% passed"),
        ("p" * 8999 + "f" * 1001, 0.9, "89.99% passed"),
    ]:
        b = a_run("b", {"x": marks})
        gates = gates_by_suite(b, {"min_pass_rate": limit})
        (result,) = check_gates(Comparison(a_run("a", {"x": "p"}), b, 0.95), gates)
        assert (result.passed, result.finding) == (False, said)


@pytest.mark.parametrize(("cost", "expected"), [(0.12, True), (0.121, False), (None, False)])
def test_a_cost_that_is_not_told_does_not_meet_its_gate(cost: float | None, expected: bool) -> None:
    a, b = a_run("a", {"x": "p"}, cost=0.1), a_run("b", {"x": "p"}, cost=cost)
    assert met(a, b, max_cost_increase=0.2) == {"max_cost_increase": expected}


def test_gates_are_those_that_b_recorded_and_the_command_line_outranks_them() -> None:
    a = a_run("a", {"x": "p"}, gates={"max_new_failures": 5, "min_pass_rate": 0.9})
    b = a_run("b", {"x": "f"}, gates={"max_new_failures": 1})
    assert met(a, b) == {"max_new_failures": True}
    assert met(a, b, max_new_failures=0) == {"max_new_failures": False}


def test_a_baseline_that_fails_is_no_regression() -> None:
    bare = a_key("x", variant="without_skill")
    a, b = a_run("a", {"x": "p", bare: "p"}), a_run("b", {"x": "p", bare: "f"})
    assert met(a, b, max_new_failures=0, min_pass_rate=1) == {
        "max_new_failures": True,
        "min_pass_rate": True,
    }


def test_rules_of_the_command_line_are_read_as_in_the_suite() -> None:
    assert given_gates(["max_new_failures=0", "min_pass_rate=0.9", "max_cost_increase=1e-1"]) == {
        "max_new_failures": 0,
        "min_pass_rate": 0.9,
        "max_cost_increase": 0.1,
    }


@pytest.mark.parametrize(
    "rule", ["max_new_failures", "nothing=1", "min_pass_rate=2", "max_not_run=0.5", "confidence=x"]
)
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(UsageError, match="--gate"):
        given_gates([rule])


@pytest.mark.parametrize("confidence", ["0.9999999999999999", "1", "1.0", "-0.1"])
def test_a_confidence_that_nothing_can_have_is_refused_with_what_can_be(confidence: str) -> None:
    with pytest.raises(UsageError, match=r"confidence=.*equal to 0(\.999999999)?$"):
        given_gates([f"confidence={confidence}"])
    assert given_gates(["confidence=0.999999999"]) == {"confidence": 0.999999999}
