"""Values taken out of a turn."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.checks.text import capture
from skillup.schema.case import Capture
from tests.support.records import call, make_turn

TURN = make_turn(
    'Found 12 files, Order-7.\n```json\n{"count": 12, "none": null, "list": [1, true]}\n```',
    calls=[call("Bash", "shell", command="ls"), call("Read", "read", file_path="a")],
    results=["a.txt", ""],
    output_tokens=9,
)


def rule(**fields: Any) -> Capture:
    return Capture.model_validate({"variable": "it", **fields})


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"pattern": r"(?P<value>\d+) (files?)"}, "12"),
        ({"pattern": r"Order-(\d+)"}, "7"),
        ({"jsonpath": "$.transcript.tool_results[0].call_id"}, "call-1"),
        ({"jsonpath": "$.transcript.tool_calls[?(@.kind == 'read')].arguments.file_path"}, "a"),
        ({"jsonpath": "$.response_json.count"}, "12"),
        ({"jsonpath": "$.response_json.list[1]"}, "true"),
        ({"jsonpath": "$.usage.output_tokens"}, "9"),
        ({"pattern": "absent (.)", "default": "none"}, "none"),
        ({"jsonpath": "$.transcript.tool_results[1].content", "default": "empty"}, "empty"),
    ],
)
def test_value_is_captured(fields: dict[str, Any], value: str) -> None:
    captured = capture([rule(**fields)], TURN)

    assert captured.miss is None
    assert captured.values == {"it": value}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"pattern": r"absent (\d)"}, "found nothing"),
        ({"pattern": "Found( *)12"}, "empty value"),
        ({"pattern": "(?P<value>x)?Found"}, "found nothing"),
        ({"jsonpath": "$.response_json.absent"}, "found nothing"),
        ({"jsonpath": "$.response_json.none"}, "empty value"),
        ({"jsonpath": "$.transcript.tool_results[1].content"}, "empty value"),
    ],
)
def test_miss_says_which_variable_and_why(fields: dict[str, Any], why: str) -> None:
    captured = capture([rule(**fields)], TURN)

    assert captured.values == {}
    assert captured.miss is not None
    assert captured.miss.startswith("capture `it`: ")
    assert why in captured.miss


def test_values_before_a_miss_are_kept_and_those_after_are_not_sought() -> None:
    rules = [
        Capture(variable="one", pattern=r"(\d+)"),
        Capture(variable="two", pattern="(absent)"),
        Capture(variable="three", pattern="(Order)"),
    ]

    captured = capture(rules, TURN)

    assert captured.values == {"one": "12"}
    assert "capture `two`" in (captured.miss or "")


def test_catastrophic_pattern_is_a_miss_and_no_hang() -> None:
    captured = capture([rule(pattern="(?P<value>(a|aa)+)$")], make_turn("a" * 60 + "!"))

    assert "too long" in (captured.miss or "")
