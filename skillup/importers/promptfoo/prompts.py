"""The `prompts` of a promptfoo or AgentV suite: texts, chats, and files that hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError
from skillup.importers import references
from skillup.importers.draft import CaseDraft, TurnDraft
from skillup.importers.messages import Spoken, content_text, is_messages, read_messages
from skillup.importers.promptfoo.assertions import convert_assertions
from skillup.importers.promptfoo.expectations import Told, answer_text, assertion_lists
from skillup.importers.promptfoo.values import SourceValue, TemplateScope, as_text
from skillup.importers.source import JSON_LINES, parse_source

_PROGRAM = re.compile(r"\.(?:js|mjs|cjs|ts|py|rb|go)(?::\w+)?$|^(?:exec|python):")
_FILE = re.compile(r"[\w./ -]+\.(?:json|jsonl|txt|md|ya?ml|j2|njk)")
_BETWEEN = re.compile(r"\n---\n")
HISTORY = "_conversation"


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


def read_prompts(node: SourceValue | None) -> list[Prompt]:
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


def _entries(node: SourceValue) -> list[SourceValue]:
    if is_messages(node.value):
        return [node]
    if isinstance(node.value, dict) and not set(node.value) & {"raw", "prompt", "file", "path"}:
        # `prompts: {file://a.txt: label}`
        return [item for _, item in node.items()]
    return node.elements()


def _read(node: SourceValue) -> Iterator[Prompt]:
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


def _from_text(node: SourceValue, text: str, name: str) -> Iterator[Prompt]:
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


def _from_file(path: Path, node: SourceValue, name: str) -> Iterator[Prompt]:
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


# What is said to the agent in one test: a prompt, messages, attached files, or turns.

_PROMPT_FILE = "PROMPT.md"


def spoken_in(prompt: Prompt | None, told: Told, case: CaseDraft, *, live: bool = True) -> Spoken:
    """Everything up to the message that is to be answered."""
    node, base = told.node, told.test.base
    own = node.get("input", "input_messages")
    if prompt is not None:
        if own is not None:
            own.note("an `input` beside `prompts`", "left out: the prompts are what is said")
        where = prompt.node.with_scope(told.scope)
        return read_messages(prompt.filled(told.scope), where, case.placed, base=base, live=live)
    if own is None and "input" in told.scope.variables:
        own = told.scope.variables["input"].with_scope(told.scope)
    suite_input = told.suite.top.get("input") if told.suite.top is not None else None
    messages: list[Any] = []
    for given in (None if told.skips_defaults else suite_input, own):
        if given is not None:
            messages.extend(_as_messages(given.with_scope(told.scope).raw()))
    files = node.get("input_files")
    if files is None and told.suite.top is not None and not told.skips_defaults:
        files = told.suite.top.get("input_files")
    messages = _with_attachments(messages, files, told)
    where = (own or node).with_scope(told.scope)
    return read_messages(messages, where, case.placed, base=base, live=live)


def _as_messages(value: Any) -> list[Any]:
    if is_messages(value):
        return value if isinstance(value, list) else [value]
    return [{"role": "user", "content": value if isinstance(value, list) else as_text(value)}]


def _with_attachments(messages: list[Any], files: SourceValue | None, told: Told) -> list[Any]:
    """`messages`, the last with `files` before its text; a PROMPT.md is the text itself."""
    names = files.texts() if files is not None else []
    prompt_file = next((name for name in names if Path(name).name == _PROMPT_FILE), None)
    beside = told.test.base / _PROMPT_FILE
    if prompt_file is None and not messages and beside.is_file():
        prompt_file = _PROMPT_FILE
    if prompt_file is not None:
        text = references.read(prompt_file, files or told.node, base=told.test.base)
        messages = [*messages, {"role": "user", "content": text or ""}]
    blocks = [{"type": "file", "value": name} for name in names if name != prompt_file]
    if not blocks or not messages:
        return messages
    last = messages[-1]
    content = last.get("content")
    rest = content if isinstance(content, list) else [{"type": "text", "value": as_text(content)}]
    return [*messages[:-1], {**last, "content": [*blocks, *rest]}]


def mode_of(node: SourceValue) -> str:
    """AgentV's `mode`: ``conversation``, or nothing."""
    mode = node.get("mode")
    return mode.text() if mode is not None else ""


def read_conversation(
    node: SourceValue, prompt: Prompt | None, told: Told, case: CaseDraft
) -> None:
    """AgentV's conversation mode: turns, each with its own expectations."""
    turns = node.get("turns")
    if mode_of(node) != "conversation" and turns is not None:
        turns.changed("`turns` without `mode: conversation`", "taken as a conversation")
    if turns is None or not isinstance(turns.value, list) or not turns.value:
        raise (turns or node).refuse("a conversation without turns", "list at least one turn")
    own = node.get("expected_output")
    if own is not None:
        raise own.refuse(
            "`expected_output` beside `turns`", "give each turn its own `expected_output`"
        )
    case.conversation = True
    given = node.get("input") is not None or "input" in told.scope.variables
    if given:
        spoken = spoken_in(prompt, told, case, live=False)
        case.system, case.history = spoken.system, spoken.history
        if spoken.prompt.strip():
            # What was said before the first turn is history that nobody has answered.
            case.history.append({"role": "user", "content": spoken.prompt})
    elif prompt is not None:
        prompt.node.use()
    for turn in turns.elements():
        case.turns.append(_turn(turn, told, case))
    case.assertions = told.checks(node)


def _turn(node: SourceValue, told: Told, case: CaseDraft) -> TurnDraft:
    said = node.get("input", "content") if isinstance(node.value, dict) else node
    if said is None:
        raise node.refuse("a turn without `input`", "write what the user says")
    raw = content_text(said.raw(), said, case.placed, base=told.test.base)
    text = said.finish(raw, live=True)
    if not text.strip():
        raise said.refuse("an empty message", "write what the user says")
    turn = TurnDraft(text)
    if isinstance(node.value, dict):
        expected = node.get("expected_output")
        if expected is not None:
            turn.expected_output = answer_text(expected, case, told.test.base)
        background = told.background()
        turn.assertions = convert_assertions(assertion_lists(node), background, of_turn=True)
    return turn
