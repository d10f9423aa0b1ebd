"""The `prompts` of a promptfoo or AgentV suite: texts, chats, and files that hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skillup.importers import files
from skillup.importers.messages import is_messages
from skillup.importers.values import SourceValue, TemplateScope, as_text

HISTORY = "_conversation"
_FILE = re.compile(r"[\w./ -]+\.(?:json|txt|md|j2|njk|js|mjs|cjs|ts|py)(?::\w+)?")


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
    inner, name = node, ""
    if isinstance(node.value, dict) and not is_messages(node.value):
        inner = node.get("raw", "prompt", "content")
        name = node.get("id", "label").text()
    inner.use()
    value = inner.value
    if isinstance(value, str) and (value.startswith(files.SCHEME) or _FILE.fullmatch(value)):
        value = files.read(value, node)
    if value is not None:
        yield Prompt(inner, name, value)
    elif not inner:
        node.drop("a prompt without a text")
