"""Messages as other tools write them: a text, a message, or a list of them with roles."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.importers import files
from skillup.importers.files import Placed
from skillup.importers.values import SourceValue, as_text

ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
}  # fmt: skip


@dataclass(slots=True)
class ReadConversation:
    """A conversation up to the message that is to be answered."""

    system: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    prompt: str = ""


def is_messages(value: Any) -> bool:
    """Whether `value` is a list of messages, each with its role (or one such message)."""
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        isinstance(i, dict) and isinstance(i.get("role"), str) for i in items
    )


def read_messages(
    value: Any, node: SourceValue, placed: list[Placed], base: Path | None = None
) -> ReadConversation:
    """The raw `value` (found at `node`) as a conversation.

    The last user message is the one to be answered; those before it are history. Files it names
    are `placed` in the workspace.
    """
    if not is_messages(value):
        text = content_text(value, node, placed, base)
        return ReadConversation(prompt=text)
    found = ReadConversation()
    messages: list[tuple[str, str]] = []
    for item in value if isinstance(value, list) else [value]:
        for key in sorted(set(map(str, item)) - {"role", "content"}):
            node.lost(f"`{key}` of a message")
        if (role := ROLES.get(item["role"])) is None:
            node.lost(f"a message of the role `{item['role']}`")
            continue
        text = content_text(item.get("content"), node, placed, base, inline=role == "system")
        if role == "system":
            found.system = f"{found.system}\n\n{text}".strip()
        elif messages and messages[-1][0] == role:
            messages[-1] = (role, f"{messages[-1][1]}\n\n{text}".strip())
        else:
            messages.append((role, text))
    if messages and messages[-1][0] == "assistant":
        node.lost("an assistant's message with no user message after it")
        messages.pop()
    if messages:
        found.prompt = messages.pop()[1]
    found.history = [{"role": role, "content": text} for role, text in messages]
    return found


def content_text(
    content: Any,
    node: SourceValue,
    placed: list[Placed],
    base: Path | None = None,
    *,
    inline: bool = False,
) -> str:
    """One message's text. A file is put into the workspace and named, or (`inline`) read in."""
    if not isinstance(content, list):
        return as_text(content)
    parts: list[str] = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        keys = list(map(str, block)) if kind else []
        for key in sorted(set(keys) - {"type", "value", "path", "text"}):
            node.lost(f"`{key}` of a part of a message")
        value = next((block[key] for key in ("value", "path", "text") if key in keys), "")
        if kind in ("text", "input_text", "output_text"):
            parts.append(as_text(value))
        elif kind in ("file", "image") and isinstance(value, str) and inline:
            text = files.read(value, node, base)
            parts.append(f"[file: {files.workspace_path(value)}]" if text is None else text)
        elif kind in ("file", "image") and isinstance(value, str):
            parts.append(f"[attached file: {files.place(value, node, placed, base)}]")
        else:
            parts.append(as_text(block))
            if isinstance(block, dict):
                node.changed(f"a part of the kind `{kind or '?'}`", "became JSON text")
    return "\n\n".join(part.strip("\n") for part in parts if part)
