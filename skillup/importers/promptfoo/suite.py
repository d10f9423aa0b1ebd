"""promptfoo's and AgentV's suites: tests, prompts and assertions; one file format, two dialects."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import groupby

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.draft import CaseDraft, SuiteDraft, slug
from skillup.importers.promptfoo.expectations import ListedTest, SuiteContext, read_tests
from skillup.importers.promptfoo.prompts import Prompt, read_prompts
from skillup.importers.promptfoo.settings import read_environment, read_settings
from skillup.importers.promptfoo.tests import build_case, expanded, merged
from skillup.importers.promptfoo.values import SourceValue
from skillup.importers.source import SourceFile


def convert(sources: list[SourceFile], *, promptfoo: bool) -> SuiteDraft:
    """The suite in `sources`: one suite file, or files (or lines) of bare tests."""
    first = SourceValue.top(sources[0])
    draft = SuiteDraft(_name_of(sources[0]))
    if _is_suite(first):
        top = first
        defaults = top.get("default_test", "defaultTest")
        if defaults is not None and isinstance(defaults.value, str):
            defaults = _referenced_defaults(defaults)
        tests = read_tests(top, defaults)
    else:
        top, defaults = first.with_scope(None), None
        tests = [test for source in sources for test in _bare_tests(source)]
    suite = SuiteContext(top if _is_suite(first) else None, defaults, promptfoo, draft)
    if suite.top is not None:
        suite.tags = read_settings(suite.top, draft, promptfoo=promptfoo)
        read_environment(suite.top, draft, suite.placed, suite.setup)
        suite.templates = suite.top.get("assertionTemplates")
    elif not promptfoo:
        draft.defaults["pass_threshold"] = 0.8
    prompts = read_prompts(suite.top.get("prompts")) if suite.top is not None else []
    _cases(suite, prompts, tests)
    _link_dependencies(draft)
    return draft


def _name_of(source: SourceFile) -> str:
    """The file's name, or its folder's where every such file is called the same."""
    stem = source.path.name.split(".")[0]
    resolved = source.path.resolve()
    if stem.casefold() not in ("suite", "eval", "evals", "promptfooconfig", "cases", "case"):
        return slug(stem)
    directory = resolved.parent
    return slug((directory.parent if directory.name == "evals" else directory).name, slug(stem))


def _is_suite(top: SourceValue) -> bool:
    keys = {"tests", "scenarios", "cases", "evalcases", "eval_cases"}
    return isinstance(top.value, dict) and bool(keys & set(top.value))


def _referenced_defaults(node: SourceValue) -> SourceValue | None:
    from skillup.importers import references

    found = references.find(node.text(), node)
    return None if found is None else SourceValue.top(node.source.open_related(found)[0])


def _bare_tests(source: SourceFile) -> Iterable[ListedTest]:
    base = source.path.resolve().parent
    for number, node in enumerate(SourceValue.top(source).elements(), start=1):
        if not isinstance(node.value, dict):
            raise node.refuse("not a test", "write a mapping")
        name = base.name if source.path.stem == "case" else f"test-{number}"
        yield ListedTest(node, base, name)


def _cases(suite: SuiteContext, prompts: list[Prompt], tests: list[ListedTest]) -> None:
    choices: list[Prompt | None] = [*prompts] or [None]
    problems: dict[Problem, None] = {}
    for prompt in choices:
        suffix = ""
        if len(prompts) > 1 and prompt is not None:
            suffix = f"-{slug(prompt.name, f'prompt-{prompts.index(prompt) + 1}')}"
        for group in _conversations(prompt, tests):
            try:
                cases = _of_group(group, prompt, suite)
            except InvalidFilesError as error:
                # Every prompt finds the same fault of a test.
                problems |= dict.fromkeys(error.problems)
                continue
            for case in cases:
                case.id += suffix
                case.depends_on = [needed + suffix for needed in case.depends_on]
                suite.draft.cases.append(case)
    if problems:
        raise InvalidFilesError(list(problems))


def _of_group(
    group: list[ListedTest], prompt: Prompt | None, suite: SuiteContext
) -> list[CaseDraft]:
    captured: set[str] = set()
    made: list[CaseDraft] = []
    for test in group:
        for variables in expanded(test, suite):
            made.append(build_case(test, variables, prompt, suite, frozenset(captured)))
            captured.update(rule["variable"] for rule in made[-1].turns[-1].capture)
    if len(group) == 1:
        return made
    whole = merged(made)
    whole.id = _conversation_id(group[0], suite)
    return [whole]


def _conversations(prompt: Prompt | None, tests: list[ListedTest]) -> list[list[ListedTest]]:
    """Tests that are turns of one conversation, together; every other one by itself."""
    if any(test.get("mode", "turns") is not None for test in tests):
        return [[test] for test in tests]
    continues = prompt is not None and prompt.continues
    stores = any(_stores(test) for test in tests)
    keys: list[str] = []
    for index, test in enumerate(tests):
        metadata = test.get("metadata")
        label = metadata.get("conversationId", "conversation_id") if metadata is not None else None
        if label is not None:
            keys.append(f"= {test.scenario} {label.text()}")
        else:
            keys.append(f"= {test.scenario}" if continues or stores else f"{index}")
    if stores and not continues:
        tests[0].node.changed(
            "an answer is stored for later tests", "all tests became turns of one conversation"
        )
    order = {key: position for position, key in reversed(list(enumerate(keys)))}
    ordered = sorted(range(len(tests)), key=lambda index: (order[keys[index]], index))
    return [[tests[i] for i in group] for _, group in groupby(ordered, key=lambda i: keys[i])]


def _conversation_id(first: ListedTest, suite: SuiteContext) -> str:
    """The label of its turns, or what its first test is called, or the suite."""
    metadata = first.get("metadata")
    label = metadata.get("conversationId", "conversation_id") if metadata is not None else None
    own = first.node.get("id")
    for named in (label, own):
        if named is not None:
            return named.text()
    return slug(f"{first.scenario} conversation" if first.scenario else suite.draft.name)


def _stores(test: ListedTest) -> bool:
    options = test.node.value.get("options") if isinstance(test.node.value, dict) else None
    return isinstance(options, dict) and "storeOutputAs" in options


def _link_dependencies(draft: SuiteDraft) -> None:
    known = {case.id for case in draft.cases}
    for case in draft.cases:
        for needed in list(case.depends_on):
            if needed not in known or needed == case.id:
                case.depends_on.remove(needed)
                case.node.lost(f"it depends on `{needed}`, which is not here", "left out")
    cases = {case.id: case for case in draft.cases}
    try:
        TopologicalSorter({name: case.depends_on for name, case in cases.items()}).prepare()
    except CycleError as error:
        circle = [str(name) for name in error.args[1]]
        raise cases[circle[0]].node.refuse(
            f"these tests wait for each other: {' → '.join(reversed(circle))}",
            "take one of the `depends_on` away",
        ) from None
