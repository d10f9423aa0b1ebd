"""Reads the body of an OpenAI Chat Completions request, as judges' models are asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.model_server.requests import Entry, ModelRequest


def read_openai_chat(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> ModelRequest:
    """The request of `POST /v1/chat/completions`."""
    return ModelRequest(
        api="openai_chat",
        path=path,
        headers=headers,
        body=body,
        entries=tuple(_entries(body)),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or []),
        session_id="",
        cwd="",
        stream=bool(body.get("stream")),
    )


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    for message in body.get("messages") or []:
        role, content = message["role"], message.get("content") or ""
        for call in message.get("tool_calls") or []:
            function = call["function"]
            yield Entry("call", f"{function['name']} {function['arguments']}", call["id"])
        if role == "tool":
            yield Entry("result", _text(content), message["tool_call_id"])
        elif role in ("user", "assistant") and content:
            yield Entry(role, _text(content))
        elif content:
            yield Entry("harness", _text(content))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)
