"""Session files of both CLIs, written row by row, and read again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skillup.engines.session_files import SessionEntry, SessionSummary
from skillup.sessions.index import detect_format

TIME = "2026-01-01T00:00:00.000Z"


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def read(path: Path) -> tuple[list[SessionEntry], SessionSummary]:
    found = detect_format(path)
    assert found is not None, path
    reader = found()
    return list(reader.read(path)), reader.summary


def told(entry: SessionEntry) -> tuple[str, str]:
    """Role and text; of a call its name, of a result its content."""
    item = entry.item
    if item.tool_call is not None:
        return entry.role, item.tool_call.name
    if item.tool_result is not None:
        return entry.role, item.tool_result.content
    return entry.role, item.text or ""


def claude_row(
    kind: str, content: Any, uuid: str, parent: str | None, **more: Any
) -> dict[str, Any]:
    """A message row of Claude Code; each assistant row is a message of its own."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{uuid}", "model": "claude-x"}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": TIME,
        "sessionId": "s1",
        "cwd": "/project",
        "version": "2.1.0",
        "isSidechain": False,
        "message": message,
        **more,
    }


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def claude_rows(*said: tuple[str, Any]) -> list[dict[str, Any]]:
    """A session of Claude Code in which `user` and `assistant` said this, one after the other."""
    return [
        claude_row(
            kind,
            text(content) if kind == "assistant" and isinstance(content, str) else content,
            str(number),
            str(number - 1) if number else None,
        )
        for number, (kind, content) in enumerate(said)
    ]


def codex_row(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def codex_meta(thread_id: str = "t1", cwd: str = "/project") -> dict[str, Any]:
    return codex_row("session_meta", id=thread_id, timestamp=TIME, cwd=cwd, cli_version="0.169.0")


def item(kind: str, **payload: Any) -> dict[str, Any]:
    """What the model sees."""
    return codex_row("response_item", type=kind, **payload)


def message(role: str, words: str) -> dict[str, Any]:
    block = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": block, "text": words}])


def said(role: str, words: str) -> list[dict[str, Any]]:
    """A message as it stands in a rollout: for the model, and for people."""
    name, block = ("UserMessage", "text") if role == "user" else ("AgentMessage", "Text")
    return [message(role, words), done(name, id="x", content=[{"type": block, "text": words}])]


def event(kind: str, **payload: Any) -> dict[str, Any]:
    """What the CLI shows."""
    return codex_row("event_msg", type=kind, **payload)


def done(kind: str, **of_item: Any) -> dict[str, Any]:
    """The event of a complete item, in threads of the newer kind."""
    return event("item_completed", item={"type": kind, **of_item})
