"""One test of a promptfoo or AgentV suite, made into a case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from skillup.interop import references
from skillup.interop.assertion import Background, Check
from skillup.interop.assertions import convert_assertions
from skillup.interop.draft import CaseDraft, Placed, SuiteDraft, TurnDraft, slug
from skillup.interop.messages import Spoken, content_text, is_messages, read_messages
from skillup.interop.node import Node, as_text
from skillup.interop.prompts import Prompt
from skillup.interop.suite_settings import read_environment, read_tags
from skillup.interop.templating import Scope
from skillup.interop.test_files import Test

_LISTS = ("assert", "assertions", "evaluators", "graders")
_PROMPT_FILE = "PROMPT.md"
Variables = dict[str, Node]


@dataclass
class SuiteContext:
    """What a suite gives to each of its tests."""

    top: Node | None
    defaults: Node | None
    promptfoo: bool
    draft: SuiteDraft
    tags: list[str] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    templates: Node | None = None


def expanded(test: Test, suite: SuiteContext) -> Iterator[Variables]:
    """The test's variables; in promptfoo a list of texts means a test for each of them."""
    variables = test.variables()
    options = test.get("options")
    plain = options.get("disableVarExpansion") if options is not None else None
    if not suite.promptfoo or (plain is not None and plain.take() is True):
        yield variables
        return
    lists = {name: node for name, node in variables.items() if _is_text_list(node.value)}
    for chosen in product(*(node.elements() for node in lists.values())):
        yield variables | dict(zip(lists, chosen, strict=True))


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def build_case(
    test: Test,
    variables: Variables,
    prompt: Prompt | None,
    suite: SuiteContext,
    captured: frozenset[str],
) -> CaseDraft:
    """The case that `test` comes to with one prompt."""
    scope = Scope(
        variables=_with_files(variables, test),
        captured=captured,
        # AgentV's older suites are full of text that only looks like a template.
        empties=suite.promptfoo or bool(variables),
    )
    node = test.node.with_scope(scope)
    case = CaseDraft(node, "", [], tags=[*suite.tags, *read_tags(node.get("tags"))])
    case.placed.extend(suite.placed)
    case.setup.extend(suite.setup)
    if "environment" in node.value or "workspace" in node.value:
        case.placed.clear()
        case.setup.clear()
        read_environment(node, suite.draft, case.placed, case.setup)
    if test.workspace is not None:
        case.placed.append((test.workspace, ""))
    _names(test, node, case)
    background = _Told(test, node, scope, suite)
    if node.get("turns") is not None or _mode(node) == "conversation":
        _conversation(node, prompt, background, case)
    else:
        spoken = _spoken(prompt, background, case)
        if not spoken.prompt.strip():
            raise node.refuse("there is no user message in this test", "give it an input")
        turn = TurnDraft(spoken.prompt)
        case.turns.append(turn)
        case.system, case.history = spoken.system, spoken.history
        turn.expected_output = background.expected_text(case)
        turn.assertions = background.checks(node)
        _stored(test, turn)
    _settings(test, node, case)
    case.vars = {name: later.default or later.original for name, later in scope.needed.items()}
    return case


def _with_files(variables: Variables, test: Test) -> Variables:
    """Variables whose value is a ``file://`` text, with the file's text in its place."""
    found: Variables = {}
    for name, node in variables.items():
        found[name] = node
        value = node.value
        if isinstance(value, str) and value.startswith(references.SCHEME):
            text = references.read(value, node, base=test.base)
            if text is not None:
                found[name] = Node(node.source, node.loc, text, node.scope)
    return found


def _mode(node: Node) -> str:
    mode = node.get("mode")
    return mode.text() if mode is not None else ""


def _names(test: Test, node: Node, case: CaseDraft) -> None:
    label, described = node.get("id"), node.get("description")
    if described is not None:
        case.title = described.text()
    if label is not None:
        case.id = label.text()
    elif case.title:
        prefix = test.name.rpartition("-test-")[0]
        case.id = slug(f"{prefix}-{case.title}" if prefix else case.title)
    else:
        case.id = test.name
    if (group := node.get("conversation_id")) is not None:
        case.tags.append(f"conversation:{group.text()}")
    criteria = node.get("criteria", "expected_outcome", "outcome")
    if criteria is not None:
        # Whether something judges it depends on the assertions; it is worth reading in any case.
        case.description = criteria.text().strip()
    needed = node.get("depends_on")
    if needed is not None:
        case.depends_on = needed.texts()


