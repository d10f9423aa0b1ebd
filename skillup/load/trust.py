"""What a suite may not do unless its user trusts it: read others' files, choose where keys go.

A suite may come from anywhere. So the paths in it stay in the project that it lies in, and a key of
the user's goes to no address that only the suite names. ``--trust`` (``SKILLUP_TRUST=1``) allows
both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

from skillup.errors import Problem
from skillup.load.discover import workspace_root
from skillup.load.model import LoadedCase, all_checks, judges_of
from skillup.load.yaml_reader import Document, Loc
from skillup.schema.case import Case
from skillup.schema.patterns import outside_suite
from skillup.schema.suite import Suite
from skillup.schema.templates import written_in

VARIABLE = "SKILLUP_TRUST"
ALLOW = "if you trust this suite, allow it with --trust (or SKILLUP_TRUST=1)"

# Variables by which CLIs and libraries learn where to send requests, keys included.
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


def leaves(path: str, root: Path) -> bool:
    """Whether a path or glob that starts from `root` leads out of its project."""
    plain = _GLOB.split(path, maxsplit=1)[0]
    if ".." in Path(path[len(plain) :]).parts:
        return True
    return not (root / plain).resolve().is_relative_to(project_of(root))


def project_of(root: Path) -> Path:
    """The repository or workspace that a suite's `root` lies in; else `root` itself.

    Never a directory that holds the user's whole home: that is nobody's project.
    """
    return _project_of(root.resolve(), Path.home().resolve(), Path.cwd())


@lru_cache(maxsize=64)
def _project_of(root: Path, home: Path, here: Path) -> Path:
    repository = next((up for up in (root, *root.parents) if (up / ".git").exists()), root)
    candidates = [repository, workspace_root(root), *([here] if here in root.parents else [])]
    found = [one for one in candidates if not home.is_relative_to(one)]
    return min(found, key=lambda one: len(one.parts), default=root)


def outside_problem(document: Document, loc: Loc, path: str, root: Path) -> Iterator[Problem]:
    """An error if `path`, which a file names at `loc`, leads out of the project untrusted."""
    if leaves(path, root) and not is_trusted(os.environ):
        yield document.problem(loc, f"{path} leads out of {project_of(root)}", ALLOW)


def suite_file_problems(suite: Suite, document: Document, root: Path) -> Iterator[Problem]:
    """The paths in an `eval.yaml` that lead out of its project."""
    named: list[tuple[Loc, str | None]] = []
    named += [(("skills", n, "path"), skill.path) for n, skill in enumerate(suite.skills or ())]
    named += [(("distractors", n), path) for n, path in enumerate(suite.distractors)]
    for n, dataset in enumerate(suite.cases.datasets):
        named.append((("cases", "datasets", n, "path"), dataset.path))
        named.append((("cases", "datasets", n, "case"), dataset.case))
    named += [(("mcp", "servers", n), one.config_ref) for n, one in enumerate(suite.mcp.servers)]
    for loc, path in named:
        if path is not None:
            yield from outside_problem(document, loc, path, root)


def case_file_problems(path: LoadedCase, root: Path) -> Iterator[Problem]:
    """Files of the suite that a case names: outside of the suite or its project, or missing."""
    for loc, name, kind in _files_of(path.case):
        if kind != "script":
            yield from outside_problem(path.document, loc, name, root)
        elif (why := outside_suite(name)) is not None:
            yield path.document.problem(loc, why, "put it into the suite")
        # Whether a file with a name in it is there, its own trial says.
        if kind != "attached" and not written_in(name) and not (root / name).exists():
            message = f"there is no {name} (paths start from {root.name}/)"
            yield path.document.problem(loc, message, "a run would need it", "warning")


def _files_of(case: Case) -> Iterator[tuple[Loc, str, Literal["file", "script", "attached"]]]:
    if case.context.fixture is not None:
        yield ("context", "fixture"), case.context.fixture, "file"
    if case.context.git is not None and case.context.git.apply_diff is not None:
        yield ("context", "git", "apply_diff"), case.context.git.apply_diff, "file"
    for loc, check, _ in all_checks(case):
        if check.golden_file is not None:
            yield (*loc, "golden_file"), check.golden_file.path, "file"
        if check.script is not None:
            yield (*loc, "script"), check.script.path, "script"
    for loc, judge in judges_of(case):
        if judge.script_path is not None:
            yield (*loc, "script_path"), judge.script_path, "script"
        for n, skill in enumerate(judge.skills):
            yield (*loc, "skills", n, "path"), skill.path, "attached"
        for n, attachment in enumerate(judge.context.attachments if judge.context else ()):
            yield (*loc, "context", "attachments", n, "path"), attachment.path, "attached"
