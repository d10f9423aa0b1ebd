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


def turn_view(turn: TurnRecord) -> dict[str, Any]:
    """The turn as JSONPath sees it.

    ``{response, response_json?, transcript: {tool_calls, tool_results}, usage}``.
    """
    view: dict[str, Any] = {"response": turn.response}
    is_json, value = answer_json(turn.response)
    if is_json:
        view["response_json"] = value
    call, result = {"id", "name", "kind", "arguments"}, {"call_id", "status", "content"}
    view["transcript"] = {
        "tool_calls": [one.model_dump(include=call) for one in turn.tool_calls],
        "tool_results": [one.model_dump(include=result) for one in turn.tool_results],
    }
    view["usage"] = {name: getattr(turn.usage, name, None) for name in Usage.model_fields}
    return view


@dataclass(frozen=True, slots=True)
class CaptureMiss:
    """A capture that found nothing to keep."""

    variable: str
    why: str
    where: str
    """What was looked at, shortened."""

    @property
    def message(self) -> str:
        """One line for users, with what to do."""
        return (
            f"capture `{self.variable}`: {self.why}; looked at {self.where or 'an empty answer'}; "
            "correct the capture, or give it a `default`"
        )


@dataclass(frozen=True, slots=True)
class Captured:
    """The values by variable, up to the first miss (None: every capture found its value)."""

    values: dict[str, str] = field(default_factory=dict)
    miss: CaptureMiss | None = None


def capture(rules: Sequence[Capture], turn: TurnRecord) -> Captured:
    """Apply the captures in order. An empty value is a miss, unless there is a default."""
    values: dict[str, str] = {}
    for rule in rules:
        try:
            value = _value(rule, turn)
        except CannotEvaluateError as trouble:
            # A default stands for what the agent did not say, not for a rule that cannot be used.
            return Captured(values, CaptureMiss(rule.variable, str(trouble), _where(rule, turn)))
        if value is not None and value.strip():
            values[rule.variable] = value
        elif rule.default is not None:
            values[rule.variable] = rule.default
        else:
            sought = f"/{rule.pattern}/" if rule.pattern is not None else rule.jsonpath
            why = f"{sought} " + ("found nothing" if value is None else "found an empty value")
            return Captured(values, CaptureMiss(rule.variable, why, _where(rule, turn)))
    return Captured(values)


def _value(rule: Capture, turn: TurnRecord) -> str | None:
    if rule.jsonpath is not None:
        values = find_values(rule.jsonpath, turn_view(turn))
        return as_text(values[0]) if values else None
    pattern = rule.pattern or ""
    match = Searcher().search(pattern, plain(turn.response))
    try:
        group = kept_group(pattern)
    except ValueError as trouble:
        raise CannotEvaluateError(str(trouble)) from None
    if match is None:
        return None
    found: str | None = match[group]
    return found


def _where(rule: Capture, turn: TurnRecord) -> str:
    if rule.jsonpath is None or not turn.transcript:
        return f'the answer "{beginning(turn.response)}"' if turn.response.strip() else ""
    calls, results = len(turn.tool_calls), len(turn.tool_results)
    return f"turn {turn.turn_number}: its answer, {calls} tool calls and {results} results"
