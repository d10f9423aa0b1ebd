"""The `tests` of a promptfoo or AgentV suite: in place, in files, in folders, or as scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skillup.interop import references
from skillup.interop.node import Node
from skillup.interop.source import JSON_LINES

_READ = {".yaml", ".yml", ".json", *JSON_LINES}
_CASE_FILES = ("case.yaml", "case.yml")
_GLOB = "*?["


@dataclass(frozen=True, slots=True)
class ListedTest:
    """One test, the settings it falls back on (nearest first), and where its paths start."""

    node: Node
    base: Path
    name: str
    """What it is called if it does not say so itself."""
    fallbacks: tuple[Node, ...] = ()
    workspace: Path | None = None
    scenario: str = ""
    """Which of a scenario's configurations it runs with: its conversations are its own."""

    def get(self, *names: str) -> Node | None:
        """The nearest value under one of `names`."""
        for node in (self.node, *self.fallbacks):
            found = node.get(*names)
            if found is not None:
                return found
        return None

    def variables(self) -> dict[str, Node]:
        """The `vars`, the test's own before those it falls back on."""
        found: dict[str, Node] = {}
        for node in reversed((self.node, *self.fallbacks)):
            given = node.get("vars")
            found.update(given.items() if given is not None else ())
        return found


def read_tests(top: Node, defaults: Node | None) -> list[ListedTest]:
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


def _tests(listed: Node, base: Path, fallbacks: tuple[Node, ...]) -> Iterator[ListedTest]:
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
    node: Node, reference: str, base: Path, fallbacks: tuple[Node, ...]
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


def _from_file(node: Node, path: Path, fallbacks: tuple[Node, ...]) -> Iterator[ListedTest]:
    for source in node.source.open_related(path):
        top = Node.top(source)
        inner = top.get("tests", "cases") if isinstance(top.value, dict) else None
        if inner is None:
            yield from _tests(top, path.parent, fallbacks)
            continue
        defaults = top.get("default_test", "defaultTest")
        own = (defaults, *fallbacks) if defaults is not None else fallbacks
        yield from _tests(inner, path.parent, own)


def _from_folder(node: Node, folder: Path, fallbacks: tuple[Node, ...]) -> Iterator[ListedTest]:
    """A test for each folder in `folder` that holds a case file; it is called like its folder."""
    count = 0
    for directory in sorted(path for path in folder.iterdir() if path.is_dir()):
        file = next((directory / n for n in _CASE_FILES if (directory / n).is_file()), None)
        if file is None:
            continue
        count += 1
        workspace = directory / "workspace"
        top = Node.top(node.source.open_related(file)[0])
        yield ListedTest(
            top, directory, directory.name, fallbacks, workspace if workspace.is_dir() else None
        )
    if not count:
        node.note("no folder in it has a case.yaml", "left out")


def _scenario(node: Node, base: Path, fallbacks: tuple[Node, ...]) -> Iterator[ListedTest]:
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
                for inner in Node.top(source).elements():
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
