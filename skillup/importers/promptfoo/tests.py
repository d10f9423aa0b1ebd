"""The tests of a promptfoo or AgentV suite: where they are listed, and the case each becomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from skillup.importers import files
from skillup.importers.files import Placed
from skillup.importers.messages import ReadConversation, content_text, is_messages, read_messages
from skillup.importers.promptfoo.assertions import convert_assertions
from skillup.importers.promptfoo.prompts import HISTORY, Prompt
from skillup.importers.promptfoo.rubrics import LEAST_PASS, Background, criteria_of
from skillup.importers.promptfoo.settings import read_environment, read_tags
from skillup.importers.source import JSON_LINES
from skillup.importers.values import SourceValue, TemplateScope, as_text
from skillup.importers.write import CaseDraft, SuiteDraft, slug

_READ = {".yaml", ".yml", ".json", *JSON_LINES}
_CRITERIA = ("criteria", "expected_outcome", "outcome")
Variables = dict[str, SourceValue]
Fallbacks = tuple[SourceValue, ...]


@dataclass(frozen=True, slots=True)
class ListedTest:
    """One test, the settings it falls back on (nearest first), and where its paths start."""

    node: SourceValue
    base: Path
    name: str
    """What it is called if it does not say so itself."""
    fallbacks: Fallbacks = ()
    workspace: Path | None = None
    scenario: str = ""
    """Which of a scenario's configurations it runs with: its conversations are its own."""

    def get(self, *names: str) -> SourceValue:
        """The nearest value under one of `names`."""
        found = (value for node in (self.node, *self.fallbacks) if (value := node.get(*names)))
        return next(found, self.node.get("nothing"))

    @property
    def conversation_id(self) -> str:
        """The label that turns of one conversation share."""
        return self.get("metadata").get("conversationId", "conversation_id").text()

    def variables(self, *, promptfoo: bool) -> Iterator[Variables]:
        """The `vars`, its own before those it falls back on.

        In promptfoo a list of texts means a test for each of them.
        """
        places = reversed((self.node, *self.fallbacks))
        found = {name: value for node in places for name, value in node.get("vars").items()}
        lists: Variables = {}
        if promptfoo and not self.get("options").get("disableVarExpansion").is_true():
            lists = {
                name: node
                for name, node in found.items()
                if isinstance(node.value, list) and node.value and isinstance(node.value[0], str)
            }
        for chosen in product(*(node.elements() for node in lists.values())):
            yield found | dict(zip(lists, chosen, strict=True))


def read_tests(top: SourceValue, defaults: SourceValue) -> list[ListedTest]:
    """Every test of the suite `top`, in order. Raises InvalidFilesError for what is no test."""
    fallbacks = (defaults,) if defaults else ()
    base = top.source.path.resolve().parent
    found = list(_tests(top.get("tests", "cases", "evalcases"), base, fallbacks))
    for node in top.get("scenarios").elements():
        found += _scenario(node, base, fallbacks)
    return found


def _tests(listed: SourceValue, base: Path, fallbacks: Fallbacks) -> Iterator[ListedTest]:
    for number, node in enumerate(listed.elements(), start=1):
        value = node.value
        if isinstance(value, str):
            yield from _from_files(node, base, fallbacks)
        elif not isinstance(value, dict):
            raise node.refuse("not a test", "write a mapping, or the path of a file of tests")
        elif "include" in value or ("path" in value and "vars" not in value):
            node.get("type").use()
            yield from _from_files(node.get("include", "path"), base, fallbacks)
        else:
            yield ListedTest(node, base, f"test-{number}", fallbacks)


def _from_files(node: SourceValue, base: Path, fallbacks: Fallbacks) -> Iterator[ListedTest]:
    """The tests of the files that a text means: a file, a glob, or a folder of case folders."""
    node.use()
    for path in files.find_all(as_text(node.value), node, base):
        if path.is_dir():
            cases = sorted([*path.glob("*/case.yaml"), *path.glob("*/case.yml")])
            if not cases:
                node.lost("no folder in it has a case.yaml")
            for case in cases:
                top = SourceValue.top(node.source.open_related(case)[0])
                home, workspace = case.parent, case.parent / "workspace"
                given = workspace if workspace.is_dir() else None
                yield ListedTest(top, home, home.name, fallbacks, given)
        elif path.suffix.lower() not in _READ:
            what = f"tests in a `{path.suffix}` file are not read"
            node.lost(what, "left out: give YAML or JSON")
        else:
            for top in map(SourceValue.top, node.source.open_related(path)):
                defaults = top.get("default_test", "defaultTest")
                own = (defaults, *fallbacks) if defaults else fallbacks
                yield from _tests(top.get("tests", "cases") or top, path.parent, own)


