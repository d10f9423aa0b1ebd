"""What was said and done within a turn, for the page: a tool's call and its result are one item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skillup.reports.page.limits import Limits, shortened, shortened_data
from skillup.schema.record import HistoryItem, ToolCall, ToolResult, TranscriptItem


def items_of(transcript: Iterable[TranscriptItem], limits: Limits) -> list[dict[str, Any]]:
    """The items in order; a result stands at the place of its call, or by itself if there is none.

    Results are matched by the call's id; of several calls with one id, the first that is open.
    """
    found: list[dict[str, Any]] = []
    for item in transcript:
        if item.tool_call is not None:
            found.append(_tool(item.tool_call, limits, item.agent))
        elif item.tool_result is not None:
            _add_result(found, item.tool_result, limits, item.agent)
        else:
            text = shortened(item.text or "", limits.text)
            found.append({"type": item.type, "text": text, "agent": item.agent})
    return found


def history_of(history: Sequence[HistoryItem], limits: Limits) -> list[dict[str, Any]]:
    """What was put before turn 1: ``[{role, content, items}]``, results with their calls."""
    found: list[dict[str, Any]] = []
    for message in history:
        if message.role == "tool" and message.tool_result is not None:
            open_items = [item for entry in found for item in entry["items"]]
            if _fill(open_items, message.tool_result, limits):
                continue
            item = _lonely(message.tool_result, limits, None)
            found.append({"role": "tool", "content": "", "items": [item]})
            continue
        items = [_tool(call, limits, None) for call in message.tool_calls]
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


def _add_result(
    found: list[dict[str, Any]], result: ToolResult, limits: Limits, agent: str | None
) -> None:
    if not _fill(found, result, limits):
        found.append(_lonely(result, limits, agent))


def _fill(found: Sequence[dict[str, Any]], result: ToolResult, limits: Limits) -> bool:
    """Put `result` where its call is; whether there is one that waits for it."""
    for item in found:
        if item["type"] == "tool" and item["id"] == result.call_id and item["result"] is None:
            item["result"] = _result(result, limits)
            return True
    return False


def _lonely(result: ToolResult, limits: Limits, agent: str | None) -> dict[str, Any]:
    call = ToolCall(id=result.call_id, name="", kind="other")
    return {**_tool(call, limits, agent), "result": _result(result, limits)}


def _result(result: ToolResult, limits: Limits) -> dict[str, Any]:
    return {"status": result.status, "content": shortened(result.content, limits.tool)}
