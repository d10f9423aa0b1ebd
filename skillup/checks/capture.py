"""Taking values out of a turn, for messages of later turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from skillup.checks.context import CannotEvaluateError, beginning, plain
from skillup.checks.json_values import answer_json, as_text, find_values
from skillup.checks.text import Searcher
from skillup.schema.case import Capture
from skillup.schema.patterns import kept_group
from skillup.schema.record import TurnRecord, Usage


@dataclass(frozen=True, slots=True)
class Captured:
    """The values by variable, up to the first that was not found; what is said of that one."""

    values: dict[str, str] = field(default_factory=dict)
    miss: str | None = None


def capture(rules: Sequence[Capture], turn: TurnRecord) -> Captured:
    """Apply the captures in order. An empty value is a miss, unless there is a default."""
    values: dict[str, str] = {}
    for rule in rules:
        try:
            value = _value(rule, turn)
            sought = f"/{rule.pattern}/" if rule.pattern is not None else rule.jsonpath
            why = f"{sought} " + ("found nothing" if value is None else "found an empty value")
            default = rule.default
        except CannotEvaluateError as trouble:
            # A default stands for what the agent did not say, not for a rule that cannot be used.
            value, why, default = None, str(trouble), None
        kept = value if value is not None and value.strip() else default
        if kept is None:
            where = f'the answer is "{beginning(turn.response)}"'
            fix = "correct the capture, or give it a `default`"
            return Captured(values, f"capture `{rule.variable}`: {why}; {where}; {fix}")
        values[rule.variable] = kept
    return Captured(values)


def _value(rule: Capture, turn: TurnRecord) -> str | None:
    if rule.jsonpath is not None:
        values = find_values(rule.jsonpath, turn_view(turn))
        return as_text(values[0]) if values else None
    pattern = rule.pattern or ""
    match = Searcher().search(pattern, plain(turn.response))
    group = kept_group(pattern)  # the rule would not have been read without one
    found: str | None = None if match is None else match[group]
    return found


def turn_view(turn: TurnRecord) -> dict[str, Any]:
    """The turn as JSONPath sees it.

    ``{response, response_json?, transcript: {tool_calls, tool_results}, usage}``.
    """
    is_json, value = answer_json(turn.response)
    call, result = {"id", "name", "kind", "arguments"}, {"call_id", "status", "content"}
    transcript = {
        "tool_calls": [one.model_dump(include=call) for one in turn.tool_calls],
        "tool_results": [one.model_dump(include=result) for one in turn.tool_results],
    }
    usage = {name: getattr(turn.usage, name, None) for name in Usage.model_fields}
    view = {"response": turn.response, "transcript": transcript, "usage": usage}
    return view | ({"response_json": value} if is_json else {})
