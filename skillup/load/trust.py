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

from skillup.errors import Problem
from skillup.load.discover import workspace_root
from skillup.load.yaml_reader import Document, Loc
from skillup.schema.suite import Suite

VARIABLE = "SKILLUP_TRUST"
ALLOW = "if you trust this suite, allow it with --trust (or SKILLUP_TRUST=1)"

# Variables by which CLIs and libraries learn where to send requests, keys included.
_ADDRESS = re.compile(r"(BASE_URL|API_BASE|API_HOST|ENDPOINT|PROXY)$", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[{]")


def is_trusted(environment: Mapping[str, str]) -> bool:
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
