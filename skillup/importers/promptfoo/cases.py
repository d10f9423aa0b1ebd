"""The tests of a promptfoo or AgentV suite, their prompts, and the case that each becomes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from skillup.importers import files
from skillup.importers.files import Placed
from skillup.importers.messages import ReadConversation, content_text, is_messages, read_messages
from skillup.importers.promptfoo.assertions import (
    LEAST_PASS,
    Background,
    convert_assertions,
    criteria_of,
)
from skillup.importers.source import JSON_LINES, parse_source
from skillup.importers.values import SourceValue, TemplateScope, as_text
from skillup.importers.write import CaseDraft, SuiteDraft, slug

_READ = {".yaml", ".yml", ".json", *JSON_LINES}
_CRITERIA = ("criteria", "expected_outcome", "outcome")
_HISTORY = "_conversation"
_PAIRS = (("user", "input"), ("assistant", "output"))
_FILE = re.compile(r"[\w./ -]+\.(?:jsonl?|ya?ml|txt|md|j2|njk|js|mjs|cjs|ts|py)(?::\w+)?")
_ENV = re.compile(r"\{\{-?\s*env\.([A-Za-z_]\w*)\s*-?\}\}")
_SEPARATORS = {".txt": "\n---\n", ".jsonl": "\n"}  # Of several prompts in a file
Variables = dict[str, SourceValue]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; `value` is its text or its messages, templates not yet filled in."""

    node: SourceValue
    name: str
    value: Any

    @property
    def continues(self) -> bool:
        """Whether it repeats the conversation so far: then tests are turns of one."""
        return _HISTORY in as_text(self.value)

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
        inner = node.get("raw", "prompt", "content", "file", "id")
        name = node.get("label", "id").text()
    value, key = inner.value, inner.loc[-1]
    is_file = isinstance(value, str) and (
        key == "file" or value.startswith(files.SCHEME) or bool(_FILE.fullmatch(value))
    )
    if not inner or (key == "id" and not is_file):
        node.drop("a prompt without a text")
        return
    inner.use()
    found = [value]
    if is_file:
        text = (files.read(value, node) or "").strip()
        if value.endswith((".yaml", ".yml")) and text:
            found = [parse_source(text, Path(value.removeprefix(files.SCHEME))).data]
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


def read_environment(
    node: SourceValue, draft: SuiteDraft, placed: list[Placed], setup: list[str]
) -> None:
    """The workspace that `environment` of a suite or test describes."""
    if node.get("type").value == "host":
        node.get("type").use()
    if workdir := node.get("workdir"):
        files.place(workdir.text(), workdir, placed, target="")
    read_variables(node.get("env"), draft)
    step = node.get("setup")
    if command := step.get("command", "script") if isinstance(step.value, dict) else step:
        value = command.take()
        words = map(as_text, value) if isinstance(value, list) else None
        setup.append(shlex.join(words) if words is not None else as_text(value))


@dataclass(frozen=True, slots=True)
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
        """The `vars`, its own before the defaults'.

        In promptfoo a list of texts means a test for each of them.
        """
        found = dict([*self.defaults.get("vars").items(), *self.node.get("vars").items()])
        lists: Variables = {}
        if promptfoo and not self.get("options").get("disableVarExpansion").is_true():
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
            yield from _from_files(node, base, defaults)
        elif isinstance(node.value, dict):
            name = base.name if node.source.path.stem == "case" else f"test-{number}"
            yield ListedTest(node, base, name, defaults)
        else:
            raise node.refuse("not a test", "write a mapping, or the path of a file of tests")


def _from_files(node: SourceValue, base: Path, defaults: SourceValue) -> Iterator[ListedTest]:
    """The tests of the files that a text means: a file, or a glob."""
    node.use()
    for path in files.find_all(as_text(node.value), node, base):
        if path.suffix.lower() in _READ:
            for top in map(SourceValue.top, node.source.open_related(path)):
                own = top.get("default_test", "defaultTest") or defaults
                yield from read_tests(top.get("tests") or top, path.parent, own)
        else:
            node.lost(f"tests in `{path.name}` are not read", "left out: give YAML or JSON")


