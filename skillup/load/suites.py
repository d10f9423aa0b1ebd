"""Reading suites, their cases and datasets, and gathering every problem on the way."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.load import compat, discover, semantics
from skillup.load.datasets import dataset_cases
from skillup.load.model import Loaded, LoadedCase, LoadedSuite, paths_of
from skillup.load.yaml_reader import Document, problems_from, read_yaml
from skillup.schema.suite import Suite


def load_paths(paths: Sequence[Path], *, variables: Iterable[str] = ()) -> Loaded:
    """All suites that `paths` mean, and what is wrong; `variables`: names that `--var` defines.

    Raises UsageError where a path means no suite at all.
    """
    problems: list[Problem] = []
    suites: dict[str, LoadedSuite] = {}
    for path, only in discover.find_suites(paths).items():
        suite = _load_suite(path, only, frozenset(variables), problems)
        if suite is None:
            continue
        other = suites.setdefault(suite.name, suite)
        if other is not suite:
            message = f"`{suite.name}` is the name of {other.path} already"
            fix = "give each suite a `name` of its own: results are distinguished by it"
            problems.append(suite.document.problem(("name",), message, fix))
    # The files in the order they were read; within each, from top to bottom.
    files = {path: number for number, path in enumerate({p.file: None for p in problems})}
    problems.sort(key=lambda p: (files[p.file], p.line, p.column))
    return Loaded(tuple(suites.values()), tuple(problems))


def _read(path: Path, problems: list[Problem]) -> Document | None:
    try:
        return read_yaml(path)
    except InvalidFilesError as error:
        problems.extend(error.problems)
        return None


def _load_suite(
    path: Path, chosen: Sequence[Path], variables: frozenset[str], problems: list[Problem]
) -> LoadedSuite | None:
    document: Document | None
    if path.suffix in discover.DATASET_ENDINGS:  # a dataset by itself
        data = {"name": path.stem, "cases": {"files": [], "datasets": [{"path": path.name}]}}
        document = Document(path, "", data)
    elif (document := _read(path, problems)) is None:
        return None
    root = discover.suite_root(path)
    valid = True
    try:
        if document.data.get("schema_version") == compat.VERSION:
            suite = compat.read_suite(document, problems)
        else:
            suite = Suite.model_validate(document.data)
        problems.extend(semantics.suite_problems(suite, document, root))
    except ValidationError as error:
        problems.extend(problems_from(error, document, Suite))
        # The cases are still looked at: all problems are reported at once.
        suite, valid = Suite(), False
    templates = {(root / d.case).resolve() for d in suite.cases.datasets if d.case is not None}
    files = _case_files(suite, document, root, templates, problems)
    if chosen:
        files = [file for file in files if any(file.is_relative_to(only) for only in chosen)]
        # A case asked for by name need not be listed.
        files += [p for p in chosen if p.is_file() and p not in {*files, *templates}]
    if not (files or chosen or suite.cases.files is not None or suite.cases.datasets):
        problems.append(document.problem(("cases",), "no case files beside it or in cases/"))
    cases: list[LoadedCase] = []
    for file in files:
        if (own := _read(file, problems)) is not None:
            theirs = compat.VERSION in (suite.schema_version, own.data.get("schema_version"))
            case, found = semantics.read_case(own, variables, suite, root, theirs=theirs)
            problems.extend(found)
            cases += [LoadedCase(case, own)] if case is not None else []
    all_read = len(cases) == len(files) and not chosen
    if suite.cases.datasets and (not chosen or not templates.isdisjoint(chosen)):
        cases.extend(dataset_cases(suite, root, variables, problems))

    cases = [path for loaded in cases for path in paths_of(loaded)]
    problems.extend(semantics.id_problems(cases, all_read))
    if not valid:
        return None
    problems.extend(semantics.skill_name_problems(suite, root, cases))
    return LoadedSuite(suite.name or root.name, suite, document, root, tuple(cases))


def _case_files(
    suite: Suite, document: Document, root: Path, templates: Set[Path], problems: list[Problem]
) -> list[Path]:
    """Those of `cases.files`, in that order, else by name but for datasets' `templates`."""
    directory, found = document.path.resolve().parent, list[Path]()
    for index, pattern in enumerate(suite.cases.files or ()):
        loc = ("cases", "files", index)
        outside = list(semantics.outside_problem(document, loc, pattern, root))
        matches = [] if outside else _matches(pattern, root) or _matches(pattern, directory)
        found += matches
        problems += outside
        if not matches and not outside:
            message = f"matches no file: {pattern} (paths start from {root.name}/)"
            problems.append(document.problem(loc, message))
    if suite.cases.files is None:
        found = discover.cases_beside(directory)
    # A folder once, not each of its thousand files.
    folders = {folder: folder.resolve() for folder in {path.parent for path in found}}
    real = [p.resolve() if os.path.islink(p) else folders[p.parent] / p.name for p in found]  # noqa: PTH114
    return [p for p in dict.fromkeys(real) if suite.cases.files is not None or p not in templates]


def _matches(pattern: str, root: Path) -> list[Path]:
    if (root / pattern).is_file():
        return [root / pattern]
    try:
        return sorted(path for path in root.glob(pattern) if path.is_file())
    # A glob that pathlib does not know, such as `a**`, or of more parts than it can follow.
    except (ValueError, NotImplementedError, RecursionError):
        return []


def sampled(
    suites: Sequence[LoadedSuite], item: str | None = None, size: int | None = None, seed: int = 0
) -> list[LoadedSuite]:
    """`suites` with only the items whose id or message has the text `item`, in any letter case, and
    at most `size` of each suite: by the same `seed` the same, on any machine.

    `--item` asks for items: other cases are left out. A sample is of items: other cases stay.
    Raises UsageError if items are asked for and there are none.
    """
    if item is None and size is None:
        return list(suites)
    items = [case for suite in suites for case in suite.cases if case.items is not None]
    if not items:
        option = "--sample-size" if item is None else "--item"
        message = f"{option} takes items of a dataset, and no suite given here has one"
        hint = "name it in eval.yaml: `cases: {datasets: [items.jsonl]}`"
        raise UsageError(message, hint=hint)
    taken, text = [], item and item.casefold()
    for suite in suites:
        cases = [c for c in suite.cases if text is None or text in (c.item or "").casefold()]
        # The paths of a case with branches are one item.
        known = list(dict.fromkeys((c.path, c.family) for c in cases if c.items is not None))
        if size is not None and size < len(known):
            kept = set(random.Random(seed).sample(known, size))  # noqa: S311
            cases = [c for c in cases if c.items is None or (c.path, c.family) in kept]
        taken.append(replace(suite, cases=tuple(cases)))
    if not any(suite.cases for suite in taken):
        hint = f"the first items are: {', '.join(case.id for case in items[:5])}"
        raise UsageError(f"no item has `{item}` in its id or message", hint=hint)
    return taken
