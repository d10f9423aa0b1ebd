"""The transcript of a judge-debug file as turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem, TurnRecord

_KINDS: dict[str, ToolKind] = {
    "shell": "shell", "bash": "shell", "run_command": "shell", "execute_command": "shell",
    "read": "read", "read_file": "read", "write": "write", "write_file": "write",
    "edit": "edit", "edit_file": "edit", "grep": "search", "glob": "search",
    "web_fetch": "web", "web_search": "web", "skill": "skill", "task": "agent",
}  # fmt: skip


def turns_of(data: Mapping[str, Any]) -> list[TurnRecord]:
    """A turn for each number that the entries name, in order; the last answer is the final message.

    Without a transcript it is one turn, which said the final message.
    """
    entries = [entry for entry in data.get("transcript") or () if isinstance(entry, dict)]
    numbers = sorted({_number(entry) for entry in entries}) or [1]
    turns = [
        _turn(place, [entry for entry in entries if _number(entry) == number])
        for place, number in enumerate(numbers, start=1)
    ]
    last = turns[-1].model_copy(update={"response": data["final_message"]})
    return [*turns[:-1], last]


def _number(entry: Mapping[str, Any]) -> int:
    number = entry.get("turn", 1)
    return number if isinstance(number, int) else 1


def _turn(number: int, entries: list[dict[str, Any]]) -> TurnRecord:
    said = [_text(e) for e in entries if e.get("role") == "user"]
    answers = [_text(e) for e in entries if e.get("role") == "assistant"]
    items = [item for entry in entries if (item := _item(entry)) is not None]
    return TurnRecord(
        turn_number=number,
        status="completed",
        content="\n\n".join(said),
        response=answers[-1] if answers else "",
        transcript=items,
    )


def _item(entry: Mapping[str, Any]) -> TranscriptItem | None:
    role = entry.get("role")
    if role == "assistant":
        return TranscriptItem(type="message", text=_text(entry))
    call, result = entry.get("tool_call"), entry.get("tool_result")
    if role == "tool_call" and isinstance(call, dict):
        return TranscriptItem(type="tool_call", tool_call=_call(call))
    if role == "tool_result" and isinstance(result, dict):
        return TranscriptItem(type="tool_result", tool_result=_result(result))
    return None


def _call(call: Mapping[str, Any]) -> ToolCall:
    name, arguments = str(call.get("name", "")), call.get("arguments")
    kind = call.get("kind")
    known: ToolKind = _KINDS.get(name.casefold(), "mcp" if "::" in name else "other")
    return ToolCall(
        id=str(call.get("id", "")),
        name=name,
        kind=kind if kind in get_args(ToolKind) else known,
        arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
    )


def _result(result: Mapping[str, Any]) -> ToolResult:
    status = result.get("status")
    return ToolResult.model_validate(
        {
            "call_id": str(result.get("call_id", "")),
            "status": status if status in ("success", "error") else "unknown",
            "content": str(result.get("content", "")),
        }
    )


def _text(entry: Mapping[str, Any]) -> str:
    content = entry.get("content", "")
    return content if isinstance(content, str) else str(content)
