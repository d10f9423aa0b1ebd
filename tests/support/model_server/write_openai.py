"""Renders answers as OpenAI Responses: a JSON response, or the events of its stream."""

from __future__ import annotations

import json
import shlex
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


def response(request: ModelRequest, answer: Answer) -> dict[str, Any]:
    """The whole response, as a request without `stream` gets it."""
    usage = answer.usage
    cut = answer.stop == "max_tokens"
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "status": "incomplete" if cut else "completed",
        "model": request.model,
        "output": [_item(request, part) for part in parts_of(answer)],
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {
                "cached_tokens": usage.cached,
                "cache_write_tokens": usage.cache_write,
            },
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        },
    }


def events(request: ModelRequest, answer: Answer) -> list[Event]:
    """The stream's events in order: `(event name, data)`."""
    whole = response(request, answer)
    start = {"id": whole["id"], "object": "response", "status": "in_progress", "output": []}
    result = [_event("response.created", response=start)]
    for index, item in enumerate(whole["output"]):
        if item["type"] == "message":
            empty = item | {"content": [], "status": "in_progress"}
            result.append(_event("response.output_item.added", output_index=index, item=empty))
            result.append(_delta(index, item))
        result.append(_event("response.output_item.done", output_index=index, item=item))
    result.append(_event(f"response.{whole['status']}", response=whole))
    return result


def error_body(status: int, text: str) -> dict[str, Any]:
    """The body of an error response."""
    return {"error": {"message": text, "type": f"scripted_{status}", "code": None}}


def _event(name: str, **data: Any) -> Event:
    return name, {"type": name, **data}


def _delta(index: int, item: dict[str, Any]) -> Event:
    return _event(
        "response.output_text.delta",
        item_id=item["id"],
        output_index=index,
        content_index=0,
        delta=item["content"][0]["text"],
    )


def _item(request: ModelRequest, part: Part) -> dict[str, Any]:
    call_id = f"call_r{request.tool_round}_{uuid4().hex[:16]}"
    match part:
        case Text(text):
            return _message({"type": "output_text", "text": text, "annotations": []})
        case Refusal(text):
            return _message({"type": "refusal", "refusal": text})
        case Structured(data) if request.tools:
            return _function_call(call_id, request.tools[0], dict(data))
        case Structured(data):
            return _message({"type": "output_text", "text": json.dumps(data), "annotations": []})
        case ToolCall(name, arguments, namespace):
            return _function_call(call_id, name, dict(arguments), namespace)
        case McpCall(server, tool, arguments):
            return _function_call(call_id, tool, dict(arguments), f"mcp__{server}")
        case Shell(command):
            return _shell_call(call_id, command)
        case ReadFile(path):
            return _shell_call(call_id, f"cat {shlex.quote(path)}")
        case SkillCall(name):
            return _shell_call(call_id, f"cat {shlex.quote(f'.agents/skills/{name}/SKILL.md')}")
        case WriteFile(path, content) if "apply_patch" in request.tools:
            return {
                "type": "custom_tool_call",
                "id": f"ctc_{uuid4().hex}",
                "call_id": call_id,
                "name": "apply_patch",
                "input": _patch(path, content),
                "status": "completed",
            }
        case WriteFile(path, content):
            return _shell_call(call_id, f"printf %s {shlex.quote(content)} > {shlex.quote(path)}")


def _message(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"msg_{uuid4().hex}",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }


def _shell_call(call_id: str, command: str) -> dict[str, Any]:
    return _function_call(call_id, "exec_command", {"cmd": command})


def _function_call(
    call_id: str, name: str, arguments: dict[str, Any], namespace: str = ""
) -> dict[str, Any]:
    item = {
        "type": "function_call",
        "id": f"fc_{uuid4().hex}",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments),
    }
    return item | {"namespace": namespace} if namespace else item


def _patch(path: str, content: str) -> str:
    added = "".join(f"+{line}\n" for line in content.splitlines())
    return f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"
