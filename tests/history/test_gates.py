"""Gates: what they count, what they cannot tell, and who says what they are."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.history.comparison import compare_runs
from skillup.history.gates import (
    check_gates,
    confidence_of,
    gates_by_suite,
    given_gates,
)
from skillup.history.runs import RunOutcomes
from tests.support.outcomes import a_key, a_run


def met(a: RunOutcomes, b: RunOutcomes, **given: Any) -> dict[str, bool]:
    """Which gates are met, by name."""
    gates = gates_by_suite(b, given)
    results = check_gates(compare_runs(a, b, confidence_of(gates)), gates)
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
    (result,) = check_gates(compare_runs(a, b, 0.95), gates_by_suite(b, {"min_pass_rate": 0.6}))
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
        (result,) = check_gates(compare_runs(a_run("a", {"x": "p"}), b, 0.95), gates)
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
