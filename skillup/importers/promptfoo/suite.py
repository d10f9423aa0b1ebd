"""promptfoo's and AgentV's suites; one file format, two dialects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from skillup.importers.promptfoo.assertions import (
    LEAST_PASS,
    Background,
    convert_assertions,
    criteria_of,
)
from skillup.importers.promptfoo.inputs import (
    HISTORY,
    ListedTest,
    Prompt,
    Variables,
    content_text,
    is_messages,
    read_environment,
    read_messages,
    read_prompts,
    read_tags,
    read_tests,
    read_variables,
)
from skillup.importers.source import SCHEME, SourceValue, TemplateScope, as_text
from skillup.importers.write import CaseDraft, SuiteDraft, slug

_CHOOSE = "choose the agent with --engine, the model with --model"
_JUDGE = "left out: the model that judges is chosen in the suite's `judge`"
_RUN = "left out: the workspace is prepared by `context` and `environment`"
_SIDES = (("user", "input"), ("assistant", "output"))  # Of a pair in `_conversation`

EXPLANATIONS = {
    **dict.fromkeys(("providers", "target", "targets", "execution"), _CHOOSE),
    **dict.fromkeys(("provider", "model", "temperature"), _JUDGE),
    **dict.fromkeys(("extensions", "hooks", "cwd", "repos", "workspace", "image"), _RUN),
    "metadata": "left out: keep it in the description, if it matters",
    "scenarios": "left out: write a test for each of their configurations",
    "transform": "left out: answers are judged as they are, no program changes them before",
    "budget_usd": "left out: give it with --max-cost-usd",
    "vars": "left out: no text uses it",
}


class _Suite:
    """A suite's own settings, put into `draft`, and what it gives to each of its tests."""

    def __init__(self, top: SourceValue, draft: SuiteDraft, *, promptfoo: bool) -> None:
        self.top, self.draft, self.promptfoo = top, draft, promptfoo
        self.tags = read_tags(top.get("tags"))
        read_variables(top.get("env"), draft)
        self.placed, self.setup = read_environment(top.get("environment"), draft)
        draft.description = top.get("description").text()
        if promptfoo and draft.description:
            draft.name = slug(draft.description, draft.name)
        else:
            draft.name = top.get("name").text() or draft.name
        threshold = self._number("threshold")
        if threshold is not None or not promptfoo:
            draft.defaults["pass_threshold"] = LEAST_PASS if threshold is None else threshold
        if (trials := self._number("repeat")) is not None and trials >= 1:
            draft.defaults["trials"] = int(trials)
        if seconds := self._number("timeout_seconds"):
            draft.defaults["timeout_seconds"] = seconds
        workers = self._number("max_concurrency", "maxConcurrency", "workers")
        if workers and workers >= 1:
            draft.parallelism = int(workers)

    def _number(self, *names: str) -> float | int | None:
        options = self.top.get("evaluate_options", "evaluateOptions")
        found = (place.get(*names) for place in (self.top, options, self.top.get("execution")))
        return next((value.number() for value in found if value), None)


def convert(top: SourceValue, *, promptfoo: bool) -> SuiteDraft:
    """The suite in a file: one suite, or bare tests."""
    path = top.source.path
    draft, base = SuiteDraft(slug(path.name.split(".")[0])), path.resolve().parent
    if isinstance(top.value, dict) and "tests" in top.value:
        tests = [*read_tests(top.get("tests"), base, top.get("default_test", "defaultTest"))]
    else:
        tests, top = [*read_tests(top, base, top.nothing)], top.nothing
    suite = _Suite(top, draft, promptfoo=promptfoo)
    prompts = read_prompts(top.get("prompts"))
    for number, prompt in enumerate(prompts or [None], start=1):
        suffix = ""
        if prompt is not None and len(prompts) > 1:
            suffix = f"-{slug(prompt.name, f'prompt-{number}')}"
        for case in _cases(suite, prompt, tests):
            case.id += suffix
            case.depends_on = [needed + suffix for needed in case.depends_on]
            draft.cases.append(case)
    _link_dependencies(draft)
    return draft


def _cases(suite: _Suite, prompt: Prompt | None, tests: list[ListedTest]) -> Iterator[CaseDraft]:
    """The tests with one prompt; those that are turns of one conversation as one case."""
    alone = any(test.get("mode", "turns") for test in tests)
    continues = prompt is not None and prompt.continues
    groups: dict[object, list[ListedTest]] = {}
    for index, test in enumerate(tests):
        label = "" if alone else test.conversation_id
        joined = label or (continues and not alone)
        groups.setdefault(label if joined else index, []).append(test)
    for group in groups.values():
        made = [
            _CaseBuilder(test, variables, prompt, suite).build()
            for test in group
            for variables in test.variables(promptfoo=suite.promptfoo)
        ]
        if len(group) > 1:
            made = [_merged(made)]
            made[0].id = group[0].conversation_id or slug(suite.draft.name)
        yield from made


def _merged(cases: list[CaseDraft]) -> CaseDraft:
    first = cases[0]
    first.conversation, first.took_place = True, False
    for case in cases[1:]:
        if case.system != first.system:
            case.node.changed("another system prompt in mid-conversation", "the first one stays")
        if case.history:
            case.node.lost("messages that are supposed to have been said before")
        if case.settings.get("pass_threshold") != first.settings.get("pass_threshold"):
            case.node.lost("a threshold of its own", "the first turn's is the conversation's")
        first.turns.extend(case.turns)
        first.tags = list(dict.fromkeys([*first.tags, *case.tags]))
        first.placed = list(dict.fromkeys([*first.placed, *case.placed]))
    return first


