"""What a suite may not do unless its user trusts it: read others' files, choose where keys go.

A suite may come from anywhere. So the paths in it stay in the project that it lies in, and a key of
the user's goes to no address that only the suite names. ``--trust`` (``SKILLUP_TRUST=1``) allows
both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from skillup.load.discover import workspace_root
from skillup.load.model import Loc, all_checks
from skillup.schema.case import Case
from skillup.schema.patterns import outside_suite
from skillup.schema.suite import Suite
from skillup.schema.templates import written_in

VARIABLE = "SKILLUP_TRUST"
ALLOW = "if you trust this suite, allow it with --trust (or SKILLUP_TRUST=1)"

# Variables by which CLIs and libraries are told where to send requests, keys included.
_ADDRESS = re.compile(r"(BASE_URL|API_BASE|API_HOST|ENDPOINT|PROXY)$", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[{]")


def is_trusted(environment: Mapping[str, str]) -> bool:
    """Whether the user has said that suites are trusted."""
    return environment.get(VARIABLE, "").strip().lower() not in ("", "0", "false", "no")


def address_problem(
    field: str, address: str, environment: Mapping[str, str], *known: str | None
) -> str | None:
    """Why no key may be sent to `address`, which a suite names in `field`; None: it may.

    `known`: addresses that the user names, in the environment or in a profile.
    """
    if is_trusted(environment) or address in known:
        return None
    return f"`{field}: {address}` would send your key to an address that the suite names; {ALLOW}"


def address_variables(suite: Suite) -> Iterator[tuple[Loc, str]]:
    """Variables of the suite that redirect an agent's requests, and with them its key."""
    for name in suite.environment.env:
        if _ADDRESS.search(name):
            yield ("environment", "env", name), name


def reads_outside(suite: Suite, root: Path) -> Iterator[tuple[Loc, str]]:
    """Where the suite names a path outside of :func:`project_of` its `root`, and the path."""
    yield from _outside(_in_suite(suite), root)


def case_reads_outside(case: Case, root: Path) -> Iterator[tuple[Loc, str]]:
    """Where a case of a suite at `root` does, and the path."""
    yield from _outside(_in_case(case), root)


def project_of(root: Path) -> Path:
    """The repository or workspace that a suite's `root` lies in; else `root` itself.

    Never a directory that holds the user's whole home: that is nobody's project.
    """
    return _project_of(root.resolve(), Path.home().resolve(), Path.cwd())


def leaves(path: str, root: Path) -> bool:
    """Whether a path or glob that starts from `root` leads out of its project."""
    plain = _GLOB.split(path, maxsplit=1)[0]
    if ".." in Path(path[len(plain) :]).parts:
        return True
    return not (root / plain).resolve().is_relative_to(project_of(root))


@lru_cache(maxsize=64)
def _project_of(root: Path, home: Path, here: Path) -> Path:
    repository = next((up for up in (root, *root.parents) if (up / ".git").exists()), root)
    candidates = [repository, workspace_root(root), *([here] if here in root.parents else [])]
    found = [one for one in candidates if not home.is_relative_to(one)]
    return min(found, key=lambda one: len(one.parts), default=root)


def _outside(named: Iterator[tuple[Loc, str | None]], root: Path) -> Iterator[tuple[Loc, str]]:
    return ((loc, path) for loc, path in named if path and leaves(path, root))


def _in_suite(suite: Suite) -> Iterator[tuple[Loc, str | None]]:
    for number, skill in enumerate(suite.skills or ()):
        yield ("skills", number, "path"), skill.path
    for number, path in enumerate(suite.distractors):
        yield ("distractors", number), path
    for number, dataset in enumerate(suite.cases.datasets):
        yield ("cases", "datasets", number, "path"), dataset.path
        yield ("cases", "datasets", number, "case"), dataset.case
    for number, server in enumerate(suite.mcp.servers):
        yield ("mcp", "servers", number, "config_ref"), server.config_ref


def _in_case(case: Case) -> Iterator[tuple[Loc, str | None]]:
    yield ("context", "fixture"), case.context.fixture
    if case.context.git is not None:
        yield ("context", "git", "apply_diff"), case.context.git.apply_diff
    for loc, check, _ in all_checks(case):
        if check.golden_file is not None:
            yield (*loc, "golden_file"), check.golden_file.path
    for number, judge in enumerate(case.all_judges()):
        here: Loc = ("judges", number) if case.judges is not None else ("judge",)
        for index, skill in enumerate(judge.skills):
            yield (*here, "skills", index, "path"), skill.path
        for index, attachment in enumerate(judge.context.attachments if judge.context else ()):
            yield (*here, "context", "attachments", index, "path"), attachment.path


# Files of the suite that a case names and that are not there.


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
