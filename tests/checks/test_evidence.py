"""What results show to people."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.checks.evaluate import evaluate
from skillup.checks.registry import describe
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from tests.support.records import call, make_record, make_turn


def ask(spec: dict[str, Any], *turns: Any) -> CheckResult:
    return evaluate(Check.model_validate(spec), make_record(*turns).context(1))


def test_excerpt_is_the_piece_with_its_surroundings_on_one_line() -> None:
    result = ask({"contains": "needle"}, "x" * 100 + "\nthe NEEDLE\there\x1b[2J" + "y" * 100)

    assert result.excerpt.startswith("…xxx")
    assert "⏎the NEEDLE here␛[2J" in result.excerpt
    assert result.excerpt.endswith("y…")
    assert len(result.excerpt) < 150


def test_offending_piece_of_a_long_command_is_shown() -> None:
    command = "echo " + "a " * 300 + "&& rm -rf data && " + "b " * 300
    spec = {"tool_not_called": {"kind": "shell", "args": {"command": {"matches": r"\brm\b"}}}}

    result = ask(spec, make_turn(calls=[call("Bash", "shell", command=command)]))

    assert "rm -rf data" in result.excerpt
    assert result.found == "called once"


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (
            {"tool_not_called": {"kind": "shell", "args": {"command": {"matches": r"\brm\b"}}}},
            r"tool_not_called shell args.command ~ /\brm\b/",
        ),
        ({"contains": {"any": ["a", "b"], "none": ["c"]}}, 'contains any of "a", "b"; none of "c"'),
        ({"matches": "a.b", "turn": 2}, "matches /a.b/ (turn 2)"),
        ({"tool_called": {"name": "Bash", "min": 2, "max": 3}}, "tool_called Bash, min 2, max 3"),
        ({"json": {"path": "$.a", "equals": None}}, "json $.a = null"),
        ({"files_exist": ["a", "b/*"]}, "files_exist a, b/*"),
        ({"file_contains": {"path": "a", "matches": "b"}}, "file_contains a ~ /b/"),
        ({"tool_sequence": {"calls": ["A", {"kind": "web"}]}}, "tool_sequence in_order: A, web"),
        ({"any_of": [{"equals": "a"}, "polite"]}, 'any_of [equals "a"; rubric "polite"]'),
        (
            {"turn_response_contains": {"turn": 2, "contains_any": ["x"]}},
            'turn_response_contains "x" (turn 2)',
        ),
        ({"max_cost_usd": 0.5}, "max_cost_usd $0.5"),
    ],
)
def test_check_in_one_line(spec: dict[str, Any], line: str) -> None:
    assert describe(Check.model_validate(spec)) == line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ({"not_contains": "deleted"}, 'no "deleted"'),
        ({"not_contains": ["a", "b"]}, 'no "a", "b"'),
        ({"tool_not_called": "bash"}, "no bash"),
        ({"skill_not_used": "log-keeper"}, "no log-keeper"),
        ({"files_not_exist": "*.tmp"}, "no *.tmp"),
        ({"none_of": [{"contains": "a"}]}, 'no [contains "a"]'),
        ({"turn_response_not_contains": {"turn": 1, "not_contains": ["a"]}}, 'no "a"'),
        ({"contains": "deleted"}, '"deleted"'),
    ],
    ids=str,
)
def test_what_is_expected_by_a_negated_check_is_that_it_is_not_there(
    check: dict[str, Any], expected: str
) -> None:
    result = ask(check, "x")

    assert result.expected == expected
    assert "no " not in result.name.removeprefix(result.kind)
