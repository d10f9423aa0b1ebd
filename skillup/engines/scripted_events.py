"""What the scripted agent prints, line by line; the format is documented in the agent's package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem, Usage

_KINDS: dict[str, ToolKind] = {
    "shell": "shell",
    "write_file": "write",
    "read_file": "read",
    "skill": "skill",
}


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """The agent's first event: who it is and in which session."""

    session_id: str
    version: str
    model: str


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The agent's last event: its answer, or (`error_kind`, `error_message`) why there is none."""

    session_id: str
    answer: str
    error_kind: str | None
    error_message: str


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line that is no event, or none that we know."""

    text: str


ScriptedEvent = SessionStarted | TranscriptItem | Usage | TurnResult | UnknownLine


def parse_line(line: bytes) -> ScriptedEvent:
    """One line of stdout, without its newline; never raises."""
    try:
        event = json.loads(line)
        return _known(event)
    except (ValueError, KeyError, TypeError, RecursionError):
        return UnknownLine(line.decode("utf-8", "replace"))


def _known(event: dict[str, Any]) -> ScriptedEvent:
    """Raises KeyError, TypeError or ValueError if this is no event of the agent's."""
    kind = event["type"]
    if kind == "message":
        return TranscriptItem(type="message", text=event["text"])
    if kind == "tool_call":
        return TranscriptItem(type="tool_call", tool_call=_call(event))
    if kind == "tool_result":
        return TranscriptItem(type="tool_result", tool_result=_result(event))
    if kind == "usage":
        counts = {name: value for name, value in event.items() if name != "type"}
        return Usage.model_validate(counts)
    if kind == "session_started":
        return SessionStarted(event["session_id"], event["agent_version"], event["model"])
    if kind == "result":
        error = event["error"] or {"kind": None, "message": ""}
        return TurnResult(event["session_id"], event["answer"], error["kind"], error["message"])
    raise KeyError(kind)


def _call(event: dict[str, Any]) -> ToolCall:
    name = event["name"]
    return ToolCall(
        id=event["id"], name=name, kind=_KINDS.get(name, "other"), arguments=event["input"]
    )


def _result(event: dict[str, Any]) -> ToolResult:
    return ToolResult(call_id=event["id"], status=event["status"], content=event["output"])
