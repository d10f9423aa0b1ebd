"""Renders answers as Anthropic Messages: a JSON message, or the events of its stream."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from uuid import uuid4

from tests.support.model_server.replies import (
    Answer,
    McpCall,
    Part,
    ReadFile,
    Refusal,
    Shell,
    SkillCall,
    Structured,
    Text,
    ToolCall,
    WriteFile,
    parts_of,
)
from tests.support.model_server.requests import ModelRequest

Event = tuple[str, dict[str, Any]]

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def message(request: ModelRequest, answer: Answer) -> dict[str, Any]:
    """The whole message, as a request without `stream` gets it."""
    content = [_block(request, part) for part in parts_of(answer)]
    calls = any(block["type"] == "tool_use" for block in content)
    reason = "max_tokens" if answer.stop == "max_tokens" else "tool_use" if calls else "end_turn"
    if any(isinstance(part, Refusal) for part in parts_of(answer)):
        content, reason = [], "refusal"
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.usage.input,
            "cache_read_input_tokens": answer.usage.cached,
            "cache_creation_input_tokens": answer.usage.cache_write,
            "output_tokens": answer.usage.output,
        },
    }


def events(request: ModelRequest, answer: Answer) -> list[Event]:
    """The stream's events in order: `(event name, data)`."""
    whole = message(request, answer)
    # The real API knows the output tokens only at the end; a client that reads them from the
    # start must be seen to be wrong.
    start = whole | {"content": [], "stop_reason": None}
    start["usage"] = whole["usage"] | {"output_tokens": 1}
    result = [_event("message_start", message=start)]
    for index, block in enumerate(whole["content"]):
        empty, delta = _streamed(block)
        result.append(_event("content_block_start", index=index, content_block=empty))
        result.append(_event("content_block_delta", index=index, delta=delta))
        result.append(_event("content_block_stop", index=index))
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    result.append(_event("message_delta", delta=ending, usage=whole["usage"]))
    result.append(_event("message_stop"))
    return result


def error_body(status: int, text: str) -> dict[str, Any]:
    """The body of an error response."""
    kind = _ERROR_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": text}}


def _event(name: str, **data: Any) -> Event:
    return name, {"type": name, **data}


def _streamed(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A block as its empty start and the one delta that fills it."""
    if block["type"] == "text":
        return block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
    arguments = json.dumps(block["input"])
    return block | {"input": {}}, {"type": "input_json_delta", "partial_json": arguments}


def _block(request: ModelRequest, part: Part) -> dict[str, Any]:
    if isinstance(part, Text | Refusal):
        return {"type": "text", "text": part.text}
    if isinstance(part, Structured) and not request.tools:
        return {"type": "text", "text": json.dumps(part.data)}
    name, arguments = _call(request, part)
    call_id = f"toolu_r{request.tool_round}_{uuid4().hex[:16]}"
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _call(request: ModelRequest, part: Part) -> tuple[str, dict[str, Any]]:
    match part:
        case ToolCall(name, arguments):
            return name, dict(arguments)
        case Shell(command):
            return "Bash", {"command": command, "description": "Run a command"}
        case WriteFile(path, content):
            return "Write", {"file_path": _absolute(request, path), "content": content}
        case ReadFile(path):
            return "Read", {"file_path": _absolute(request, path)}
        case SkillCall(name):
            return "Skill", {"skill": name}
        case McpCall(server, tool, arguments):
            return f"mcp__{server}__{tool}", dict(arguments)
        case Structured(data):
            return request.tools[0], dict(data)
        case Text() | Refusal():
            raise ValueError("a text is no tool call")


def _absolute(request: ModelRequest, path: str) -> str:
    return str(PurePosixPath(request.cwd or "/", path))
