"""promptfoo's and AgentV's suites: tests, prompts and assertions; one file format, two dialects."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from skillup.importers.promptfoo.cases import (
    CaseBuilder,
    ListedTest,
    Prompt,
    SuiteContext,
    read_environment,
    read_prompts,
    read_tags,
    read_tests,
    read_variables,
)
from skillup.importers.source import SourceFile
from skillup.importers.values import SourceValue
from skillup.importers.write import CaseDraft, SuiteDraft, slug

_CHOOSE = "choose the agent with --engine, the model with --model"
_JUDGE = "left out: the model that judges is chosen in the suite's `judge`"
_RUN = "left out: the workspace is prepared by `context` and `environment`"

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


def convert(sources: list[SourceFile], *, promptfoo: bool) -> SuiteDraft:
    """The suite in `sources`: one suite file, or files (or lines) of bare tests."""
    tops = [SourceValue.top(source) for source in sources]
    top, base = tops[0], sources[0].path.resolve().parent
    draft = SuiteDraft(slug(sources[0].path.name.split(".")[0]))
    if isinstance(top.value, dict) and "tests" in top.value:
        tests = [*read_tests(top.get("tests"), base, top.get("default_test", "defaultTest"))]
    else:
        tests = [test for one in tops for test in read_tests(one, base, one.nothing)]
        top = top.nothing
    suite = SuiteContext(top, promptfoo, draft)
    suite.tags = _read_settings(top, draft, promptfoo=promptfoo)
    read_environment(top.get("environment"), draft, suite.placed, suite.setup)
    _add_cases(suite, read_prompts(top.get("prompts")), tests)
    _link_dependencies(draft)
    return draft


def _read_settings(top: SourceValue, draft: SuiteDraft, *, promptfoo: bool) -> list[str]:
    """Names, limits and numbers of the suite, put into `draft`; the tags for every case."""
    draft.description = top.get("description").text()
    if promptfoo and draft.description:
        draft.name = slug(draft.description, draft.name)
    else:
        draft.name = top.get("name").text() or draft.name
    places = (top, top.get("evaluate_options", "evaluateOptions"), top.get("execution"))

    def number(*names: str) -> float | int | None:
        found = (place.get(*names) for place in places)
        return next((value.number() for value in found if value), None)

    threshold = number("threshold")
    if threshold is not None or not promptfoo:
        draft.defaults["pass_threshold"] = 0.8 if threshold is None else threshold
    if (trials := number("repeat")) is not None and trials >= 1:
        draft.defaults["trials"] = int(trials)
    if seconds := number("timeout_seconds"):
        draft.defaults["timeout_seconds"] = seconds
    if (workers := number("max_concurrency", "maxConcurrency", "workers")) and workers >= 1:
        draft.parallelism = int(workers)
    read_variables(top.get("env"), draft)
    return read_tags(top.get("tags"))


def _add_cases(suite: SuiteContext, prompts: list[Prompt], tests: list[ListedTest]) -> None:
    for number, prompt in enumerate(prompts or [None], start=1):
        suffix = ""
        if prompt is not None and len(prompts) > 1:
            suffix = f"-{slug(prompt.name, f'prompt-{number}')}"
        for group in _conversations(prompt, tests):
            for case in _of_group(group, prompt, suite):
                case.id += suffix
                case.depends_on = [needed + suffix for needed in case.depends_on]
                suite.draft.cases.append(case)


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
