"""promptfoo's and AgentV's suites: tests, prompts and assertions; one file format, two dialects."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.promptfoo.prompts import Prompt, read_prompts
from skillup.importers.promptfoo.settings import read_environment, read_settings
from skillup.importers.promptfoo.tests import CaseBuilder, ListedTest, SuiteContext, read_tests
from skillup.importers.source import SourceFile
from skillup.importers.values import SourceValue
from skillup.importers.write import CaseDraft, SuiteDraft, slug

_GENERIC = ("suite", "eval", "evals", "promptfooconfig", "cases", "case")


def convert(sources: list[SourceFile], *, promptfoo: bool) -> SuiteDraft:
    """The suite in `sources`: one suite file, or files (or lines) of bare tests."""
    tops = [SourceValue.top(source) for source in sources]
    top, base = tops[0], sources[0].path.resolve().parent
    draft = SuiteDraft(_name_of(sources[0]))
    if isinstance(top.value, dict) and "tests" in top.value:
        tests = [*read_tests(top.get("tests"), base, top.get("default_test", "defaultTest"))]
    else:
        tests = [test for one in tops for test in read_tests(one, base, one.nothing)]
        top = top.nothing
    suite = SuiteContext(top, promptfoo, draft)
    suite.tags = read_settings(top, draft, promptfoo=promptfoo)
    read_environment(top.get("environment"), draft, suite.placed, suite.setup)
    _add_cases(suite, read_prompts(top.get("prompts")), tests)
    _link_dependencies(draft)
    return draft


def _name_of(source: SourceFile) -> str:
    """The file's name, or its folder's where every such file is called the same."""
    stem = source.path.name.split(".")[0]
    if stem.casefold() not in _GENERIC:
        return slug(stem)
    directory = source.path.resolve().parent
    return slug((directory.parent if directory.name == "evals" else directory).name, slug(stem))


def _add_cases(suite: SuiteContext, prompts: list[Prompt], tests: list[ListedTest]) -> None:
    problems: dict[Problem, None] = {}
    for number, prompt in enumerate(prompts or [None], start=1):
        suffix = ""
        if prompt is not None and len(prompts) > 1:
            suffix = f"-{slug(prompt.name, f'prompt-{number}')}"
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
    made = [
        CaseBuilder(test, variables, prompt, suite).build()
        for test in group
        for variables in test.variables(promptfoo=suite.promptfoo)
    ]
    if len(group) == 1:
        return made
    whole = _merged(made)
    whole.id = group[0].conversation_id or slug(suite.draft.name)
    return [whole]


def _conversations(prompt: Prompt | None, tests: list[ListedTest]) -> list[list[ListedTest]]:
    """Tests that are turns of one conversation, together; every other one by itself."""
    if any(test.get("mode", "turns") for test in tests):
        return [[test] for test in tests]
    continues = prompt is not None and prompt.continues
    groups: dict[object, list[ListedTest]] = {}
    for index, test in enumerate(tests):
        label = test.conversation_id
        groups.setdefault(label if label or continues else index, []).append(test)
    return list(groups.values())


def _merged(cases: list[CaseDraft]) -> CaseDraft:
    """Tests that are turns of one conversation as one case."""
    first = cases[0]
    first.conversation = True
    for case in cases[1:]:
        if case.system != first.system:
            case.node.changed("another system prompt in mid-conversation", "the first one stays")
        if case.history:
            case.node.lost("messages that are supposed to have been said before")
        if case.settings.get("pass_threshold") != first.settings.get("pass_threshold"):
            case.node.lost("a threshold of its own", "the first turn's is the conversation's")
        first.turns.extend(case.turns)
        first.vars |= case.vars
        first.tags = list(dict.fromkeys([*first.tags, *case.tags]))
        first.placed = list(dict.fromkeys([*first.placed, *case.placed]))
    titles = [f"Turn {n}: {case.title}" for n, case in enumerate(cases, start=1) if case.title]
    if len(titles) > 1:
        first.title = ""
        first.description = "\n".join([first.description, *titles]).strip()
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
