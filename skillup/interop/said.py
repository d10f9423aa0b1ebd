"""What is said to the agent in one test: a prompt, messages, attached files, or turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.interop import references
from skillup.interop.assertions import convert_assertions
from skillup.interop.draft import CaseDraft, TurnDraft
from skillup.interop.messages import Spoken, content_text, is_messages, read_messages
from skillup.interop.node import Node, as_text
from skillup.interop.prompts import Prompt
from skillup.interop.told import Told, answer_text, assertion_lists

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


def _with_attachments(messages: list[Any], files: Node | None, told: Told) -> list[Any]:
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


def mode_of(node: Node) -> str:
    """AgentV's `mode`: ``conversation``, or nothing."""
    mode = node.get("mode")
    return mode.text() if mode is not None else ""


def read_conversation(node: Node, prompt: Prompt | None, told: Told, case: CaseDraft) -> None:
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


def _turn(node: Node, told: Told, case: CaseDraft) -> TurnDraft:
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
