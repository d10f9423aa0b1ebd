"""What is wrong with a suite: its skills, and the ids and dependencies of its cases."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem
from skillup.load.case_problems import renamed
from skillup.load.discover import DATASET_ENDINGS
from skillup.load.expand import PathDocument
from skillup.load.model import LoadedCase, LoadedSuite, all_checks
from skillup.load.problems import near_miss
from skillup.load.trust import suite_file_problems
from skillup.load.unsupported import unsupported_in_suite
from skillup.load.yaml_reader import Document, Loc, parse_yaml
from skillup.schema import templates
from skillup.schema.suite import Suite

_MOST_NAMED = 12
_FRONT_MATTER = 10_000


def suite_problems(suite: Suite, document: Document, root: Path) -> Iterator[Problem]:
    """What is wrong (or not run yet) in an `eval.yaml` that validates."""
    error = "a run of this suite would be an error"
    start = f"(paths start from {root.name}/)"
    for index, skill in enumerate(suite.skills or ()):
        loc: Loc = ("skills", index, "path")
        directory = root / skill.path
        if skill.source == "local_path" and not directory.is_dir():
            message = f"no such directory: {skill.path} {start}"
            yield document.problem(loc, message, error, "warning")
        elif skill.source == "local_path" and not (directory / "SKILL.md").is_file():
            fix = "what is there is installed all the same" if skill.as_is else error
            message = f"there is no SKILL.md in {skill.path} {start}"
            yield document.problem(loc, message, fix, "warning")
    for index, path in enumerate(suite.distractors):
        if not (root / path).is_dir():
            message = f"no such directory: {path} {start}"
            yield document.problem(("distractors", index), message, error, "warning")
    yield from renamed(document, ("neighbours",), "distractors")
    for loc, message in unsupported_in_suite(suite):
        yield document.problem(loc, message, severity="warning")
    if suite.engine is not None and suite.engine.custom is not None:
        message = "custom engines are not run yet; choose one with --engine"
        yield document.problem(("engine", "custom"), message, severity="warning")
    yield from suite_file_problems(suite, document, root)


def skill_name_problems(suite: Suite, root: Path, cases: Sequence[LoadedCase]) -> Iterator[Problem]:
    """Checks of skills that the suite does not install: `skill_not_used` would pass every time."""
    given = [(ref.path, ref.name) for ref in suite.skills or () if ref.source == "local_path"]
    given += [(path, None) for path in (*suite.distractors, *(["."] * (suite.skills is None)))]
    known = sorted({one for path, name in given for one in _names_of_skill(root / path, name)})
    folded = {name.casefold() for name in known}
    found: dict[Problem, None] = {}  # what is wrong with shared turns is wrong once
    for loaded in cases if known else ():
        context = loaded.case.context
        may_bring_more = bool(
            context.fixture or context.files or context.setup or suite.environment.setup_steps
        )
        for loc, check, _ in all_checks(loaded.case):
            for key in ("skill_used", "skill_not_used"):
                spec = getattr(check, key)
                name = (spec or "").strip().casefold()
                if not name or templates.has_templates(spec):
                    continue
                if not folded.isdisjoint((name, name.rpartition(":")[2])):
                    continue
                guess = near_miss(name, known)
                fix = f"did you mean `{guess}`?" if guess else f"it installs: {', '.join(known)}"
                message = f"the suite installs no skill called {spec}"
                severity = "error" if guess and not may_bring_more else "warning"
                found[loaded.document.problem((*loc, key), message, fix, severity)] = None
    yield from found


def _names_of_skill(directory: Path, name: str | None) -> Iterator[str]:
    file = directory / "SKILL.md"
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as text:
            lines = text.read(_FRONT_MATTER).splitlines() if file.is_file() else []
        yield name or directory.resolve().name
        for line in lines:
            if line.startswith("name:"):
                yield str(parse_yaml(line, file).data["name"])
    except (OSError, InvalidFilesError):
        return


def id_problems(cases: Sequence[LoadedCase], others: Callable[[], Set[str]]) -> Iterator[Problem]:
    """Ids that are taken, and dependencies on nothing, on oneself or in a circle.

    `cases` are the linear ones: a case with branches is there once for each path through it.
    `others` gives the ids of the suite's cases that are not among `cases`: those not asked for, and
    those that do not validate. It is called only if somebody depends on one.
    """
    taken: dict[str, LoadedCase] = {}
    families: dict[str, LoadedCase] = {}
    owners: dict[str, str] = {}
    for loaded in cases:
        case_id = loaded.case.id
        families.setdefault(loaded.family, loaded)
        owners.setdefault(case_id, loaded.family)
        other = taken.setdefault(case_id.casefold(), loaded)
        if other is loaded or _whole(other) is _whole(loaded):
            continue  # branches of the same name are reported by the case itself
        where = other.path.name
        where += f":{other.document.locate(('id',))[0]}" if other.item is not None else ""
        message = f"`{case_id}` is the id of {where} already"
        if other.case.id != case_id:
            message = (
                f"`{case_id}` and `{other.case.id}` (of {where}) differ only in upper and lower "
                "case: on many file systems their results would be in one folder"
            )
        yield loaded.document.problem(("id",), message, "give one of them another id")
    owners |= {family: family for family in families}
    yield from _dependency_problems(families, owners, others)


def _whole(loaded: LoadedCase) -> Document:
    document = loaded.document
    return document.whole if isinstance(document, PathDocument) else document


def _dependency_problems(
    families: Mapping[str, LoadedCase], owners: Mapping[str, str], others: Callable[[], Set[str]]
) -> Iterator[Problem]:
    graph: dict[str, list[str]] = {}
    for own, loaded in families.items():
        needs = loaded.case.depends_on
        graph[own] = [owners[one] for one in needs if owners.get(one, own) != own]
        for index, needed in enumerate(needs):
            if owners.get(needed) == own:
                message, fix = "the case depends on itself", "remove it"
            elif needed in owners or _is_among(others(), needed):
                continue
            else:
                known = sorted({*owners, *others()} - {own})
                guess = near_miss(needed, known)
                listed = ", ".join(known[:_MOST_NAMED]) + ", …" * (len(known) > _MOST_NAMED)
                fix = f"did you mean `{guess}`?" if guess else f"the others are: {listed or 'none'}"
                message = f"there is no other case `{needed}` in this suite"
            yield loaded.document.problem(("depends_on", index), message, fix)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]  # each needs the next
        message = f"these cases wait for each other: {' → '.join(circle)}"
        yield families[circle[0]].document.problem(("depends_on",), message, "take one of them out")


def _is_among(others: Set[str], needed: str) -> bool:
    """Whether it is one of `others`, or could be a branch of one: those are not looked into."""
    parts = needed.split("/")
    return any("/".join(parts[:count]) in others for count in range(1, len(parts) + 1))


def distinct_names(suites: Sequence[LoadedSuite], problems: list[Problem]) -> list[LoadedSuite]:
    """`suites`; those of the same name have their folder behind it: results go by suites' names."""
    uses = Counter(suite.name for suite in suites)
    named = []
    for suite in suites:
        if uses[suite.name] > 1:
            roots = [other.root for other in suites if other.name == suite.name]
            own = suite.root if len(set(roots)) == len(roots) else suite.path.resolve()
            # Names stand in the ids of jobs, whose parts are told apart by slashes.
            folder = os.path.relpath(own, os.path.commonpath(roots)).replace(os.sep, ".")
            name = f"{suite.name} ({folder})"
            if suite.path.suffix not in DATASET_ENDINGS:  # these cannot have a name of their own
                message = f"{uses[suite.name]} suites are called {suite.name}; this is `{name}`"
                fix = "give each a name of its own, by which runs can be compared"
                problems.append(suite.document.problem(("name",), message, fix, "warning"))
            suite = replace(suite, name=name)
        named.append(suite)
    return named
