"""Under a tool check's ``args``: a value or conditions, never a misspelt condition."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.schema.checks import Check


def check(condition: Any) -> Check:
    return Check.model_validate({"tool_called": {"kind": "shell", "args": {"command": condition}}})


@pytest.mark.parametrize("condition", [{"match": "x"}, {"contain": "x"}, {"equal": 1}])
def test_a_misspelt_condition_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check(condition)


@pytest.mark.parametrize("value", ["x", 3, None, ["a"], {"nested": {"a": 1}}, {}])
def test_any_other_value_means_equality(value: Any) -> None:
    assert check(value).spec.args["command"].equals == value
