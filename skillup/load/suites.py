"""Reading suites and their cases, and gathering every problem on the way."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem
from skillup.load import v1alpha1
from skillup.load.case_problems import case_problems
from skillup.load.datasets import case_templates, dataset_cases, dataset_suite
from skillup.load.discover import (
    DATASET_ENDINGS,
    SuiteRequest,
    cases_beside,
    find_suites,
    suite_root,
)
from skillup.load.expand import merge_defaults, paths_of
from skillup.load.model import Loaded, LoadedCase, LoadedSuite
from skillup.load.problems import problems_from
from skillup.load.suite_problems import (
    distinct_names,
    id_problems,
    skill_name_problems,
    suite_problems,
)
from skillup.load.trust import outside_problem
from skillup.load.yaml_reader import Document, read_yaml
from skillup.schema.case import Case
from skillup.schema.suite import Suite


def load_paths(paths: Sequence[Path], *, variables: Iterable[str] = ()) -> Loaded:
    """All suites that `paths` mean; `variables` are names that `--var` will define.

    Raises UsageError where a path means no suite at all; everything else that is wrong is in the
    result's ``problems``.
    """
    requests = find_suites(paths)
    problems: list[Problem] = []
    with _without_collector():
        loaded = [_load_suite(request, frozenset(variables), problems) for request in requests]
        suites = distinct_names([suite for suite in loaded if suite is not None], problems)
    # The files in the order they were read; within each, from top to bottom.
    files = {path: number for number, path in enumerate({p.file: None for p in problems})}
    problems.sort(key=lambda p: (files[p.file], p.line, p.column))
    return Loaded(tuple(suites), tuple(problems))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Everything that is made here is kept: to look for garbage in it costs a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(path: Path, problems: list[Problem]) -> Document | None:
    try:
        return read_yaml(path)
    except InvalidFilesError as error:
        problems.extend(error.problems)
        return None


def _load_suite(
    request: SuiteRequest, variables: frozenset[str], problems: list[Problem]
) -> LoadedSuite | None:
    is_dataset = request.path.suffix in DATASET_ENDINGS
    document = dataset_suite(request.path) if is_dataset else _read(request.path, problems)
    if document is None:
        return None
    root = suite_root(request.path)
    valid = True
    try:
        suite = _suite(document, problems)
        problems.extend(suite_problems(suite, document, root))
    except ValidationError as error:
        problems.extend(problems_from(error, document, Suite))
        # The cases are still looked at: all problems are reported at once.
        suite, valid = Suite(), False
    templates = case_templates(document.data, root)
    files, not_requested = case_files(document, root, request, templates, problems)
    cases: list[LoadedCase] = []
    broken: list[str] = []
    for path in files:
        loaded = _load_case(path, suite, root, variables, problems)
        if isinstance(loaded, LoadedCase):
            cases.append(loaded)
        else:
            broken.append(loaded)
    if not request.only or any(only in templates for only in request.only):
        cases.extend(dataset_cases(suite, document, root, variables, problems))

    @cache
    def others() -> frozenset[str]:
        documents = [(path, _read(path, [])) for path in not_requested]
        ids = [_id_of(document) if document else path.stem for path, document in documents]
        return frozenset([*broken, *ids])

    cases = [path for loaded in cases for path in paths_of(loaded)]
    problems.extend(id_problems(cases, others))
    if not valid:
        return None
    problems.extend(skill_name_problems(suite, root, cases))
    return LoadedSuite(suite.name or root.name, suite, document, root, tuple(cases))


def _suite(document: Document, problems: list[Problem]) -> Suite:
    if not v1alpha1.states_version(document.data):
        return Suite.model_validate(document.data)
    for name in v1alpha1.moved_homes(document.data):
        message = f"`{name}` is left out"
        fix = "each trial has a home of its own, empty at first"
        problems.append(document.problem(("environment", "env", name), message, fix, "warning"))
    return v1alpha1.translated_suite(Suite.model_validate(v1alpha1.without_zeros(document.data)))


def _load_case(
    file: Path, suite: Suite, root: Path, variables: frozenset[str], problems: list[Problem]
) -> LoadedCase | str:
    """The case; if it does not validate, the id that it would have."""
    document = _read(file, problems)
    if document is None:
        return file.stem
    theirs = suite.schema_version is not None or v1alpha1.states_version(document.data)
    data = v1alpha1.without_zeros(document.data) if theirs else document.data
    try:
        case = Case.model_validate(data)
    except ValidationError as error:
        problems.extend(problems_from(error, document, Case))
        return _id_of(document)
    merge = v1alpha1.merged_case if theirs else merge_defaults
    merged = merge(case, suite, default_id=file.stem)
    problems.extend(case_problems(merged, document, variables, suite, root))
    return LoadedCase(merged, document)


def _id_of(document: Document) -> str:
    return str(document.data.get("id") or document.path.stem)


# Which files hold the suite's cases.


def case_files(
    document: Document,
    root: Path,
    request: SuiteRequest,
    templates: Set[Path],
    problems: list[Problem],
) -> tuple[list[Path], list[Path]]:
    """Those of the suite's case files that `request` asks for, and the others.

    In the order of `cases.files`, else by name; each once. `templates` are the case files of
    datasets. What is wrong goes into `problems`.
    """
    directory = request.path.resolve().parent
    section = document.data.get("cases")
    section = section if isinstance(section, dict) else {}
    patterns = section.get("files")
    if isinstance(patterns, str | int):
        patterns = [patterns]
    if isinstance(patterns, list):
        found = _listed(patterns, document, root, directory, problems)
    else:
        found = [path for path in cases_beside(directory) if path.resolve() not in templates]
        if not (found or request.only or templates or section.get("datasets")):
            message = "no case files beside it or in cases/"
            problems.append(document.problem(("cases",), message))
    every = list(dict.fromkeys(path.resolve() for path in found))
    if not request.only:
        return every, []
    chosen = [p for p in every if any(p.is_relative_to(only) for only in request.only)]
    # A case asked for by name need not be listed.
    chosen += [p for p in request.only if p.is_file() and p not in chosen and p not in templates]
    return chosen, [path for path in every if path not in chosen]


def _listed(
    patterns: list[object], document: Document, root: Path, directory: Path, problems: list[Problem]
) -> list[Path]:
    found: list[Path] = []
    for index, pattern in enumerate(map(str, patterns)):
        loc = ("cases", "files", index)
        outside = list(outside_problem(document, loc, pattern, root))
        matches = [] if outside else _matches(pattern, root) or _matches(pattern, directory)
        found += matches
        problems += outside
        if not matches and not outside and pattern:
            what = "matches no file" if _is_glob(pattern) else "no such file"
            message = f"{what}: {pattern} (paths start from {root.name}/)"
            problems.append(document.problem(loc, message))
    return found


def _is_glob(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


def _matches(pattern: str, root: Path) -> list[Path]:
    path = root / pattern
    if path.is_file() or not _is_glob(pattern) or Path(pattern).is_absolute():
        return [path] if path.is_file() else []
    try:
        return sorted(path for path in root.glob(pattern) if path.is_file())
    # A glob that pathlib does not know, such as `a**`, or of more parts than it can follow.
    except (ValueError, NotImplementedError, RecursionError):
        return []
