"""Anthropic Messages as the `claude` CLI speaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from uuid import uuid4

from tests.support.model_server.model import (
    Answer,
    Entry,
    McpCall,
    ModelRequest,
    Part,
    ReadFile,
    Refusal,
    Shell,
    SkillCall,
    Structured,
    Text,
    ToolCall,
    WriteFile,
)

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_COMMAND = re.compile(
    r"<command-name>(?P<name>.*?)</command-name>\s*(<command-args>(?P<args>.*?)</command-args>)?",
    re.DOTALL,
)
_CWD = re.compile(r"Primary working directory: (.+)")
# User texts that the CLI writes of itself: a loaded skill, the mending of a broken history, going
# on after max_tokens, notices of local commands and background tasks.
_INJECTED = (
    "Base directory for this skill:",
    "Continue from where you left off.",
    "[Request interrupted by user",
    "Output token limit hit. Resume directly",
    "<local-command-",
    "<task-notification>",
)
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> ModelRequest:
    """The request of `POST /v1/messages`."""
    entries = tuple(_entries(body))
    cwd = _CWD.search("\n".join(entry.text for entry in entries if entry.role == "harness"))
    # A request for a session title has no tools, and a schema with a title.
    shape = (body.get("output_config") or {}).get("format") or {}
    is_title = not body.get("tools") and "title" in (shape.get("schema") or {}).get(
        "properties", {}
    )
    return ModelRequest(
        api="anthropic",
        path=path,
        headers=headers,
        body=body,
        entries=entries,
        tools=tuple(str(tool.get("name", "")) for tool in body.get("tools") or []),
        session_id=headers.get("x-claude-code-session-id", ""),
        cwd=cwd[1].strip() if cwd else "",
        background=is_title,
    )


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    for block in _blocks(body.get("system")):
        yield Entry("harness", block.get("text", ""))
    for message in body.get("messages") or []:
        role = message.get("role", "")
        for block in _blocks(message.get("content")):
            kind = block.get("type")
            if kind == "tool_use":
                call = f"{block['name']} {json.dumps(block.get('input'), ensure_ascii=False)}"
                yield Entry("call", call, block["id"])
            elif kind == "tool_result":
                texts = [part.get("text", "") for part in _blocks(block.get("content"))]
                yield Entry("result", _REMINDER.sub("", "\n".join(texts)), block["tool_use_id"])
            elif kind == "text" and role == "user":
                yield from _user_entries(block["text"])
            elif kind == "text":
                yield Entry("assistant" if role == "assistant" else "harness", block["text"])


def _user_entries(text: str) -> Iterator[Entry]:
    for reminder in _REMINDER.findall(text):
        yield Entry("harness", reminder)
    rest = _REMINDER.sub("", text)
    command = _COMMAND.search(rest) if rest.startswith("<command-") else None
    if command:
        yield Entry("user", f"{command['name']} {command['args'] or ''}".strip())
    elif rest.strip():
        yield Entry("harness" if rest.startswith(_INJECTED) else "user", rest)


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Content as a list of blocks; a string stands for one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def whole(request: ModelRequest, answer: Answer) -> dict[str, Any]:
    content = [_block(request, part) for part in answer.all_parts]
    calls = any(block["type"] == "tool_use" for block in content)
    reason = "max_tokens" if answer.stop == "max_tokens" else "tool_use" if calls else "end_turn"
    if any(isinstance(part, Refusal) for part in answer.all_parts):
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


def events(request: ModelRequest, answer: Answer) -> list[dict[str, Any]]:
    message = whole(request, answer)
    # The real API knows the output tokens only at the end; a client that reads them from the
    # start must be seen to be wrong.
    start = message | {"content": [], "stop_reason": None}
    start["usage"] = message["usage"] | {"output_tokens": 1}
    result: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty = block | {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        result += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    result.append({"type": "message_delta", "delta": ending, "usage": message["usage"]})
    return [*result, {"type": "message_stop"}]


def error_body(status: int, text: str) -> dict[str, Any]:
    kind = _ERROR_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": text}}


def _block(request: ModelRequest, part: Part) -> dict[str, Any]:
    def absolute(path: str) -> str:
        return str(PurePosixPath(request.cwd or "/", path))

    arguments: dict[str, Any]
    match part:
        case Text(text) | Refusal(text):
            return {"type": "text", "text": text}
        case Structured(data) if not request.tools:
            return {"type": "text", "text": json.dumps(data)}
        case Structured(data):
            name, arguments = request.tools[0], dict(data)
        case ToolCall(name, given):
            arguments = dict(given)
        case Shell(command):
            name, arguments = "Bash", {"command": command, "description": "Run a command"}
        case WriteFile(path, content):
            name, arguments = "Write", {"file_path": absolute(path), "content": content}
        case ReadFile(path):
            name, arguments = "Read", {"file_path": absolute(path)}
        case SkillCall(skill):
            name, arguments = "Skill", {"skill": skill}
        case McpCall(server, tool, given):
            name, arguments = f"mcp__{server}__{tool}", dict(given)
    call_id = f"toolu_r{request.tool_round}_{uuid4().hex[:16]}"
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
