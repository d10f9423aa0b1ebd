"""The `prompts` of a promptfoo or AgentV suite: texts, chats, and files that hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError
from skillup.interop import references
from skillup.interop.messages import is_messages
from skillup.interop.node import Node, as_text
from skillup.interop.source import JSON_LINES, parse_source
from skillup.interop.templating import Scope

_PROGRAM = re.compile(r"\.(?:js|mjs|cjs|ts|py|rb|go)(?::\w+)?$|^(?:exec|python):")
_FILE = re.compile(r"[\w./ -]+\.(?:json|jsonl|txt|md|ya?ml|j2|njk)")
_BETWEEN = re.compile(r"\n---\n")
HISTORY = "_conversation"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; `value` is its text or its messages, templates not yet filled in."""

    node: Node
    name: str
    value: Any

    @property
    def continues(self) -> bool:
        """Whether it repeats the conversation so far: then tests are turns of one."""
        return HISTORY in as_text(self.value)

    def filled(self, scope: Scope) -> Any:
        """Its messages (or text) for one test.

        Of a conversation only the new message is wanted, so the part that repeats the earlier ones
        is filled in as if there were none: the agent's session holds them.
        """
        scope.constants = {**scope.constants, HISTORY: []}
        value = scope.fill(self.value, self.node)
        return _as_chat(value) if isinstance(value, str) else value


def _as_chat(text: str) -> Any:
    """The messages that a filled-in text is the JSON of, or the text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return text
    try:
        # A loop over no earlier messages leaves its commas behind.
        data = json.loads(re.sub(r",(\s*[\]}])", r"\1", text))
    except ValueError:
        return text
    return data if is_messages(data) else text


def read_prompts(node: Node | None) -> list[Prompt]:
    """All prompts that `prompts:` lists. Raises InvalidFilesError if it lists some, but none can
    be had.
    """
    if node is None:
        return []
    found = [prompt for item in _entries(node) for prompt in _read(item)]
    if not found:
        raise node.refuse(
            "none of the prompts can be read", "give at least one as a text, or as a file of text"
        )
    return found


def _entries(node: Node) -> list[Node]:
    if is_messages(node.value):
        return [node]
    if isinstance(node.value, dict) and not set(node.value) & {"raw", "prompt", "file", "path"}:
        # `prompts: {file://a.txt: label}`
        return [item for _, item in node.items()]
    return node.elements()


def _read(node: Node) -> Iterator[Prompt]:
    if is_messages(node.value):
        node.use()
        yield Prompt(node, "", node.value)
        return
    if not isinstance(node.value, dict):
        yield from _from_text(node, as_text(node.value), "")
        return
    named = node.get("id", "label")
    name = named.text() if named is not None else ""
    for key in ("raw", "prompt", "content", "file", "path", "id"):
        inner = node.get(key)
        if inner is None:
            continue
        if isinstance(inner.value, str):
            text = inner.value
            if key in ("file", "path"):
                text = references.SCHEME + text.removeprefix(references.SCHEME)
            yield from _from_text(inner, text, name if key != "id" else "")
        else:
            inner.use()
            yield Prompt(inner, name, inner.value)
        return
    node.note("a prompt without a text", "left out")


def _from_text(node: Node, text: str, name: str) -> Iterator[Prompt]:
    reference = text.removeprefix(references.SCHEME)
    if _PROGRAM.search(reference) and "\n" not in reference:
        node.note("a prompt that a program makes", "left out: write its text")
        return
    if not text.startswith(references.SCHEME) and not _FILE.fullmatch(text):
        node.use()
        yield Prompt(node, name, text)
        return
    node.use()
    found = references.find(text, node)
    if found is None:
        return
    for path in sorted(found.glob("*")) if found.is_dir() else [found]:
        yield from _from_file(path, node, name)


def _from_file(path: Path, node: Node, name: str) -> Iterator[Prompt]:
    content = references.read(str(path), node)
    if content is None:
        return
    if path.suffix in JSON_LINES:
        pieces: list[Any] = [line for line in content.splitlines() if line.strip()]
    elif path.suffix == ".txt":
        pieces = _BETWEEN.split(content)
    else:
        pieces = [content]
    for piece in pieces:
        yield Prompt(node, name, _structured(piece.strip(), path))


def _structured(text: str, path: Path) -> Any:
    """Messages, if the file holds them without needing its templates filled in first."""
    try:
        if path.suffix in (".yaml", ".yml"):
            data = parse_source(text, path).data
        else:
            data = json.loads(text)
    except (ValueError, InvalidFilesError):
        return text
    return data if is_messages(data) else text
