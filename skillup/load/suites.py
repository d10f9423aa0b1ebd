"""Reading suites and their cases, and gathering every problem on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem
from skillup.load.discover import IsCase, SuiteRequest, find_suites, suite_root
from skillup.load.merge import merge_defaults
from skillup.load.model import Loaded, LoadedCase, LoadedSuite
from skillup.load.problems import problems_from
from skillup.load.semantics import case_problems, suite_problems
from skillup.load.yaml_reader import Document, read_yaml
from skillup.schema.case import Case
from skillup.schema.suite import Suite

_YAML_GLOB = "*.y*ml"


def load_paths(paths: Sequence[Path], *, variables: Iterable[str] = ()) -> Loaded:
    """All suites that `paths` mean; `variables` are names that `--var` will define.

    Raises UsageError where a path means no suite at all; everything else that is wrong is in the
    result's ``problems``.
    """
    requests = find_suites(paths, IsCase())
    suites: list[LoadedSuite] = []
    problems: list[Problem] = []
    for request in requests:
        suite = _load_suite(request, frozenset(variables), problems)
        if suite is not None:
            suites.append(suite)
    return Loaded(tuple(suites), tuple(problems))


def _read(path: Path, problems: list[Problem]) -> Document | None:
    try:
        return read_yaml(path)
    except InvalidFilesError as error:
        problems.extend(error.problems)
        return None


def _load_suite(
    request: SuiteRequest, variables: frozenset[str], problems: list[Problem]
) -> LoadedSuite | None:
    document = _read(request.path, problems)
    if document is None:
        return None
    root = suite_root(request.path)
    try:
        suite = Suite.model_validate(document.data)
    except ValidationError as error:
        problems.extend(problems_from(error, document))
        # The cases are still looked at: all problems are reported at once.
        suite = Suite()
        _load_cases(_case_files(document, root, request, problems), suite, variables, problems)
        return None
    problems.extend(suite_problems(suite, document, root))
    files = _case_files(document, root, request, problems)
    cases = _load_cases(files, suite, variables, problems)
    problems.extend(_duplicates(cases))
    name = suite.name or root.name
    return LoadedSuite(name, suite, document, root, tuple(cases))


def _load_cases(
    files: Iterable[Path], suite: Suite, variables: frozenset[str], problems: list[Problem]
) -> list[LoadedCase]:
    cases = []
    for path in files:
        document = _read(path, problems)
        if document is None:
            continue
        try:
            case = Case.model_validate(document.data)
        except ValidationError as error:
            problems.extend(problems_from(error, document))
            continue
        merged = merge_defaults(case, suite, default_id=path.stem)
        problems.extend(case_problems(merged, document, suite, variables))
        cases.append(LoadedCase(merged, document))
    return cases


def _case_files(
    document: Document, root: Path, request: SuiteRequest, problems: list[Problem]
) -> list[Path]:
    """The suite's case files in the order of `cases.files`, else by name; each once."""
    listed = document.data.get("cases")
    patterns = listed.get("files") if isinstance(listed, dict) else None
    if isinstance(patterns, str):
        patterns = [patterns]
    directory = request.path.resolve().parent
    if not isinstance(patterns, list):
        found = [
            path
            for folder in (directory, directory / "cases")
            for path in sorted(folder.glob(_YAML_GLOB))
            if not path.name.startswith("eval") and path.is_file()
        ]
        if not found and not request.only:
            problems.append(_at(document, (), "cases", "no case files beside it or in cases/"))
    else:
        found = []
        for index, pattern in enumerate(patterns):
            if not isinstance(pattern, str):
                continue  # said already by the suite's own validation
            matches = _matches(pattern, root) or _matches(pattern, directory)
            found.extend(matches)
            if not matches:
                what = "matches no file" if _is_glob(pattern) else "no such file"
                field = f"cases.files[{index}]"
                message = f"{what}: {pattern} (paths start from {root.name}/)"
                problems.append(_at(document, ("cases", "files", index), field, message))
    if request.only:
        found = _only(found, request.only)
    return list(dict.fromkeys(path.resolve() for path in found))


def _only(found: list[Path], only: tuple[Path, ...]) -> list[Path]:
    """Of the suite's files those asked for; a case asked for by name need not be listed."""
    chosen = [p for p in found if any(p.resolve().is_relative_to(o) for o in only)]
    chosen.extend(path for path in only if path.is_file())
    return chosen


def _is_glob(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


def _matches(pattern: str, root: Path) -> list[Path]:
    if _is_glob(pattern) and not Path(pattern).is_absolute():
        return sorted(path for path in root.glob(pattern) if path.is_file())
    path = root / pattern
    return [path] if path.is_file() else []


def _at(document: Document, loc: tuple[str | int, ...], field: str, message: str) -> Problem:
    line, column = document.locate(loc)
    return Problem(document.path, line, column, field, message)


def _duplicates(cases: Sequence[LoadedCase]) -> Iterable[Problem]:
    first: dict[str, LoadedCase] = {}
    for loaded in cases:
        other = first.setdefault(loaded.case.id, loaded)
        if other is not loaded:
            line, column = loaded.document.locate(("id",))
            yield Problem(
                loaded.path,
                line,
                column,
                "id",
                f"`{loaded.case.id}` is the id of {other.path.name} already",
                "give one of them another id",
            )
    for loaded in cases:
        for index, needed in enumerate(loaded.case.depends_on):
            if needed not in first or needed == loaded.case.id:
                line, column = loaded.document.locate(("depends_on", index))
                known = ", ".join(sorted(first)) or "none"
                yield Problem(
                    loaded.path,
                    line,
                    column,
                    "depends_on",
                    f"no other case `{needed}` in this suite",
                    f"known cases: {known}",
                )
    yield from _cycles(first)


def _cycles(cases: dict[str, LoadedCase]) -> Iterable[Problem]:
    done: set[str] = set()
    for start in cases:
        trail: list[str] = []
        current: str | None = start
        # One dependency after the other; a case seen twice on one trail closes a circle.
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            current, position = stack.pop()
            if position == 0:
                if current in done or current not in cases:
                    continue
                trail.append(current)
            needs = cases[current].case.depends_on
            if position < len(needs):
                stack.append((current, position + 1))
                following = needs[position]
                if following in trail and following != current:
                    circle = [*trail[trail.index(following) :], following]
                    loaded = cases[current]
                    line, column = loaded.document.locate(("depends_on", position))
                    yield Problem(
                        loaded.path,
                        line,
                        column,
                        "depends_on",
                        f"these cases wait for each other: {' → '.join(circle)}",
                        "take one of them out",
                    )
                    done.update(trail)
                    return
                stack.append((following, 0))
            else:
                trail.pop()
                done.add(current)
