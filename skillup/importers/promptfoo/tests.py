"""One test of a promptfoo or AgentV suite, made into a case."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from skillup.importers import references
from skillup.importers.draft import CaseDraft, TurnDraft, slug
from skillup.importers.promptfoo.expectations import ListedTest, SuiteContext, Told
from skillup.importers.promptfoo.prompts import (
    HISTORY,
    Prompt,
    mode_of,
    read_conversation,
    spoken_in,
)
from skillup.importers.promptfoo.settings import read_environment, read_tags
from skillup.importers.promptfoo.values import SourceValue, TemplateScope

Variables = dict[str, SourceValue]


def expanded(test: ListedTest, suite: SuiteContext) -> Iterator[Variables]:
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
    test: ListedTest,
    variables: Variables,
    prompt: Prompt | None,
    suite: SuiteContext,
    captured: frozenset[str],
) -> CaseDraft:
    """The case that `test` comes to with one prompt."""
    scope = TemplateScope(
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
    background = Told(test, node, scope, suite)
    if node.get("turns") is not None or mode_of(node) == "conversation":
        read_conversation(node, prompt, background, case)
    else:
        spoken = spoken_in(prompt, background, case)
        if not spoken.prompt.strip():
            raise node.refuse("there is no user message in this test", "give it an input")
        turn = TurnDraft(spoken.prompt)
        case.turns.append(turn)
        case.system, case.history = spoken.system, spoken.history
        turn.expected_output = background.expected_text(case)
        turn.assertions = background.checks(node)
        _said_before(variables.get(HISTORY), prompt, case)
        _stored(test, turn)
    _settings(test, node, case)
    case.vars = {name: later.default or later.original for name, later in scope.needed.items()}
    return case


def _said_before(given: SourceValue | None, prompt: Prompt | None, case: CaseDraft) -> None:
    """Promptfoo's `_conversation` as a test writes it; a prompt that uses it has the agent's own.

    It is what `conversation-relevance` looks at, in place of the answer.
    """
    if given is None or not isinstance(given.value, list) or (prompt and prompt.continues):
        return
    pairs = [(item.get("input"), item.get("output")) for item in given.elements()]
    messages = [
        {"role": role, "content": said.text()}
        for pair in pairs
        for role, said in zip(("user", "assistant"), pair, strict=True)
        if said is not None
    ]
    if messages and all("relevance" in check for check in case.turns[0].assertions):
        case.transcript = messages
        given.changed(
            "a conversation that took place", "it is judged as it stands; nothing is sent"
        )
    elif messages:
        case.history = [*messages, *case.history]
        given.changed("a conversation that took place", "the agent's session begins with it")


def _with_files(variables: Variables, test: ListedTest) -> Variables:
    """Variables whose value is a ``file://`` text, with the file's text in its place."""
    found: Variables = {}
    for name, node in variables.items():
        found[name] = node
        value = node.value
        if isinstance(value, str) and value.startswith(references.SCHEME):
            text = references.read(value, node, base=test.base)
            if text is not None:
                found[name] = SourceValue(node.source, node.loc, text, node.scope)
    return found


def _names(test: ListedTest, node: SourceValue, case: CaseDraft) -> None:
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


def _stored(test: ListedTest, turn: TurnDraft) -> None:
    options = test.node.get("options")
    name = options.get("storeOutputAs") if options is not None else None
    if name is not None:
        turn.capture.append({"variable": name.text(), "jsonpath": "$.response"})


def _settings(test: ListedTest, node: SourceValue, case: CaseDraft) -> None:
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


# Tests that are turns of one conversation, made into one case.


def merged(cases: list[CaseDraft]) -> CaseDraft:
    """One case that says what `cases` say, one after the other."""
    first = cases[0]
    first.conversation = True
    described = [first.title] if first.title else []
    for case in cases[1:]:
        if case.system != first.system:
            case.node.changed("another system prompt in mid-conversation", "the first one stays")
        if case.history:
            case.node.lost("messages that are supposed to have been said before", "left out")
        for turn in case.turns:
            first.turns.append(turn)
        first.vars |= case.vars
        first.tags.extend(tag for tag in case.tags if tag not in first.tags)
        first.placed.extend(item for item in case.placed if item not in first.placed)
        if case.title:
            described.append(case.title)
    thresholds = {case.settings.get("pass_threshold") for case in cases}
    if len(thresholds) > 1:
        first.settings.pop("pass_threshold", None)
        first.node.changed(
            "turns with thresholds of their own", "left out: the whole conversation has one"
        )
    if len(described) > 1:
        first.title = ""
        lines = [f"Turn {number}: {text}" for number, text in enumerate(described, start=1)]
        first.description = "\n".join([first.description, *lines]).strip()
    return first
