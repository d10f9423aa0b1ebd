"""What was said and done within a turn, for the page: a tool's call and its result are one item."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from skillup.reports.page.limits import Limits, shortened, shortened_data
from skillup.schema.record import HistoryItem, ToolCall, ToolResult, TranscriptItem

_Waiting = dict[str, deque[dict[str, Any]]]
"""Calls without a result so far, by id; a turn may have ten thousand of them."""


def items_of(transcript: Iterable[TranscriptItem], limits: Limits) -> list[dict[str, Any]]:
    """The items in order; a result stands at the place of its call, or by itself if there is none.

    Results are matched by the call's id; of several calls with one id, the first that is open.
    """
    found: list[dict[str, Any]] = []
    waiting: _Waiting = {}
    for item in transcript:
        if item.tool_call is not None:
            found.append(_called(item.tool_call, limits, item.agent, waiting))
        elif item.tool_result is not None:
            if not _fill(waiting, item.tool_result, limits):
                found.append(_lonely(item.tool_result, limits, item.agent))
        else:
            text = shortened(item.text or "", limits.text)
            found.append({"type": item.type, "text": text, "agent": item.agent})
    return found


def history_of(history: Sequence[HistoryItem], limits: Limits) -> list[dict[str, Any]]:
    """What was put before turn 1: ``[{role, content, items}]``, results with their calls."""
    found: list[dict[str, Any]] = []
    waiting: _Waiting = {}
    for message in history:
        if message.role == "tool" and message.tool_result is not None:
            if not _fill(waiting, message.tool_result, limits):
                item = _lonely(message.tool_result, limits, None)
                found.append({"role": "tool", "content": "", "items": [item]})
            continue
        items = [_called(call, limits, None, waiting) for call in message.tool_calls]
        content = shortened(message.content, limits.text)
        found.append({"role": message.role, "content": content, "items": items})
    return found


def _tool(call: ToolCall, limits: Limits, agent: str | None) -> dict[str, Any]:
    return {
        "type": "tool",
        "id": call.id,
        "name": call.name,
        "kind": call.kind,
        "arguments": shortened_data(call.arguments, limits.tool),
        "result": None,
        "agent": agent,
    }


def _called(call: ToolCall, limits: Limits, agent: str | None, waiting: _Waiting) -> dict[str, Any]:
    item = _tool(call, limits, agent)
    waiting.setdefault(call.id, deque()).append(item)
    return item


def _fill(waiting: _Waiting, result: ToolResult, limits: Limits) -> bool:
    """Put `result` where its call is; whether there is one that waits for it."""
    calls = waiting.get(result.call_id)
    if not calls:
        return False
    calls.popleft()["result"] = _result(result, limits)
    return True


def _lonely(result: ToolResult, limits: Limits, agent: str | None) -> dict[str, Any]:
    call = ToolCall(id=result.call_id, name="", kind="other")
    return {**_tool(call, limits, agent), "result": _result(result, limits)}


def _result(result: ToolResult, limits: Limits) -> dict[str, Any]:
    return {"status": result.status, "content": shortened(result.content, limits.tool)}