@dataclass
class _Told:
    """What one test says besides its message: expectations and assertions."""

    test: Test
    node: Node
    scope: Scope
    suite: SuiteContext

    @property
    def skips_defaults(self) -> bool:
        """Whether the suite's own input and assertions are not meant for this test."""
        run, options = self.node.get("execution"), self.test.get("options")
        skips = run.get("skip_defaults") if run is not None else None
        without = options.get("disableDefaultAsserts") if options is not None else None
        return any(node is not None and node.take() is True for node in (skips, without))

    @property
    def expected(self) -> Node | None:
        """The reference answer."""
        own = self.node.get("expected_output", "expected_messages")
        if own is not None:
            return own
        variable = self.scope.variables.get("expected_output")
        return variable.with_scope(self.scope) if variable is not None else None

    @property
    def criteria(self) -> str:
        """What a good answer does, in one text."""
        node = self.node.get("criteria", "expected_outcome", "outcome")
        return node.text() if node is not None else ""

    def background(self) -> Background:
        """For the converters of assertions."""
        expected = self.expected
        return Background(
            promptfoo=self.suite.promptfoo,
            expected=expected.take() if expected is not None else None,
            criteria=self.criteria,
            base=self.test.base,
            templates=self.suite.templates,
            scored=not self.suite.promptfoo or self.test.get("threshold") is not None,
        )

    def checks(self, node: Node) -> list[Check]:
        """The test's assertions and those that all tests have."""
        own = assertion_lists(node)
        if (run := node.get("execution")) is not None:
            own += assertion_lists(run)
        shared: list[Node] = []
        for inherited in self.test.fallbacks:
            shared += assertion_lists(inherited)
        if (top := self.suite.top) is not None:
            shared += assertion_lists(top)
            older = top.get("execution")
            shared += assertion_lists(older) if older is not None else []
        if self.skips_defaults:
            shared = []
        order = [*shared, *own] if self.suite.promptfoo else [*own, *shared]
        checks = convert_assertions(
            [item.with_scope(self.scope) for item in order], self.background()
        )
        rubrics = node.get("rubrics")
        if rubrics is not None:
            checks.append({"rubric": {"criteria": _rubric_lines(rubrics)}})
        criteria = node.get("criteria", "expected_outcome", "outcome")
        if criteria is not None and not order and rubrics is None:
            checks.append({"rubric": criteria.text()})
        return checks

    def expected_text(self, case: CaseDraft) -> str:
        """The reference answer as a text."""
        node = self.expected
        if node is None:
            return ""
        text = _answer(node, case, self.test.base)
        judged = any(assertion_lists(n) for n in (self.node, self.suite.top) if n is not None)
        if text and judged and not self.suite.promptfoo:
            node.changed(
                "a reference that the other tool only shows to its judges",
                "here it is a check of its own: a judge compares the answer with it",
            )
        return text


def assertion_lists(node: Node) -> list[Node]:
    """Every list of assertions at `node`, by whatever name."""
    return [found for name in _LISTS if (found := node.get(name)) is not None]


def _rubric_lines(node: Node) -> list[Any]:
    from skillup.interop.rubric_assertions import criteria_of

    return criteria_of(node)


def _answer(node: Node, case: CaseDraft, base: Path) -> str:
    value = node.take()
    if not is_messages(value):
        return as_text(value).strip()
    texts = []
    for item in value if isinstance(value, list) else [value]:
        if item.get("tool_calls"):
            node.note("expected calls of tools", "left out: check them with `tool_called`")
        if item.get("content") is not None:
            texts.append(content_text(item["content"], node, case.placed, base=base, inline=True))
    return "\n\n".join(texts).strip()


def _spoken(prompt: Prompt | None, told: _Told, case: CaseDraft, *, live: bool = True) -> Spoken:
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


def _with_attachments(messages: list[Any], files: Node | None, told: _Told) -> list[Any]:
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


def _conversation(node: Node, prompt: Prompt | None, told: _Told, case: CaseDraft) -> None:
    """AgentV's conversation mode: turns, each with its own expectations."""
    turns = node.get("turns")
    if _mode(node) != "conversation" and turns is not None:
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
        spoken = _spoken(prompt, told, case, live=False)
        case.system, case.history = spoken.system, spoken.history
        if spoken.prompt.strip():
            # What was said before the first turn is history that nobody has answered.
            case.history.append({"role": "user", "content": spoken.prompt})
    elif prompt is not None:
        prompt.node.use()
    for turn in turns.elements():
        case.turns.append(_turn(turn, told, case))
    case.assertions = told.checks(node)


def _turn(node: Node, told: _Told, case: CaseDraft) -> TurnDraft:
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
            turn.expected_output = _answer(expected, case, told.test.base)
        background = told.background()
        turn.assertions = convert_assertions(assertion_lists(node), background)
    return turn


def _stored(test: Test, turn: TurnDraft) -> None:
    options = test.node.get("options")
    name = options.get("storeOutputAs") if options is not None else None
    if name is not None:
        turn.capture.append({"variable": name.text(), "jsonpath": "$.response"})


def _settings(test: Test, node: Node, case: CaseDraft) -> None:
    for key in ("aggregation", "on_turn_failure", "window_size"):
        if (setting := node.get(key)) is None:
            continue
        if not case.conversation:
            setting.note("it needs turns", "left out")
        else:
            case.settings[key] = setting.take()
    run, execution = node.get("run"), node.get("execution")
    for place in (node, run, execution):
        if place is not None and (threshold := place.get("threshold")) is not None:
            case.settings["pass_threshold"] = threshold.number()
    if "pass_threshold" not in case.settings:
        inherited = next((n for f in test.fallbacks if (n := f.get("threshold"))), None)
        if inherited is not None:
            case.settings["pass_threshold"] = inherited.number()
    for place, key in ((run, "repeat"), (test.get("options"), "repeat")):
        repeat = place.get(key) if place is not None else None
        if repeat is not None and (count := repeat.number()) is not None:
            case.settings["trials"] = int(count)
    limit = run.get("timeout_seconds") if run is not None else None
    if limit is not None:
        case.settings["timeout_seconds"] = limit.number()
