"""Messages as other tools write them: a text, a message, or a list of them with roles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.importers import references
from skillup.importers.draft import CreatedSession
from skillup.importers.promptfoo.values import SourceValue, as_text

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
}
_TEXT = re.compile(r"text|input_text|output_text")


@dataclass(slots=True)
class Spoken:
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
    return str(keys[0]) if len(keys) == 1 and keys[0] in _ROLES else None


def read_messages(
    value: Any,
    node: SourceValue,
    placed: list[CreatedSession],
    *,
    base: Path | None = None,
    live: bool = True,
) -> Spoken:
    """What the raw `value` (found at `node`) says, and to whom.

    The last user message is the one to be answered (it is sent, if `live`); those before it are
    history. Files it names are `placed` in the workspace.
    """
    if not is_messages(value):
        text = content_text(value, node, placed, base=base)
        return Spoken(prompt=node.finish(text, live=live))
    said: list[tuple[str, str]] = []
    for item in value if isinstance(value, list) else [value]:
        role = _ROLES.get(_role(item) or "")
        raw = item.get("content") if "role" in item else next(iter(item.values()))
        if role is None:
            node.lost(f"a message of the role `{_role(item)}`", "left out")
            continue
        for key in sorted(set(map(str, item)) - {"role", "content"}) if "role" in item else ():
            node.lost(f"`{key}` of a message", "left out")
        text = content_text(raw, node, placed, base=base, inline=role == "system")
        if said and said[-1][0] == role:
            said[-1] = (role, f"{said[-1][1]}\n\n{text}".strip())
        else:
            said.append((role, text))
    return _sorted_out(said, node, live=live)


def _sorted_out(said: list[tuple[str, str]], node: SourceValue, *, live: bool) -> Spoken:
    system = "\n\n".join(text for role, text in said if role == "system")
    spoken = Spoken(system=node.finish(system))
    talk = [(role, text) for role, text in said if role != "system"]
    while talk and talk[-1][0] == "assistant":
        node.lost("an assistant's message with no user message after it", "left out")
        talk.pop()
    if talk:
        spoken.prompt = node.finish(talk.pop()[1], live=live)
    for role, text in ((role, node.finish(text)) for role, text in talk):
        # System messages have been taken out: neighbours of the same role belong together.
        if spoken.history and spoken.history[-1]["role"] == role:
            spoken.history[-1]["content"] += f"\n\n{text}"
        else:
            spoken.history.append({"role": role, "content": text})
    return spoken


def content_text(
    content: Any,
    node: SourceValue,
    placed: list[CreatedSession],
    *,
    base: Path | None = None,
    inline: bool = False,
) -> str:
    """One message's text. A file is put into the workspace and named, or (`inline`) read in."""
    if not isinstance(content, list):
        return as_text(content)
    parts: list[str] = []
    for block in content:
        if not isinstance(block, dict):
            parts.append(as_text(block))
            continue
        kind = str(block.get("type", ""))
        for key in sorted(set(map(str, block)) - {"type", "value", "path", "text"}):
            node.lost(f"`{key}` of a part of a message", "left out")
        named = block.get("value", block.get("path", block.get("text", "")))
        if _TEXT.fullmatch(kind):
            parts.append(as_text(block.get("text", named)))
        elif kind in ("file", "image") and isinstance(named, str):
            parts.append(_file(named, node, placed, base=base, inline=inline))
        else:
            parts.append(as_text(block))
            node.changed(f"a part of the kind `{kind or '?'}` in a message", "became JSON text")
    return "\n\n".join(part.strip("\n") for part in parts if part)


def _file(
    name: str, node: SourceValue, placed: list[CreatedSession], *, base: Path | None, inline: bool
) -> str:
    if not inline:
        return f"[attached file: {references.place(name, node, placed, base=base)}]"
    text = references.read(name, node, base=base)
    return f"[file: {references.workspace_path(name)}]" if text is None else text
