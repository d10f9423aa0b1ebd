"""Rules of single models: scripts, arguments of tool checks, judge prompts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.schema.checks import Check
from skillup.schema.judge import fill, unknown_variables, uses


def check(condition: Any) -> Check:
    return Check.model_validate({"tool_called": {"kind": "shell", "args": {"command": condition}}})


@pytest.mark.parametrize("condition", [{"match": "x"}, {"contain": "x"}, {"equal": 1}])
def test_a_misspelt_condition_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check(condition)


@pytest.mark.parametrize("value", ["x", 3, None, ["a"], {"nested": {"a": 1}}, {}])
def test_any_other_value_means_equality(value: Any) -> None:
    assert check(value).spec.args["command"].equals == value


def test_variables_are_told_from_what_only_looks_like_them() -> None:
    assert unknown_variables("{{input}} {{ x }} {{x}} {{ 1+1 }} { {y} } {{}}") == ["x", "1+1", ""]
    assert uses("{{ output }}", "output")
    assert not uses("{output}", "output")


def test_a_value_is_not_looked_at_again() -> None:
    assert fill("{{input}} {{x}}", lambda name: "{{output}}") == "{{output}} {{x}}"
