"""What one test of a suite says besides its message: expectations and assertions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skillup.importers import references
from skillup.importers.draft import CaseDraft, CreatedSession, SuiteDraft
from skillup.importers.messages import content_text, is_messages
from skillup.importers.promptfoo.assertion import Background, Check
from skillup.importers.promptfoo.assertions import convert_assertions
from skillup.importers.promptfoo.rubric_assertions import LEAST_PASS, criteria_of
from skillup.importers.promptfoo.values import SourceValue, TemplateScope, as_text
from skillup.importers.source import JSON_LINES

# The `tests` of a promptfoo or AgentV suite: in place, in files, in folders, or as scenarios.

_READ = {".yaml", ".yml", ".json", *JSON_LINES}
_CASE_FILES = ("case.yaml", "case.yml")
_GLOB = "*?["


@dataclass(frozen=True, slots=True)
class ListedTest:
    """One test, the settings it falls back on (nearest first), and where its paths start."""

    node: SourceValue
    base: Path
    name: str
    """What it is called if it does not say so itself."""
    fallbacks: tuple[SourceValue, ...] = ()
    workspace: Path | None = None
    scenario: str = ""
    """Which of a scenario's configurations it runs with: its conversations are its own."""

    def get(self, *names: str) -> SourceValue | None:
        """The nearest value under one of `names`."""
        for node in (self.node, *self.fallbacks):
            found = node.get(*names)
            if found is not None:
                return found
        return None

    def variables(self) -> dict[str, SourceValue]:
        """The `vars`, the test's own before those it falls back on."""
        found: dict[str, SourceValue] = {}
        for node in reversed((self.node, *self.fallbacks)):
            given = node.get("vars")
            found.update(given.items() if given is not None else ())
        return found


def read_tests(top: SourceValue, defaults: SourceValue | None) -> list[ListedTest]:
    """Every test of the suite `top`, in order. Raises InvalidFilesError if there is no list."""
    fallbacks = (defaults,) if defaults is not None else ()
    base = top.source.path.resolve().parent
    listed = top.get("tests", "cases", "evalcases", "eval_cases")
    found: list[ListedTest] = []
    if listed is not None:
        found.extend(_tests(listed, base, fallbacks))
    scenarios = top.get("scenarios")
    for node in scenarios.elements() if scenarios is not None else ():
        found.extend(_scenario(node, base, fallbacks))
    if listed is None and scenarios is None:
        raise top.refuse("neither `tests` nor `scenarios`", "add the tests")
    return found


def _tests(
    listed: SourceValue, base: Path, fallbacks: tuple[SourceValue, ...]
) -> Iterator[ListedTest]:
    for number, node in enumerate(listed.elements(), start=1):
        if isinstance(node.value, str):
            yield from _from_reference(node, node.value, base, fallbacks)
        elif not isinstance(node.value, dict):
            raise node.refuse("not a test", "write a mapping, or the path of a file of tests")
        elif "include" in node.value or ("path" in node.value and "vars" not in node.value):
            path = node.get("include", "path")
            kind = node.get("type")
            if kind is not None:
                kind.use()
            if path is not None:
                yield from _from_reference(path, path.text(), base, fallbacks)
        else:
            yield ListedTest(node, base, f"test-{number}", fallbacks)


def _from_reference(
    node: SourceValue, reference: str, base: Path, fallbacks: tuple[SourceValue, ...]
) -> Iterator[ListedTest]:
    """The tests of the files that a text means: a file, a folder or a glob."""
    node.use()
    name = reference.removeprefix(references.SCHEME)
    if any(mark in name for mark in _GLOB):
        paths = sorted(path for path in base.glob(name) if path.is_file())
        project = references.project_of(node.source.path)
        paths = [path for path in paths if path.resolve().is_relative_to(project)]
        if not paths:
            node.note(f"`{name}` matches no file", "left out")
    else:
        found = references.find(name, node, base=base)
        paths = [] if found is None else [found]
    for path in paths:
        if path.is_dir():
            yield from _from_folder(node, path, fallbacks)
        elif path.suffix.lower() not in _READ:
            node.note(
                f"tests in a `{path.suffix}` file are not read", "left out: give YAML or JSON"
            )
        else:
            yield from _from_file(node, path, fallbacks)


def _from_file(
    node: SourceValue, path: Path, fallbacks: tuple[SourceValue, ...]
) -> Iterator[ListedTest]:
    for source in node.source.open_related(path):
        top = SourceValue.top(source)
        inner = top.get("tests", "cases") if isinstance(top.value, dict) else None
        if inner is None:
            yield from _tests(top, path.parent, fallbacks)
            continue
        defaults = top.get("default_test", "defaultTest")
        own = (defaults, *fallbacks) if defaults is not None else fallbacks
        yield from _tests(inner, path.parent, own)


