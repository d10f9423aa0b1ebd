"""The `prompts` of a promptfoo or AgentV suite: texts, chats, and files that hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError
from skillup.importers import files
from skillup.importers.messages import is_messages
from skillup.importers.source import JSON_LINES, parse_source
from skillup.importers.values import SourceValue, TemplateScope, as_text

HISTORY = "_conversation"
_PROGRAM = re.compile(r"[^\n]*\.(?:js|mjs|cjs|ts|py|rb|go)(?::\w+)?|(?:exec|python):.*")
_FILE = re.compile(r"[\w./ -]+\.(?:json|jsonl|txt|md|ya?ml|j2|njk)")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; `value` is its text or its messages, templates not yet filled in."""

    node: SourceValue
    name: str
    value: Any

    @property
    def continues(self) -> bool:
        """Whether it repeats the conversation so far: then tests are turns of one."""
        return HISTORY in as_text(self.value)

    def filled(self, scope: TemplateScope) -> Any:
        """Its messages (or text) for one test.

        Of a conversation only the new message is wanted, so the part that repeats the earlier ones
        is filled in as if there were none: the agent's session holds them.
        """
        value = scope.fill(self.value, self.node)
        if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
            return value
        try:
            # A loop over no earlier messages leaves its commas behind.
            data = json.loads(re.sub(r",(\s*[\]}])", r"\1", value))
        except ValueError:
            return value
        return data if is_messages(data) else value


def read_prompts(node: SourceValue) -> list[Prompt]:
    """All prompts that `prompts:` lists. Raises InvalidFilesError if none of them can be had."""
    entries = [node] if is_messages(node.value) else node.elements()
    found = [prompt for item in entries for prompt in _read(item)]
    if node and not found:
        raise node.refuse(
            "none of the prompts can be read", "give at least one as a text, or as a file of text"
        )
    return found


def _read(node: SourceValue) -> Iterator[Prompt]:
    if isinstance(node.value, str):
        yield from _from_text(node, node.value, "")
    elif is_messages(node.value):
        node.use()
        yield Prompt(node, "", node.value)
    elif inner := node.get("raw", "prompt", "content", "file", "path", "id"):
        name, key = node.get("id", "label").text(), inner.loc[-1]
        if isinstance(inner.value, str):
            text = inner.value
            if key in ("file", "path"):
                text = files.SCHEME + text.removeprefix(files.SCHEME)
            yield from _from_text(inner, text, name if key != "id" else "")
        else:
            inner.use()
            yield Prompt(inner, name, inner.value)
    else:
        node.drop("a prompt without a text")


def _from_text(node: SourceValue, text: str, name: str) -> Iterator[Prompt]:
    node.use()
    if _PROGRAM.fullmatch(text.removeprefix(files.SCHEME)):
        node.lost("a prompt that a program makes", "left out: write its text")
    elif not text.startswith(files.SCHEME) and not _FILE.fullmatch(text):
        yield Prompt(node, name, text)
    elif (found := files.find(text, node)) is not None:
        for path in sorted(found.glob("*")) if found.is_dir() else [found]:
            content = files.read(str(path), node) or ""
            pieces = [content]
            if path.suffix in JSON_LINES:
                pieces = content.splitlines()
            elif path.suffix == ".txt":
                pieces = content.split("\n---\n")
            for piece in filter(str.strip, pieces):
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