def _link_dependencies(draft: SuiteDraft) -> None:
    cases = {case.id: case for case in draft.cases}
    for case in draft.cases:
        for needed in [name for name in case.depends_on if name not in cases or name == case.id]:
            case.depends_on.remove(needed)
            case.node.lost(f"it depends on `{needed}`, which is not here")
    try:
        TopologicalSorter({name: case.depends_on for name, case in cases.items()}).prepare()
    except CycleError as error:
        circle = [str(name) for name in error.args[1]]
        raise cases[circle[0]].node.refuse(
            f"these tests wait for each other: {' → '.join(reversed(circle))}",
            "take one of the `depends_on` away",
        ) from None


class _CaseBuilder:
    """One test with the variables, the prompt and the suite it is read with."""

    def __init__(
        self, test: ListedTest, variables: Variables, prompt: Prompt | None, suite: _Suite
    ) -> None:
        known = dict(variables)
        for name, variable in variables.items():
            if isinstance(variable.value, str) and variable.value.startswith(SCHEME):
                text = variable.read_file(variable.value, test.base)
                known[name] = variable if text is None else replace(variable, value=text)
        # AgentV's older suites are full of text that only looks like a template.
        self.scope = TemplateScope(known, empties=suite.promptfoo or bool(variables))
        self.test, self.prompt, self.suite = test, prompt, suite
        self.node = test.node.with_scope(self.scope)
        self.criteria = self.node.get("criteria", "expected_outcome", "outcome")
        self.case = CaseDraft(self.node, placed=list(suite.placed), setup=list(suite.setup))
        skipped = self.node.get("execution").get("skip_defaults").take() is True
        # The suite, unless the test does without its input and assertions.
        self.top = (self.node.nothing if skipped else suite.top).with_scope(self.scope)

    def build(self) -> CaseDraft:
        """The case. Raises InvalidFilesError where the test cannot become one."""
        case, node = self.case, self.node
        if environment := node.get("environment"):
            case.placed, case.setup = read_environment(environment, self.suite.draft)
        case.tags = [*self.suite.tags, *read_tags(node.get("tags"))]
        case.title = node.get("description").text()
        case.id = node.get("id").text() or (slug(case.title) if case.title else self.test.name)
        # Whether something judges it depends on the assertions; it is worth reading in any case.
        case.description = self.criteria.text().strip()
        case.depends_on = node.get("depends_on").texts()
        if node.get("mode").text() == "conversation" or node.get("turns"):
            self._read_conversation()
        else:
            self._read_message()
        self._read_settings()
        return case

    def _given(self, name: str) -> SourceValue:
        """What the test has under `name`, else its variable of that name."""
        own = self.node.get(name)
        return own or self.scope.variables.get(name, own).with_scope(self.scope)

    def _background(self) -> Background:
        places = (place.get("options") for place in (self.test.node, self.test.defaults))
        prompts = (options.get("rubricPrompt", "rubric_prompt") for options in places)
        prompt = next(filter(None, prompts), None)
        return Background(
            promptfoo=self.suite.promptfoo,
            expected=self._given("expected_output").take(),
            criteria=self.criteria.text(),
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
        if rubrics := self.node.get("rubrics"):
            checks.append({"rubric": {"criteria": criteria_of(rubrics), "threshold": LEAST_PASS}})
        elif self.criteria and not listed:
            checks.append({"rubric": self.criteria.text()})
        return checks

    def _read_input(self) -> str:
        """The message that is to be answered; what comes before it goes into the case."""
        case, base = self.case, self.test.base
        if self.prompt is not None:
            where = self.prompt.node.with_scope(self.scope)
            value = self.prompt.filled(self.scope)
        else:
            own, value = self._given("input"), []
            where = own or self.node
            for given in (self.top.get("input"), own):
                raw = given.take()
                if is_messages(raw):
                    value.extend(raw if isinstance(raw, list) else [raw])
                elif raw is not None:
                    content = raw if isinstance(raw, list) else as_text(raw)
                    value.append({"role": "user", "content": content})
        case.system, case.history, message = read_messages(value, where, case.placed, base)
        return message

    def _read_message(self) -> None:
        message, case = self._read_input(), self.case
        if not message.strip():
            raise self.node.refuse("there is no user message in this test", "give it an input")
        reference, checks = self._given("expected_output"), self._checks()
        expected = self._answer_text(reference)
        if expected and checks and not self.suite.promptfoo:
            reference.changed(
                "a reference that the other tool only shows to its judges",
                "here it is a check of its own: a judge compares the answer with it",
            )
        case.turns = [{"content": message, "expected_output": expected, "assertions": checks}]
        # Promptfoo's `_conversation` as a test writes it; a prompt that uses it has the agent's.
        past = self.scope.variables.get(HISTORY, self.node.nothing)
        if self.prompt is None or self.prompt.continues:
            return
        took_place = [
            {"role": role, "content": text}
            for pair in past.elements()
            for role, key in _SIDES
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
        if expected := self._given("expected_output"):
            expected.lost("an expected output beside `turns`", "left out: give each turn its own")
        has_input = node.get("input") or "input" in self.scope.variables
        if has_input and (message := self._read_input()).strip():
            # What was said before the first turn is history that nobody has answered.
            case.history.append({"role": "user", "content": message})
        for turn in turns.elements():
            given = turn.inner("input", "content")
            text = content_text(given.take(), given, case.placed, self.test.base)
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
