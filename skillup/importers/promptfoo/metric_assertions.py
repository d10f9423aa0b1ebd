"""Assertions on what a run took: time, money, tokens, calls; and on fields of a JSON answer."""

from __future__ import annotations

import json
import re
from typing import Any

from skillup.importers.promptfoo.assertion import (
    Assertion,
    Check,
    Parts,
    one,
    shared,
)
from skillup.importers.promptfoo.values import SourceValue, as_text, tidy

_NO_MODEL_CALLS = "the model's calls are not counted here"
_NOT_COUNTED = {
    "max_llm_calls": _NO_MODEL_CALLS,
    "max_tokens": "only output tokens have a limit here (`max_tokens`), not input and output",
    "max_total": "only output tokens have a limit here (`max_tokens`), not input and output",
    "max_total_tokens": "only output tokens have a limit here (`max_tokens`), not both",
    "max_input": "input tokens have no limit here",
    "target_exploration_ratio": "the share of reading tools is not measured here",
    "exploration_tolerance": "the share of reading tools is not measured here",
}


def latency(assertion: Assertion) -> Parts:
    """``latency``: milliseconds."""
    limit = assertion.number("threshold", "max_ms", "max_duration_ms", "value")
    if limit is None:
        return assertion.drop("no limit is given", "left out")
    return one({"max_duration_seconds": tidy(limit / 1000)})


def cost(assertion: Assertion) -> Parts:
    """``cost``: US dollars."""
    limit = assertion.number("threshold", "budget", "max_usd", "max_cost_usd", "value")
    if limit is None:
        return assertion.drop("no limit is given", "left out: the cost is in every result")
    return one({"max_cost_usd": limit})


def token_usage(assertion: Assertion) -> Parts:
    """``token-usage``: limits on input, output and both."""
    return _limits(assertion)


def execution_metrics(assertion: Assertion) -> Parts:
    """``execution-metrics``: several limits, each an equal part of the score."""
    return _limits(assertion)


def _limits(assertion: Assertion) -> Parts:
    checks: list[Check] = []
    if (calls := assertion.number("max_tool_calls")) is not None:
        checks.append({"tool_called": {"name": "*", "min": 0, "max": int(calls)}})
    if (output := assertion.number("max_output", "max_output_tokens")) is not None:
        checks.append({"max_tokens": int(output)})
    if (dollars := assertion.number("max_cost_usd")) is not None:
        checks.append({"max_cost_usd": dollars})
    if (duration := assertion.number("max_duration_ms")) is not None:
        checks.append({"max_duration_seconds": tidy(duration / 1000)})
    for name, why in _NOT_COUNTED.items():
        node = assertion.node.get(name)
        if node is not None:
            node.note(why, "left out")
    if not checks:
        return assertion.drop("nothing of it can be measured here", "left out")
    return shared(checks)


def field_accuracy(assertion: Assertion) -> Parts:
    """``field-accuracy``: fields of the answer, compared with those of the expected output."""
    fields = assertion.node.get("fields")
    expected = _as_data(assertion.background.expected)
    if fields is None or not isinstance(expected, dict | list):
        return assertion.drop("there is no expected output to take fields from", "left out")
    parts = [part for field in fields.elements() if (part := _field(field, expected)) is not None]
    total = sum(weight for _, weight in parts)
    if not total:
        return assertion.drop("no field can be compared", "left out")
    how = assertion.node.get("aggregation")
    if how is not None and how.text() == "all_or_nothing":
        return one({"all_of": [check for check, _ in parts]})
    return [(check, weight / total) for check, weight in parts]


def _as_data(expected: Any) -> Any:
    if isinstance(expected, list) and expected and isinstance(expected[-1], dict):
        content = expected[-1].get("content")
        expected = content if content is not None else expected
    if isinstance(expected, str):
        try:
            return json.loads(expected)
        except ValueError:
            return None
    return expected


def _field(node: SourceValue, expected: Any) -> tuple[Check, float] | None:
    path_node, match = node.get("path"), node.get("match")
    path = path_node.text() if path_node is not None else ""
    value: Any = expected
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            node.note(f"the expected output has no `{path}`", "left out")
            return None
    how = match.text() if match is not None else "exact"
    if how != "exact":
        node.changed(f"`{path}` compared by `{how}`", f"it must equal {as_text(value)}")
    for name in ("tolerance", "relative", "formats"):
        if (detail := node.get(name)) is not None:
            detail.use()
    weight_node, required = node.get("weight"), node.get("required")
    weight = weight_node.number() if weight_node is not None else 1
    check: Check = {"json": {"path": f"$.{path}", "equals": value}, "case_sensitive": True}
    if required is not None and required.take() is True:
        check["required"] = True
    return check, float(1 if weight is None else weight)
