"""Reads the body of an OpenAI Responses request as the `codex` CLI writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.model_server.requests import Entry, ModelRequest

_CWD = re.compile(r"<cwd>(.*?)</cwd>")

# User messages that the CLI writes of itself.
_INJECTED = (
    "<environment_context>",
    "<skill>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
)


def read_openai(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> ModelRequest:
    """The request of `POST /v1/responses`."""
    entries = tuple(_entries(body))
    system = "\n".join(entry.text for entry in entries if entry.role == "harness")
    # A thread that is resumed elsewhere gets a second environment message: the last one holds.
    directories = _CWD.findall(system)
    return ModelRequest(
        api="openai",
        path=path,
        headers=headers,
        body=body,
        entries=entries,
        tools=tuple(_tool_names(body)),
        session_id=headers.get("thread-id") or str(body.get("prompt_cache_key") or ""),
        cwd=directories[-1] if directories else "",
        stream=bool(body.get("stream")),
        background=_kind(headers) not in ("turn", ""),
    )


def _kind(headers: Mapping[str, str]) -> str:
    """What the request is for: `turn`, or the CLI's own purposes such as a compaction."""
    metadata = json.loads(headers.get("x-codex-turn-metadata") or "{}")
    return str(metadata.get("request_kind", ""))


def _tool_names(body: Mapping[str, Any]) -> Iterator[str]:
    offered = list(body.get("tools") or [])
    for item in body.get("input") or []:
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            offered.extend(item.get("tools") or [])
    for tool in offered:
        yield str(tool.get("name") or tool.get("type") or "")


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    if body.get("instructions"):
        yield Entry("harness", str(body["instructions"]))
    given = body.get("input") or []
    if isinstance(given, str):
        yield Entry("user", given)
        return
    for item in given:
        yield from _item_entries(item)


def _item_entries(item: Mapping[str, Any]) -> Iterator[Entry]:
    kind = item.get("type", "message")
    if kind == "message":
        for text in _texts(item.get("content")):
            yield _message_entry(item.get("role", ""), text)
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments", item.get("input", ""))
        yield Entry("call", f"{item['name']} {arguments}", item["call_id"])
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield Entry("result", "\n".join(_texts(item.get("output"))), item["call_id"])


def _message_entry(role: str, text: str) -> Entry:
    if role == "assistant":
        return Entry("assistant", text)
    injected = role != "user" or text.lstrip().startswith(_INJECTED)
    return Entry("harness" if injected else "user", text)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if "text" in part]
