"""Reading suites and their cases, and gathering every problem on the way."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem
from skillup.load import v1alpha1
from skillup.load.case_files import case_files
from skillup.load.case_problems import (
    case_problems,
    nobody_plays,
    problem_at,
    skill_name_problems,
    suite_problems,
)
from skillup.load.datasets import dataset_cases, dataset_suite, templates_of
from skillup.load.discover import (
    DATASET_ENDINGS,
    IsCase,
    SuiteRequest,
    find_suites,
    suite_root,
)
from skillup.load.expand import merge_defaults, paths_of
from skillup.load.mending import mended
from skillup.load.model import Loaded, LoadedCase, LoadedSuite
from skillup.load.problems import problems_from
from skillup.load.suite_problems import id_problems, told_apart
from skillup.load.trust import (
    ALLOW,
    case_reads_outside,
    is_trusted,
    missing_files,
    project_of,
    reads_outside,
    scripts_outside,
)
from skillup.load.yaml_reader import Document, read_yaml
from skillup.schema.case import Case
from skillup.schema.suite import Suite
from skillup.schema.templates import written_in


def load_paths(paths: Sequence[Path], *, variables: Iterable[str] = ()) -> Loaded:
    """All suites that `paths` mean; `variables` are names that `--var` will define.

    Raises UsageError where a path means no suite at all; everything else that is wrong is in the
    result's ``problems``.
    """
    requests = find_suites(paths, IsCase())
    suites: list[LoadedSuite] = []
    problems: list[Problem] = []
    with _without_collector():
        for request in requests:
            suite = _load_suite(request, frozenset(variables), problems)
            if suite is not None:
                suites.append(suite)
        suites = told_apart(suites, problems)
    return Loaded(tuple(suites), tuple(_by_place(problems)))


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


def _by_place(problems: Sequence[Problem]) -> list[Problem]:
    """The files in the order they were read; within each, from top to bottom."""
    files = {path: number for number, path in enumerate({p.file: None for p in problems})}
    return sorted(problems, key=lambda p: (files[p.file], p.line, p.column))


def _read(path: Path, problems: list[Problem]) -> Document | None:
    try:
        return read_yaml(path)
    except InvalidFilesError as error:
        problems.extend(error.problems)
        return None


def _load_suite(
    request: SuiteRequest, variables: frozenset[str], problems: list[Problem]
) -> LoadedSuite | None:
    if request.path.suffix in DATASET_ENDINGS:
        document: Document | None = dataset_suite(request.path)
    else:
        document = _read(request.path, problems)
    if document is None:
        return None
    root = suite_root(request.path)
    valid = True
    theirs = v1alpha1.states_version(document.data)
    try:
        data = v1alpha1.without_zeros(document.data) if theirs else document.data
        suite = Suite.model_validate(data)
        if theirs:
            suite = v1alpha1.translated_suite(suite)
            problems.extend(
                problem_at(
                    document, ("environment", "env", name), f"`{name}` is left out",
                    "each trial has a home of its own, empty at first", severity="warning",
                ) for name in v1alpha1.moved_homes(document.data)
            )  # fmt: skip
        problems.extend(suite_problems(suite, document, root))
        problems.extend(_reading_outside(document, root, reads_outside(suite, root)))
    except ValidationError as error:
        problems.extend(problems_from(error, document))
        # The cases are still looked at: all problems are reported at once.
        suite, valid = Suite(), False
    files, unasked = case_files(document, root, request, problems)
    cases: list[LoadedCase] = []
    broken: list[str] = []
    for path in files:
        loaded = _load_case(path, suite, root, variables, problems)
        if isinstance(loaded, LoadedCase):
            cases.append(loaded)
        else:
            broken.append(loaded)

    templates = templates_of(document.data, root)
    if not request.only or any(only in templates for only in request.only):
        cases.extend(dataset_cases(suite, document, root, variables, problems))

    @cache
    def others() -> frozenset[str]:
        return frozenset([*broken, *(_id_in(path) for path in unasked)])

    cases = [path for loaded in cases for path in paths_of(loaded)]
    problems.extend(id_problems(cases, others))
    if not valid:
        return None
    problems.extend(skill_name_problems(suite, root, cases))
    return LoadedSuite(suite.name or root.name, suite, document, root, tuple(cases))


def _load_case(
    file: Path, suite: Suite, root: Path, variables: frozenset[str], problems: list[Problem]
) -> LoadedCase | str:
    """The case; if it does not validate, the id that it would have."""
    document = _read(file, problems)
    if document is None:
        return file.stem
    theirs = suite.schema_version is not None or v1alpha1.states_version(document.data)
    data = v1alpha1.without_zeros(document.data) if theirs else document.data
    merge = v1alpha1.merged_case if theirs else merge_defaults
    try:
        case = Case.model_validate(data)
    except ValidationError as error:
        found = problems_from(error, document)
        rest = mended(data, error)
        if rest is not None:
            case, texts = rest
            names = texts & written_in(document.text).keys()
            merged = merge(case, suite, default_id=file.stem)
            more = case_problems(merged, document, variables | names)
            found.extend(problem for problem in more if problem.severity == "error")
        problems.extend(found)
        return _id_of(document)
    merged = merge(case, suite, default_id=file.stem)
    problems.extend(case_problems(merged, document, variables))
    problems.extend(_reading_outside(document, root, case_reads_outside(case, root)))
    loaded = LoadedCase(merged, document)
    absent = [
        problem_at(path.document, loc, missing, "a run would need it", severity="warning")
        for path in paths_of(loaded)
        for loc, missing in missing_files(path.case, root)
    ]
    problems.extend(dict.fromkeys(absent))
    outside = [
        problem_at(path.document, loc, why, "put it into the suite")
        for path in paths_of(loaded)
        for loc, why in scripts_outside(path.case)
    ]
    problems.extend(dict.fromkeys(outside))
    problems.extend(
        problem_at(document, loc, message, fix, severity="warning")
        for loc, message, fix in nobody_plays(merged, suite)
    )
    return loaded


def _reading_outside(
    document: Document, root: Path, found: Iterable[tuple[tuple[str | int, ...], str]]
) -> Iterator[Problem]:
    if not is_trusted(os.environ):
        for loc, path in found:
            yield problem_at(document, loc, f"{path} leads out of {project_of(root)}", ALLOW)


def _id_in(path: Path) -> str:
    document = _read(path, [])
    return path.stem if document is None else _id_of(document)


def _id_of(document: Document) -> str:
    return str(document.data.get("id") or document.path.stem)
