"""Variables in judge prompts of the user's own."""

from __future__ import annotations

from skillup.schema.judge import fill, unknown_variables, uses


def test_variables_are_told_from_what_only_looks_like_them() -> None:
    assert unknown_variables("{{input}} {{ x }} {{x}} {{ 1+1 }} { {y} } {{}}") == ["x", "1+1", ""]
    assert uses("{{ output }}", "output")
    assert not uses("{output}", "output")


def test_a_value_is_not_looked_at_again() -> None:
    assert fill("{{input}} {{x}}", lambda name: "{{output}}") == "{{output}} {{x}}"
