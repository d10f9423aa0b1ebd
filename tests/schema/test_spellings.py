"""Checks as other tools spell them, arguments of tool checks, and prompts of judges."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.checks.evaluate import evaluate
from skillup.checks.registry import describe
from skillup.schema.checks import Check
from skillup.schema.judge import fill, unknown_variables, uses
from tests.support.records import make_record

ANSWER = make_record("  Hello (World)\n")


@pytest.mark.parametrize(
    ("check", "passes"),
    [
        ({"type": "contains", "value": "hello", "case_sensitive": True}, False),
        ({"type": "icontains_any", "value": ["x", "hello"]}, True),
        ({"type": "not-contains", "value": "hello"}, False),
        ({"type": "contains-any", "value": ["x", "world"], "negate": True}, False),
        ({"type": "not-contains", "value": "World", "negate": True}, True),
        ({"type": "starts-with", "value": "hello"}, True),
        ({"type": "starts-with", "value": "hello", "case_sensitive": True}, False),
        ({"type": "not-ends-with", "value": "(World)"}, False),
        ({"type": "equals", "value": "hello (world)", "case_sensitive": True}, False),
        ({"type": "regex", "value": "^ *hello"}, False),
        ({"type": "regex", "value": "^ *hello", "flags": "i"}, True),
        ({"type": "not-is-json"}, True),
        ({"type": "latency", "value": 2000}, True),
        ({"type": "cost", "threshold": 1.0}, False),
    ],
    ids=str,
)
def test_type_means_what_its_key_means(check: dict[str, Any], passes: bool) -> None:
    """V5: the other spelling of a check keeps the one rule for letter case."""
    assert evaluate(Check.model_validate(check), ANSWER.context(1)).passed is passes


def test_what_stands_beside_the_type_is_kept() -> None:
    check = Check.model_validate(
        {"type": "contains", "value": "x", "negate": True, "weight": 2.0, "name": "no x"}
    )

    assert (check.weight, check.name, describe(check)) == (2.0, "no x", 'none_of [contains "x"]')


@pytest.mark.parametrize(
    "check",
    [
        {"type": "unheard-of", "value": 1},
        {"type": "regex", "value": "a", "flags": "x"},
        {"type": "contains", "value": "a", "negate": "yes"},
    ],
)
def test_what_has_no_counterpart_is_refused(check: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Check.model_validate(check)


def check(condition: Any) -> Check:
    return Check.model_validate({"tool_called": {"kind": "shell", "args": {"command": condition}}})


@pytest.mark.parametrize("condition", [{"match": "x"}, {"contain": "x"}, {"equal": 1}])
def test_a_misspelt_condition_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check(condition)


@pytest.mark.parametrize("value", ["x", 3, None, ["a"], {"nested": {"a": 1}}, {}])
def test_any_other_value_means_equality(value: Any) -> None:
    assert check(value).key_and_spec()[1].args["command"].equals == value


def test_variables_are_told_from_what_only_looks_like_them() -> None:
    assert unknown_variables("{{input}} {{ x }} {{x}} {{ 1+1 }} { {y} } {{}}") == ["x", "1+1", ""]
    assert uses("{{ output }}", "output")
    assert not uses("{output}", "output")


def test_a_value_is_not_looked_at_again() -> None:
    assert fill("{{input}} {{x}}", lambda name: "{{output}}") == "{{output}} {{x}}"