@dataclass
class SuiteContext:
    """What a suite gives to each of its tests."""

    top: SourceValue
    promptfoo: bool
    draft: SuiteDraft
    tags: list[str] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)


class CaseBuilder:
    """One test with the variables, the prompt and the suite it is read with."""

    def __init__(
        self, test: ListedTest, variables: Variables, prompt: Prompt | None, suite: SuiteContext
    ) -> None:
        known = dict(variables)
        for name, variable in variables.items():
            if isinstance(variable.value, str) and variable.value.startswith(files.SCHEME):
                text = files.read(variable.value, variable, test.base)
                known[name] = variable if text is None else replace(variable, value=text)
        # AgentV's older suites are full of text that only looks like a template.
        self.scope = TemplateScope(known, empties=suite.promptfoo or bool(variables))
        self.test, self.prompt, self.suite = test, prompt, suite
        self.node = test.node.with_scope(self.scope)
        self.case = CaseDraft(self.node, placed=list(suite.placed), setup=list(suite.setup))
        skipped = self.node.get("execution").get("skip_defaults").is_true()
        # The suite, unless the test does without its input and assertions.
        self.top = (self.node.nothing if skipped else suite.top).with_scope(self.scope)

    def build(self) -> CaseDraft:
        """The case. Raises InvalidFilesError where the test cannot become one."""
        case, node = self.case, self.node
        if environment := node.get("environment"):
            case.placed, case.setup = [], []
            read_environment(environment, self.suite.draft, case.placed, case.setup)
        case.tags = [*self.suite.tags, *read_tags(node.get("tags"))]
        case.title = node.get("description").text()
        case.id = node.get("id").text() or (slug(case.title) if case.title else self.test.name)
        # Whether something judges it depends on the assertions; it is worth reading in any case.
        case.description = node.get(*_CRITERIA).text().strip()
        case.depends_on = node.get("depends_on").texts()
        mode = node.get("mode").text()
        if node.get("turns") or mode == "conversation":
            self._read_conversation()
        else:
            self._read_message()
        self._read_settings()
        return case

    def _expected(self) -> SourceValue:
        """The reference answer."""
        own = self.node.get("expected_output")
        return own or self.scope.variables.get("expected_output", own).with_scope(self.scope)

    def _background(self) -> Background:
        options = (place.get("options") for place in (self.test.node, self.test.defaults))
        prompts = (place.get("rubricPrompt", "rubric_prompt") for place in options)
        prompt = next(filter(None, prompts), None)
        return Background(
            promptfoo=self.suite.promptfoo,
            expected=self._expected().take(),
            criteria=self.node.get(*_CRITERIA).text(),
            base=self.test.base,
            rubric_prompt=prompt.with_scope(self.scope) if prompt else None,
        )

    def _checks(self) -> list[dict[str, Any]]:
        """The test's assertions and those that all tests have."""
        inherited = [self.test.defaults, self.top] if self.top else []
        places = [*inherited, self.node] if self.suite.promptfoo else [self.node, *inherited]
        listed = [found for place in places if (found := place.get("assert", "assertions"))]
        scoped = [found.with_scope(self.scope) for found in listed]
        checks = convert_assertions(scoped, self._background())
        rubrics, criteria = self.node.get("rubrics"), self.node.get(*_CRITERIA)
        if rubrics:
            checks.append({"rubric": {"criteria": criteria_of(rubrics), "threshold": LEAST_PASS}})
        elif criteria and not listed:
            checks.append({"rubric": criteria.text()})
        return checks

    def _read_input(self) -> ReadConversation:
        """Everything up to the message that is to be answered."""
        own, placed, base = self.node.get("input"), self.case.placed, self.test.base
        if self.prompt is not None:
            where = self.prompt.node.with_scope(self.scope)
            return read_messages(self.prompt.filled(self.scope), where, placed, base)
        own = own or self.scope.variables.get("input", own).with_scope(self.scope)
        messages = []
        for given in (self.top.get("input"), own):
            raw = given.take()
            if is_messages(raw):
                messages.extend(raw if isinstance(raw, list) else [raw])
            elif raw is not None:
                content = raw if isinstance(raw, list) else as_text(raw)
                messages.append({"role": "user", "content": content})
        return read_messages(messages, own or self.node, placed, base)

    def _read_message(self) -> None:
        given, case = self._read_input(), self.case
        if not given.prompt.strip():
            raise self.node.refuse("there is no user message in this test", "give it an input")
        case.system, case.history = given.system, given.history
        reference, checks = self._expected(), self._checks()
        expected = self._answer_text(reference)
        if expected and checks and not self.suite.promptfoo:
            reference.changed(
                "a reference that the other tool only shows to its judges",
                "here it is a check of its own: a judge compares the answer with it",
            )
        turn = {"content": given.prompt, "expected_output": expected, "assertions": checks}
        case.turns.append(turn)
        # Promptfoo's `_conversation` as a test writes it; a prompt that uses it has the agent's.
        past = self.scope.variables.get(_HISTORY, self.node.nothing)
        if self.prompt is None or self.prompt.continues:
            return
        took_place = [
            {"role": role, "content": text}
            for pair in past.elements()
            for role, key in _PAIRS
            if (text := pair.get(key).text())
        ]
        if took_place and checks and all("relevance" in check for check in checks):
            # That is what `conversation-relevance` looks at, in place of the answer.
            case.history, case.took_place = took_place, True
            past.changed("a conversation that took place", "it is judged; nothing is sent")
        else:
            case.history += took_place

    def _read_conversation(self) -> None:
        """AgentV's conversation mode: turns, each with its own expectations."""
        node, case = self.node, self.case
        turns = node.get("turns")
        if not isinstance(turns.value, list) or not turns.value:
            raise (turns or node).refuse("a conversation without turns", "list at least one turn")
        case.conversation = True
        if expected := self._expected():
            expected.lost("an expected output beside `turns`", "left out: give each turn its own")
        if node.get("input") or "input" in self.scope.variables:
            given = self._read_input()
            case.system, case.history = given.system, given.history
            if given.prompt.strip():
                # What was said before the first turn is history that nobody has answered.
                case.history.append({"role": "user", "content": given.prompt})
        for turn in turns.elements():
            message = turn.get("input", "content") if isinstance(turn.value, dict) else turn
            text = content_text(message.take(), message, case.placed, self.test.base)
            if not text.strip():
                raise turn.refuse("an empty message", "write what the user says")
            listed, background = turn.get("assert", "assertions"), self._background()
            case.turns.append(
                {
                    "content": text,
                    "expected_output": self._answer_text(turn.get("expected_output")),
                    "assertions": convert_assertions([listed], background, of_turn=True),
                }
            )
        case.assertions = self._checks()

    def _answer_text(self, node: SourceValue) -> str:
        """A reference answer: a text, or messages."""
        value = node.take()
        if not is_messages(value):
            return as_text(value).strip()
        texts = []
        for item in value if isinstance(value, list) else [value]:
            for key in sorted(set(map(str, item)) - {"role", "content"}):
                node.lost(f"`{key}` of an expected message")
            placed, base = self.case.placed, self.test.base
            texts.append(content_text(item.get("content"), node, placed, base, inline=True))
        return "\n\n".join(filter(None, texts)).strip()

    def _read_settings(self) -> None:
        node, settings = self.node, self.case.settings
        for key in ("aggregation", "on_turn_failure", "window_size"):
            if self.case.conversation and (setting := node.get(key)):
                settings[key] = setting.take()
        run = node.get("run")
        places = (node.get("execution"), run, node, self.test.defaults)
        if threshold := next((t for place in places if (t := place.get("threshold"))), None):
            settings["pass_threshold"] = threshold.number()
        repeat = (self.test.get("options").get("repeat") or run.get("repeat")).number()
        settings["trials"] = None if repeat is None else int(repeat)
        settings["timeout_seconds"] = run.get("timeout_seconds").number()