def _scenario(node: SourceValue, base: Path, fallbacks: Fallbacks) -> Iterator[ListedTest]:
    """Every test of a scenario with every one of its configurations."""
    if isinstance(node.value, str):
        node.use()
        for path in files.find_all(node.value, node, base):
            for top in map(SourceValue.top, node.source.open_related(path)):
                for inner in top.elements():
                    yield from _scenario(inner, path.parent, fallbacks)
        return
    configs, tests = node.get("config"), node.get("tests")
    if not configs or not tests:
        raise node.refuse("a scenario without `config` and `tests`", "add both")
    for number, config in enumerate(configs.elements(), start=1):
        label = config.get("id", "description").text() or str(number)
        for test in _tests(tests, base, (config, *fallbacks)):
            yield replace(test, name=f"{label}-{test.name}", scenario=label)


@dataclass
class SuiteContext:
    """What a suite gives to each of its tests."""

    top: SourceValue
    promptfoo: bool
    draft: SuiteDraft
    tags: list[str] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)


def assertion_lists(node: SourceValue) -> list[SourceValue]:
    """Every list of assertions at `node`, by whatever name."""
    names = ("assert", "assertions", "evaluators", "graders")
    return [found for name in names if (found := node.get(name))]


class CaseBuilder:
    """One test with the variables, the prompt and the suite it is read with."""

    def __init__(
        self,
        test: ListedTest,
        variables: Variables,
        prompt: Prompt | None,
        suite: SuiteContext,
        captured: frozenset[str],
    ) -> None:
        known = dict(variables)
        for name, variable in variables.items():
            if isinstance(variable.value, str) and variable.value.startswith(files.SCHEME):
                text = files.read(variable.value, variable, test.base)
                known[name] = variable if text is None else replace(variable, value=text)
        # AgentV's older suites are full of text that only looks like a template.
        self.scope = TemplateScope(known, captured, empties=suite.promptfoo or bool(variables))
        self.test, self.prompt, self.suite = test, prompt, suite
        self.node = test.node.with_scope(self.scope)
        self.case = CaseDraft(self.node, placed=list(suite.placed), setup=list(suite.setup))

    def build(self) -> CaseDraft:
        """The case. Raises InvalidFilesError where the test cannot become one."""
        case, node, test = self.case, self.node, self.test
        if environment := node.get("environment"):
            case.placed, case.setup = [], []
            read_environment(environment, self.suite.draft, case.placed, case.setup)
        if test.workspace is not None:
            case.placed.append((test.workspace, ""))
        case.tags = [*self.suite.tags, *read_tags(node.get("tags"))]
        if group := node.get("conversation_id").text():
            case.tags.append(f"conversation:{group}")
        case.title = node.get("description").text()
        prefix = test.name.rpartition("-test-")[0]
        titled = slug(f"{prefix}-{case.title}" if prefix else case.title)
        case.id = node.get("id").text() or (titled if case.title else test.name)
        # Whether something judges it depends on the assertions; it is worth reading in any case.
        case.description = node.get(*_CRITERIA).text().strip()
        case.depends_on = node.get("depends_on").texts()
        if node.get("turns") or node.get("mode").text() == "conversation":
            self._read_conversation()
        else:
            self._read_message()
        self._read_settings()
        needed = self.scope.needed.items()
        case.vars = {name: later.default or later.original for name, later in needed}
        return case

    def _top(self) -> SourceValue:
        """The suite, unless the test does without its input and assertions."""
        own, options = self.node.get("execution"), self.test.get("options")
        skips = own.get("skip_defaults"), options.get("disableDefaultAsserts")
        skipped = any(skip.is_true() for skip in skips)
        return self.node.get("nothing") if skipped else self.suite.top

    def _expected(self) -> SourceValue:
        """The reference answer."""
        own = self.node.get("expected_output", "expected_messages")
        variable = self.scope.variables.get("expected_output")
        return own or (variable.with_scope(self.scope) if variable is not None else own)

    def _background(self) -> Background:
        places = (self.node, *self.test.fallbacks)
        holders = (holder for place in places for holder in (place.get("options"), place))
        prompts = (holder.get("rubricPrompt", "rubric_prompt") for holder in holders)
        prompt = next((found for found in prompts if found), None)
        return Background(
            promptfoo=self.suite.promptfoo,
            expected=self._expected().take(),
            criteria=self.node.get(*_CRITERIA).text(),
            base=self.test.base,
            templates=self.suite.top.get("assertionTemplates"),
            rubric_prompt=prompt.with_scope(self.scope) if prompt else None,
        )

    def _checks(self) -> list[dict[str, Any]]:
        """The test's assertions and those that all tests have."""
        top = self._top()
        own = [*assertion_lists(self.node), *assertion_lists(self.node.get("execution"))]
        shared = [*self.test.fallbacks, top, top.get("execution")] if top else []
        inherited = [listed for place in shared for listed in assertion_lists(place)]
        order = [*inherited, *own] if self.suite.promptfoo else [*own, *inherited]
        listed = [item.with_scope(self.scope) for item in order]
        checks = convert_assertions(listed, self._background())
        rubrics, criteria = self.node.get("rubrics"), self.node.get(*_CRITERIA)
        if rubrics:
            checks.append({"rubric": {"criteria": criteria_of(rubrics), "threshold": LEAST_PASS}})
        elif criteria and not order:
            checks.append({"rubric": criteria.text()})
        return checks

    def _read_input(self) -> ReadConversation:
        """Everything up to the message that is to be answered."""
        own = self.node.get("input", "input_messages")
        if self.prompt is not None:
            if own:
                own.drop("an `input` beside `prompts`", "left out: the prompts are what is said")
            where = self.prompt.node.with_scope(self.scope)
            messages = self.prompt.filled(self.scope)
            return read_messages(messages, where, self.case.placed, self.test.base)
        own = own or self.scope.variables.get("input", own).with_scope(self.scope)
        top = self._top().with_scope(self.scope)
        messages = []
        for given in (top.get("input"), own):
            raw = given.raw()
            if is_messages(raw):
                messages.extend(raw if isinstance(raw, list) else [raw])
            elif raw is not None:
                content = raw if isinstance(raw, list) else as_text(raw)
                messages.append({"role": "user", "content": content})
        attached = self.node.get("input_files") or top.get("input_files")
        blocks = [{"type": "file", "value": name} for name in attached.texts()]
        if blocks and messages:
            content = messages[-1].get("content")
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            messages[-1] = {**messages[-1], "content": [*blocks, *parts]}
        return read_messages(messages, own or self.node, self.case.placed, self.test.base)

    def _read_message(self) -> None:
        given, case = self._read_input(), self.case
        if not given.prompt.strip():
            raise self.node.refuse("there is no user message in this test", "give it an input")
        case.system, case.history = given.system, given.history
        reference = self._expected()
        expected = self._answer_text(reference)
        listed = [*assertion_lists(self.node), *assertion_lists(self.suite.top)]
        if expected and listed and not self.suite.promptfoo:
            reference.changed(
                "a reference that the other tool only shows to its judges",
                "here it is a check of its own: a judge compares the answer with it",
            )
        turn = {"content": given.prompt, "expected_output": expected, "assertions": self._checks()}
        if name := self.test.node.get("options").get("storeOutputAs").text():
            turn["capture"] = [{"variable": name, "jsonpath": "$.response"}]
        case.turns.append(turn)
        # Promptfoo's `_conversation` as a test writes it; a prompt that uses it has the agent's
        # own. It is what `conversation-relevance` looks at, in place of the answer.
        past = self.scope.variables.get(HISTORY)
        continues = self.prompt is not None and self.prompt.continues
        if past is None or not isinstance(past.value, list) or continues:
            return
        pairs = [(item, pair) for item in past.elements() for pair in _PAIRS]
        messages = [
            {"role": role, "content": said.text()}
            for item, (role, key) in pairs
            if (said := item.get(key))
        ]
        what = "a conversation that took place"
        if messages and all("relevance" in check for check in turn["assertions"]):
            case.transcript = messages
            past.changed(what, "it is judged as it stands; nothing is sent")
        elif messages:
            case.history = [*messages, *case.history]
            past.changed(what, "the agent's session begins with it")

    def _read_conversation(self) -> None:
        """AgentV's conversation mode: turns, each with its own expectations."""
        node, case = self.node, self.case
        turns, expected = node.get("turns"), node.get("expected_output")
        if node.get("mode").text() != "conversation":
            turns.changed("`turns` without `mode: conversation`", "taken as a conversation")
        if not isinstance(turns.value, list) or not turns.value:
            raise (turns or node).refuse("a conversation without turns", "list at least one turn")
        if expected:
            fix = "give each turn its own `expected_output`"
            raise expected.refuse("`expected_output` beside `turns`", fix)
        case.conversation = True
        if node.get("input") or "input" in self.scope.variables:
            given = self._read_input()
            case.system, case.history = given.system, given.history
            if given.prompt.strip():
                # What was said before the first turn is history that nobody has answered.
                case.history.append({"role": "user", "content": given.prompt})
        elif self.prompt is not None:
            self.prompt.node.use()
        for turn in turns.elements():
            said = turn.get("input", "content") if isinstance(turn.value, dict) else turn
            if not said:
                raise turn.refuse("a turn without `input`", "write what the user says")
            raw = content_text(said.raw(), said, case.placed, self.test.base)
            text = str(said.finish(raw, live=True))
            if not text.strip():
                raise said.refuse("an empty message", "write what the user says")
            listed, background = assertion_lists(turn), self._background()
            case.turns.append(
                {
                    "content": text,
                    "expected_output": self._answer_text(turn.get("expected_output")),
                    "assertions": convert_assertions(listed, background, of_turn=True),
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
            if (content := item.get("content")) is not None:
                placed, base = self.case.placed, self.test.base
                texts.append(content_text(content, node, placed, base, inline=True))
        return "\n\n".join(texts).strip()

    def _read_settings(self) -> None:
        node, settings = self.node, self.case.settings
        for key in ("aggregation", "on_turn_failure", "window_size"):
            if (setting := node.get(key)) and self.case.conversation:
                settings[key] = setting.take()
            elif setting:
                setting.drop("it needs turns")
        run = node.get("run")
        places = (node.get("execution"), run, node, *self.test.fallbacks)
        if threshold := next((t for place in places if (t := place.get("threshold"))), None):
            settings["pass_threshold"] = threshold.number()
        repeat = (self.test.get("options").get("repeat") or run.get("repeat")).number()
        settings["trials"] = None if repeat is None else int(repeat)
        settings["timeout_seconds"] = run.get("timeout_seconds").number()


_PAIRS = (("user", "input"), ("assistant", "output"))


def merged(cases: list[CaseDraft]) -> CaseDraft:
    """Tests that are turns of one conversation as one case."""
    first = cases[0]
    first.conversation = True
    titles = [case.title for case in cases if case.title]
    for case in cases[1:]:
        if case.system != first.system:
            case.node.changed("another system prompt in mid-conversation", "the first one stays")
        if case.history:
            case.node.lost("messages that are supposed to have been said before")
        first.turns.extend(case.turns)
        first.vars |= case.vars
        first.tags = list(dict.fromkeys([*first.tags, *case.tags]))
        first.placed = list(dict.fromkeys([*first.placed, *case.placed]))
    if len({case.settings.get("pass_threshold") for case in cases}) > 1:
        first.settings["pass_threshold"] = None
        what = "turns with thresholds of their own"
        first.node.changed(what, "left out: the whole conversation has one")
    if len(titles) > 1:
        first.title = ""
        lines = [f"Turn {number}: {text}" for number, text in enumerate(titles, start=1)]
        first.description = "\n".join([first.description, *lines]).strip()
    return first
