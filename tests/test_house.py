"""The size and order of the house: budgets that only a decision raises."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "skillup"
VIEWER = PACKAGE / "reports" / "html" / "viewer"

# Lines. To raise one is a decision that somebody must defend.
BUDGETS = {
    # Rebuilt at 37,500 and 38,800; the ceiling for what came after was to be 45,000 of each. In the
    # package a run's file took 1,400, live sessions 800, runs at URLs 500, nights 2,600, judges
    # that are debugged 700, the gateway 500, sandboxes 1,500, engines described in YAML 1,100, the
    # conformance 600, the Agent Client Protocol 900, custom engines of skill-up 350. Every area was
    # read three times to pay for it; which capabilities should go is not for a test to say.
    "package": 47_860,
    "viewer": 5_500,
    "tests": 45_000,
    "docs": 4_000,
}
# Longer ones are two ideas.
LONGEST_FILE = 500
LONGEST_FUNCTION = 80
# More are not seen at a glance.
MOST_ENTRIES = 16
# So many names that begin alike are a package that was not made.
MOST_WITH_ONE_PREFIX = 3


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def lines(*paths: Path) -> int:
    return sum(path.read_text("utf-8").count("\n") for path in paths)


def sources(folder: Path, *endings: str) -> list[Path]:
    left_out = {"node_modules", "dist", "__pycache__"}
    return [
        path
        for ending in endings
        for path in folder.rglob(f"*{ending}")
        if not left_out & set(path.relative_to(folder).parts)
    ]


@pytest.mark.parametrize("what", BUDGETS)
def test_it_stays_within_its_budget(what: str) -> None:
    found = {
        "package": sources(PACKAGE, ".py"),
        "viewer": sources(VIEWER / "src", ".js", ".ts", ".tsx", ".css"),
        "tests": sources(ROOT / "tests", ".py"),
        "docs": [*(ROOT / "docs").glob("*.md")],
    }
    assert lines(*found[what]) <= BUDGETS[what]


def test_no_file_and_no_function_is_too_long() -> None:
    files = {name: lines(path) for name, path in MODULES.items()}
    assert [name for name, length in files.items() if length > LONGEST_FILE] == []
    functions = {
        f"{name}.{node.name}": (node.end_lineno or 0) - node.lineno
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert [name for name, length in functions.items() if length > LONGEST_FUNCTION] == []


def test_no_folder_is_crowded() -> None:
    folders: dict[Path, set[str]] = defaultdict(set)
    for path in [*MODULES.values(), *sources(VIEWER / "src", ".js", ".ts", ".tsx", ".css")]:
        for entry in (path, *path.parents):
            if entry.parent == PACKAGE:
                break
            folders[entry.parent].add(entry.name)
    counts = {folder: len(names - {"__init__.py"}) for folder, names in folders.items()}
    assert {str(folder) for folder, count in counts.items() if count > MOST_ENTRIES} == set()
    prefixes = Counter(
        (folder, name.split("_")[0])
        for folder, names in folders.items()
        for name in names
        if name.endswith(".py") and "_" in name.strip("_")
    )
    assert [prefix for prefix, n in prefixes.items() if n > MOST_WITH_ONE_PREFIX] == []


def test_a_public_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def imported(name: str) -> Iterator[str]:
    """The modules of the package that a module imports, inside functions too."""
    typing_only = {
        id(inner)
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typing_only:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found = whole if whole in MODULES else node.module
                if found in MODULES and found != name:
                    yield found


def test_no_module_imports_itself_by_way_of_others() -> None:
    edges = {name: set(imported(name)) for name in MODULES}
    while True:  # what nobody imports, or imports nobody, is in no circle
        free = {name for name, to in edges.items() if not to & set(edges)}
        if not free:
            break
        edges = {name: to for name, to in edges.items() if name not in free}
    assert edges == {}
