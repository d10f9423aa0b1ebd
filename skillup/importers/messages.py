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
    return bool(items) and all(isinstance(item, dict) and _role(item) for item in items)


def _role(item: dict[Any, Any]) -> str | None:
    if isinstance(item.get("role"), str):
        return str(item["role"])
    keys = list(item)
    # `- user: Hello` is short for a message.
    return str(keys[0]) if len(keys) == 1 and keys[0] in ROLES else None


def read_messages(
    value: Any, node: SourceValue, placed: list[Placed], base: Path | None = None
) -> ReadConversation:
    """The raw `value` (found at `node`) as a conversation.

    The last user message is the one to be answered; those before it are history. Files it names
    are `placed` in the workspace.
    """
    if not is_messages(value):
        text = content_text(value, node, placed, base)
        return ReadConversation(prompt=str(node.finish(text, live=True)))
    found = ReadConversation()
    messages: list[tuple[str, str]] = []
    for item in value if isinstance(value, list) else [value]:
        name = _role(item) or ""
        raw = item.get("content") if "role" in item else item[name]
        if name not in ROLES:
            node.lost(f"a message of the role `{name}`")
            continue
        for key in sorted(set(map(str, item)) - {"role", "content", name}):
            node.lost(f"`{key}` of a message")
        role = ROLES[name]
        text = content_text(raw, node, placed, base, inline=role == "system")
        if role == "system":
            found.system = f"{found.system}\n\n{node.finish(text)}".strip()
        elif messages and messages[-1][0] == role:
            messages[-1] = (role, f"{messages[-1][1]}\n\n{text}".strip())
        else:
            messages.append((role, text))
    if messages and messages[-1][0] == "assistant":
        node.lost("an assistant's message with no user message after it")
        messages.pop()
    if messages:
        found.prompt = str(node.finish(messages.pop()[1], live=True))
    found.history = [{"role": role, "content": node.finish(text)} for role, text in messages]
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
    parts: list[str] = []
    for block in content if isinstance(content, list) else [content]:
        if not isinstance(block, dict) or content is block:
            parts.append(as_text(block))
            continue
        kind = str(block.get("type", ""))
        for key in sorted(set(map(str, block)) - {"type", "value", "path", "text"}):
            node.lost(f"`{key}` of a part of a message")
        value = next((block[key] for key in ("value", "path", "text") if key in block), "")
        if kind in ("text", "input_text", "output_text"):
            parts.append(as_text(block.get("text", value)))
        elif kind in ("file", "image") and isinstance(value, str):
            text = files.read(value, node, base) if inline else None
            if text is None:
                where = files.workspace_path(value)
                text = f"[file: {where}]" if inline else f"[attached file: {where}]"
            if not inline:
                files.place(value, node, placed, base)
            parts.append(text)
        else:
            parts.append(as_text(block))
            node.changed(f"a part of the kind `{kind or '?'}` in a message", "became JSON text")
    if not isinstance(content, list):
        return parts[0]
    return "\n\n".join(part.strip("\n") for part in parts if part)
