"""Which files a plan needs: whatever its suites, cases and profiles refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.errors import SkillupError
from skillup.executors.cluster.parcel import WantedFiles
from skillup.load.discover import DATASET_ENDINGS, suite_root
from skillup.plan import Plan

_REFERRING = frozenset(
    {
        "apply_diff",
        "attachments",
        "case",
        "config_ref",
        "datasets",
        "files",
        "fixture",
        "golden_file",
        "distractors",
        "neighbours",
        "path",
        "script",
        "script_path",
        "skills",
    }
)
"""Keys, anywhere in a suite or a case, whose value may be a path that starts from the suite."""


def wanted_by(
    plan: Plan,
    paths: Sequence[Path],
    suites: Sequence[Path],
    roots: Sequence[Path],
    profiles: Sequence[Path],
) -> WantedFiles:
    """What has to be packed so that `plan` can be made and held elsewhere.

    `paths` were given to the command, and mean `suites`, from some of which nothing may have been
    selected; `roots` are the workspaces it looks for `engines/` in, and `profiles` are files that
    were named. Raises SkillupError for a path that only exists here.
    """
    given = [path for path in paths if not path.is_dir()]
    trees: dict[Path, None] = dict.fromkeys([*given, *suites, *profiles])
    for suite in suites:
        # A dataset lies among anything at all; a suite has its folder to itself.
        if suite.suffix not in DATASET_ENDINGS:
            trees[suite_root(suite)] = None
    whole: dict[Path, None] = {}
    for root in roots:
        trees[root / "engines"] = None
    seen: set[Path] = set()
    for job in plan.jobs:
        case = job.loaded
        trees[case.path] = None
        fixture = case.case.context.fixture
        if fixture is not None:
            whole[job.suite.root / fixture] = None
        for document in (job.suite.document, case.document):
            if document.path not in seen:
                seen.add(document.path)
                for named in _named_in(document.data):
                    _require_portable(named, document.path)
                    trees[job.suite.root / named] = None
        for program in (job.profile.command or ())[:1]:
            if any(Path(program).is_relative_to(root) for root in roots):
                trees[Path(program)] = None
    places = [
        *paths,
        *roots,
        *(root / ".skillup" for root in roots if (root / ".skillup").is_dir()),
    ]
    return WantedFiles(
        tuple(path for path in trees if path.exists()),
        tuple(path for path in whole if path.exists()),
        tuple(path for path in places if path.is_dir()),
    )


def _named_in(data: Any, key: str = "") -> Iterator[str]:
    """Paths that may lead out of the suite; what is in it is packed anyway."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            # Files of a workspace: their names are no paths of the suite.
            if not (key == "context" and name == "files"):
                yield from _named_in(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from _named_in(value, key)
    elif isinstance(data, str) and key in _REFERRING and _may_lead_out(data):
        yield data


def _may_lead_out(text: str) -> bool:
    return "\n" not in text and len(text) < 1000 and (text[0:1] == "/" or ".." in text.split("/"))


def _require_portable(named: str, file: Path) -> None:
    if named.startswith("/") and Path(named).exists():
        raise SkillupError(
            f"{file}: {named} is an absolute path, and what is there is not sent to the workers",
            hint="write it relative to the suite",
        )