def _from_folder(
    node: SourceValue, folder: Path, fallbacks: tuple[SourceValue, ...]
) -> Iterator[ListedTest]:
    """A test for each folder in `folder` that holds a case file; it is called like its folder."""
    count = 0
    for directory in sorted(path for path in folder.iterdir() if path.is_dir()):
        file = next((directory / n for n in _CASE_FILES if (directory / n).is_file()), None)
        if file is None:
            continue
        count += 1
        workspace = directory / "workspace"
        top = SourceValue.top(node.source.open_related(file)[0])
        yield ListedTest(
            top, directory, directory.name, fallbacks, workspace if workspace.is_dir() else None
        )
    if not count:
        node.note("no folder in it has a case.yaml", "left out")


def _scenario(
    node: SourceValue, base: Path, fallbacks: tuple[SourceValue, ...]
) -> Iterator[ListedTest]:
    """Every test of a scenario with every one of its configurations."""
    if isinstance(node.value, str):
        name = node.value.removeprefix(references.SCHEME)
        node.use()
        paths = sorted(base.glob(name)) if any(m in name for m in _GLOB) else [base / name]
        project = references.project_of(node.source.path)
        paths = [p for p in paths if p.is_file() and p.resolve().is_relative_to(project)]
        if not paths:
            node.note(f"there is no `{name}`", "left out")
        for path in paths:
            for source in node.source.open_related(path):
                for inner in SourceValue.top(source).elements():
                    yield from _scenario(inner, path.parent, fallbacks)
        return
    configs, tests = node.get("config"), node.get("tests")
    if configs is None or tests is None:
        raise node.refuse("a scenario without `config` and `tests`", "add both")
    for number, config in enumerate(configs.elements(), start=1):
        label = config.get("id", "description")
        called = label.text() if label is not None else str(number)
        for test in _tests(tests, base, (config, *fallbacks)):
            name = f"{called}-{test.name}"
            yield ListedTest(test.node, test.base, name, test.fallbacks, scenario=called)


_LISTS = ("assert", "assertions", "evaluators", "graders")


@dataclass
class SuiteContext:
    """What a suite gives to each of its tests."""

    top: SourceValue | None
    defaults: SourceValue | None
    promptfoo: bool
    draft: SuiteDraft
    tags: list[str] = field(default_factory=list)
    placed: list[CreatedSession] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    templates: SourceValue | None = None


@dataclass
class Told:
    """What one test says besides its message: expectations and assertions."""

    test: ListedTest
    node: SourceValue
    scope: TemplateScope
    suite: SuiteContext

    @property
    def skips_defaults(self) -> bool:
        """Whether the suite's own input and assertions are not meant for this test."""
        run, options = self.node.get("execution"), self.test.get("options")
        skips = run.get("skip_defaults") if run is not None else None
        without = options.get("disableDefaultAsserts") if options is not None else None
        return any(node is not None and node.take() is True for node in (skips, without))

    @property
    def expected(self) -> SourceValue | None:
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
            rubric_prompt=self._rubric_prompt(),
            scored=not self.suite.promptfoo or self.test.get("threshold") is not None,
        )

    def _rubric_prompt(self) -> SourceValue | None:
        for place in (self.node, *self.test.fallbacks):
            options = place.get("options")
            for holder in (options, place):
                if holder is not None and (own := holder.get("rubricPrompt", "rubric_prompt")):
                    return own.with_scope(self.scope)
        return None

    def checks(self, node: SourceValue) -> list[Check]:
        """The test's assertions and those that all tests have."""
        own = assertion_lists(node)
        if (run := node.get("execution")) is not None:
            own += assertion_lists(run)
        shared: list[SourceValue] = []
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
            checks.append({"rubric": {"criteria": criteria_of(rubrics), "threshold": LEAST_PASS}})
        criteria = node.get("criteria", "expected_outcome", "outcome")
        if criteria is not None and not order and rubrics is None:
            checks.append({"rubric": criteria.text()})
        return checks

    def expected_text(self, case: CaseDraft) -> str:
        """The reference answer as a text."""
        node = self.expected
        if node is None:
            return ""
        text = answer_text(node, case, self.test.base)
        judged = any(assertion_lists(n) for n in (self.node, self.suite.top) if n is not None)
        if text and judged and not self.suite.promptfoo:
            node.changed(
                "a reference that the other tool only shows to its judges",
                "here it is a check of its own: a judge compares the answer with it",
            )
        return text


def assertion_lists(node: SourceValue) -> list[SourceValue]:
    """Every list of assertions at `node`, by whatever name."""
    return [found for name in _LISTS if (found := node.get(name)) is not None]


def answer_text(node: SourceValue, case: CaseDraft, base: Path) -> str:
    value = node.take()
    if not is_messages(value):
        return as_text(value).strip()
    texts = []
    for item in value if isinstance(value, list) else [value]:
        if item.get("tool_calls"):
            node.lost("expected calls of tools", "left out: check them with `tool_called`")
        for key in sorted(set(map(str, item)) - {"role", "content", "tool_calls"}):
            node.lost(f"`{key}` of an expected message", "left out")
        if item.get("content") is not None:
            texts.append(content_text(item["content"], node, case.placed, base=base, inline=True))
    return "\n\n".join(texts).strip()
