"""Files of the suite that a case names and that are not there.

Warnings, not errors: a case may be checked on a machine that lacks its fixtures. In a run, what is
missing is an ERROR of the trial that needs it, or makes its check fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skillup.load.every_check import all_checks
from skillup.schema.case import Case
from skillup.schema.templates import written_in
from skillup.schema.workspace_paths import outside_suite

Loc = tuple[str | int, ...]


def missing_files(case: Case, root: Path) -> Iterator[tuple[Loc, str]]:
    """Where a missing file is named, and what is missing; paths start from the suite `root`."""
    for loc, path in _wanted(case):
        # Whether a file with a name in it is there, its own trial says.
        if not written_in(path) and not (root / path).exists():
            yield loc, f"there is no {path} (paths start from {root.name}/)"


def scripts_outside(case: Case) -> Iterator[tuple[Loc, str]]:
    """Where a script is named that does not lie in the suite, and why not; an error everywhere."""
    for loc, path in _wanted(case):
        why = outside_suite(path) if loc[-1] in ("script", "script_path") else None
        if why is not None:
            yield loc, why


def _wanted(case: Case) -> list[tuple[Loc, str]]:
    wanted = list(_in_context(case))
    for loc, check, _ in all_checks(case):
        if check.golden_file is not None:
            wanted.append(((*loc, "golden_file"), check.golden_file.path))
        if check.script is not None:
            wanted.append(((*loc, "script"), check.script.path))
    return wanted


def _in_context(case: Case) -> Iterator[tuple[Loc, str]]:
    if case.context.fixture is not None:
        yield ("context", "fixture"), case.context.fixture
    if case.context.git is not None and case.context.git.apply_diff is not None:
        yield ("context", "git", "apply_diff"), case.context.git.apply_diff
    for index, judge in enumerate(case.all_judges()):
        if judge.script_path is not None:
            here: Loc = ("judges", index) if case.judges is not None else ("judge",)
            yield (*here, "script_path"), judge.script_path
