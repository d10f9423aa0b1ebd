"""The turn as JSONPath sees it (design §4, Capture)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillup.checks.answer_json import answer_json
from skillup.schema.record import TurnRecord, Usage


def turn_view(turns: Sequence[TurnRecord], answer: str | None = None) -> dict[str, Any]:
    """``{response, response_json?, transcript: {tool_calls, tool_results}, usage}``.

    Of several turns: the last answer (or the one given), all calls and results, the sum of the
    usage (null where a turn did not tell).
    """
    answer = turns[-1].response if answer is None else answer
    view: dict[str, Any] = {"response": answer}
    is_json, value = answer_json(answer)
    if is_json:
        view["response_json"] = value
    view["transcript"] = {
        "tool_calls": [
            {"id": call.id, "name": call.name, "kind": call.kind, "arguments": call.arguments}
            for turn in turns
            for call in turn.tool_calls
        ],
        "tool_results": [
            {"call_id": result.call_id, "status": result.status, "content": result.content}
            for turn in turns
            for result in turn.tool_results
        ],
    }
    view["usage"] = {name: _sum(turns, name) for name in Usage.model_fields}
    return view


def _sum(turns: Sequence[TurnRecord], name: str) -> int | None:
    total = 0
    for turn in turns:
        value: int | None = getattr(turn.usage, name, None)
        if value is None:
            return None
        total += value
    return total
