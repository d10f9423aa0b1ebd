"""Reads the body of an Anthropic Messages request as the `claude` CLI writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.model_server.requests import Entry, ModelRequest

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


def read_anthropic(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> ModelRequest:
    """The request of `POST /v1/messages`."""
    entries = tuple(_entries(body))
    system = "\n".join(entry.text for entry in entries if entry.role == "harness")
    cwd = _CWD.search(system)
    return ModelRequest(
        api="anthropic",
        path=path,
        headers=headers,
        body=body,
        entries=entries,
        tools=tuple(str(tool.get("name", "")) for tool in body.get("tools") or []),
        session_id=headers.get("x-claude-code-session-id", ""),
        cwd=cwd[1].strip() if cwd else "",
        stream=bool(body.get("stream")),
        background=_asks_for_title(body),
    )


def _asks_for_title(body: Mapping[str, Any]) -> bool:
    """Whether this is the request for a session title: no tools, and a schema with a title."""
    shape = (body.get("output_config") or {}).get("format") or {}
    return not body.get("tools") and "title" in (shape.get("schema") or {}).get("properties", {})


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    for block in _blocks(body.get("system")):
        yield Entry("harness", block.get("text", ""))
    for message in body.get("messages") or []:
        for block in _blocks(message.get("content")):
            yield from _block_entries(message.get("role", ""), block)


def _block_entries(role: str, block: Mapping[str, Any]) -> Iterator[Entry]:
    kind = block.get("type")
    if kind == "tool_use":
        call = f"{block['name']} {json.dumps(block.get('input'), ensure_ascii=False)}"
        yield Entry("call", call, block["id"])
    elif kind == "tool_result":
        texts = [part.get("text", "") for part in _blocks(block.get("content"))]
        yield Entry("result", _REMINDER.sub("", "\n".join(texts)), block["tool_use_id"])
    elif kind == "text" and role == "assistant":
        yield Entry("assistant", block["text"])
    elif kind == "text" and role == "user":
        yield from _user_entries(block["text"])
    elif kind == "text":
        yield Entry("harness", block["text"])


def _user_entries(text: str) -> Iterator[Entry]:
    for reminder in _REMINDER.findall(text):
        yield Entry("harness", reminder)
    rest = _REMINDER.sub("", text)
    command = _COMMAND.search(rest) if rest.startswith("<command-") else None
    if command:
        yield Entry("user", f"{command['name']} {command['args'] or ''}".strip())
    elif rest.startswith(_INJECTED):
        yield Entry("harness", rest)
    elif rest.strip():
        yield Entry("user", rest)


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Content as a list of blocks; a string stands for one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or [])
