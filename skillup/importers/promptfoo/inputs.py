"""What a promptfoo or AgentV suite lists: tests, prompts, messages, variables, environments."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from skillup.dataclass import frozen
from skillup.importers.source import (
    JSON_LINES,
    SCHEME,
    Placed,
    SourceValue,
    TemplateScope,
    as_text,
    parse_source,
    workspace_path,
)
from skillup.importers.write import SuiteDraft

_READ = {".yaml", ".yml", ".json", *JSON_LINES}
HISTORY = "_conversation"
_FILE = re.compile(r"[\w./ -]+\.(?:jsonl?|ya?ml|txt|md|j2|njk|js|mjs|cjs|ts|py)(?::\w+)?")
_ENV = re.compile(r"\{\{-?\s*env\.([A-Za-z_]\w*)\s*-?\}\}")
_SEPARATORS = {".txt": "\n---\n", ".jsonl": "\n"}  # Of several prompts in a file
Variables = dict[str, SourceValue]


@frozen
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
        """Its messages (or text) for one test; earlier ones are left to the agent's session."""
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
        raise node.refuse("none of the prompts can be read", "give one as a text or a file of text")
    return found


def _read(node: SourceValue) -> Iterator[Prompt]:
    inner, name = node, ""
    if isinstance(node.value, dict) and not is_messages(node.value):
        inner = node.get("raw", "prompt", "content", "file", "id")
        name = node.get("label", "id").text()
    value, key = inner.value, inner.loc[-1]
    is_file = isinstance(value, str) and (
        key == "file" or value.startswith(SCHEME) or _FILE.fullmatch(value)
    )
    if not inner or (key == "id" and not is_file):
        node.drop("a prompt without a text")
        return
    inner.use()
    found = [value]
    if is_file:
        text = (node.read_file(value) or "").strip()
        if value.endswith((".yaml", ".yml")) and text:
            found = [parse_source(text, Path(value.removeprefix(SCHEME))).data]
        else:
            found = list(filter(None, text.split(_SEPARATORS.get(Path(value).suffix, "\0"))))
    for value in found:
        yield Prompt(inner, name, value)


def read_tags(node: SourceValue) -> list[str]:
    """Tags, from a list or from a mapping of labels."""
    if isinstance(node.value, dict):
        return [f"{key}:{item.text()}" for key, item in node.items()]
    return [text for text in node.texts() if text]


def read_variables(node: SourceValue, draft: SuiteDraft) -> None:
    """Variables for the agent; ``{{ env.X }}`` is ``${X}`` here."""
    for key, item in node.items():
        values = draft.environment.setdefault("env", {})
        values[key] = _ENV.sub(lambda match: f"${{{match[1]}:-}}", as_text(item.value))
        item.use()


def read_environment(node: SourceValue, draft: SuiteDraft) -> tuple[list[Placed], list[str]]:
    """Files and setup commands of the workspace that a suite's or test's `environment` names."""
    placed, setup = list[Placed](), list[str]()
    if node.get("type").value == "host":
        node.get("type").use()
    if workdir := node.get("workdir"):
        workdir.place(workdir.text(), placed, target="")
    read_variables(node.get("env"), draft)
    if command := node.get("setup").inner("command", "script"):
        value = command.take()
        is_list = isinstance(value, list)
        setup.append(shlex.join(map(as_text, value)) if is_list else as_text(value))
    return placed, setup


@frozen
class ListedTest:
    """One test, the settings it falls back on (`defaults`), and where its paths start."""

    node: SourceValue
    base: Path
    name: str  # What it is called if it does not say so itself
    defaults: SourceValue

    def get(self, *names: str) -> SourceValue:
        """Its own value under one of `names`, or the defaults'."""
        return self.node.get(*names) or self.defaults.get(*names)

    @property
    def conversation_id(self) -> str:
        """The label that turns of one conversation share."""
        return self.get("metadata").get("conversationId", "conversation_id").text()

    def variables(self, *, promptfoo: bool) -> Iterator[Variables]:
        """The `vars`; in promptfoo a list of texts means a test for each of them."""
        found = dict([*self.defaults.get("vars").items(), *self.node.get("vars").items()])
        lists: Variables = {}
        if promptfoo and self.get("options").get("disableVarExpansion").take() is not True:
            lists = {
                name: node
                for name, node in found.items()
                if isinstance(node.value, list) and node.value and isinstance(node.value[0], str)
            }
        for chosen in product(*(node.elements() for node in lists.values())):
            yield found | dict(zip(lists, chosen, strict=True))


def read_tests(listed: SourceValue, base: Path, defaults: SourceValue) -> Iterator[ListedTest]:
    """Every test of a list, in order. Raises InvalidFilesError for what is no test."""
    for number, node in enumerate(listed.elements(), start=1):
        if isinstance(node.value, str):
            node.use()
            for path in node.find(node.value, base):
                if path.suffix.lower() not in _READ:
                    node.lost(f"tests in `{path.name}` are not read", "left out: give YAML or JSON")
                    continue
                top = SourceValue.top(node.source.open_related(path))
                own = top.get("default_test", "defaultTest") or defaults
                yield from read_tests(top.get("tests") or top, path.parent, own)
        elif isinstance(node.value, dict):
            name = base.name if node.source.path.stem == "case" else f"test-{number}"
            yield ListedTest(node, base, name, defaults)
        else:
            raise node.refuse("not a test", "write a mapping, or the path of a file of tests")


# Messages: a text, a message, or a list of them with roles.

_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
}  # fmt: skip


def is_messages(value: Any) -> bool:
    """Whether `value` is a list of messages, each with its role (or one such message)."""
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        isinstance(i, dict) and isinstance(i.get("role"), str) for i in items
    )


def read_messages(
    value: Any, node: SourceValue, placed: list[Placed], base: Path
) -> tuple[str, list[dict[str, Any]], str]:
    """System prompt, history and the last user message, of the raw `value` (found at `node`)."""
    if not is_messages(value):
        return "", [], content_text(value, node, placed, base)
    system, messages = "", list[dict[str, Any]]()
    for item in value if isinstance(value, list) else [value]:
        for key in sorted(set(map(str, item)) - {"role", "content"}):
            node.lost(f"`{key}` of a message")
        if (role := _ROLES.get(item["role"])) is None:
            node.lost(f"a message of the role `{item['role']}`")
            continue
        text = content_text(item.get("content"), node, placed, base, inline=role == "system")
        if role == "system":
            system = f"{system}\n\n{text}".strip()
        elif messages and messages[-1]["role"] == role:
            messages[-1]["content"] = f"{messages[-1]['content']}\n\n{text}".strip()
        else:
            messages.append({"role": role, "content": text})
    if messages and messages[-1]["role"] == "assistant":
        node.lost("an assistant's message with no user message after it")
        messages.pop()
    return system, messages[:-1], messages[-1]["content"] if messages else ""


def content_text(
    content: Any, node: SourceValue, placed: list[Placed], base: Path, *, inline: bool = False
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
            text = node.read_file(value, base)
            parts.append(f"[file: {workspace_path(value)}]" if text is None else text)
        elif kind in ("file", "image") and isinstance(value, str):
            parts.append(f"[attached file: {node.place(value, placed, base)}]")
        else:
            parts.append(as_text(block))
            if isinstance(block, dict):
                node.changed(f"a part of the kind `{kind or '?'}`", "became JSON text")
    return "\n\n".join(part.strip("\n") for part in parts if part)
