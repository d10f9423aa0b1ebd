"""Which files hold a suite's cases."""

from __future__ import annotations

import os
from pathlib import Path

from skillup.errors import Problem
from skillup.load.datasets import templates_of
from skillup.load.discover import IsCase, SuiteRequest
from skillup.load.trust import ALLOW, is_trusted, leaves, project_of
from skillup.load.yaml_reader import Document, field_name

_ENDINGS = (".yaml", ".yml")
Loc = tuple[str | int, ...]


def case_files(
    document: Document, root: Path, request: SuiteRequest, problems: list[Problem]
) -> tuple[list[Path], list[Path]]:
    """Those of the suite's case files that `request` asks for, and the others.

    In the order of `cases.files`, else by name; each once. What is wrong goes into `problems`.
    """
    directory = request.path.resolve().parent
    section = document.data.get("cases")
    patterns = section.get("files") if isinstance(section, dict) else None
    if isinstance(patterns, str | int):
        patterns = [patterns]
    if isinstance(patterns, list):
        found = _listed(patterns, document, root, directory, problems)
    else:
        templates = templates_of(document.data, root)
        found = [path for path in _beside(directory) if path.resolve() not in templates]
        if not found and not request.only and not templates and not _has_datasets(section):
            problems.append(_at(document, (), "cases", "no case files beside it or in cases/"))
    every = list(dict.fromkeys(path.resolve() for path in found))
    if not request.only:
        return every, []
    chosen = [p for p in every if any(p.is_relative_to(only) for only in request.only)]
    # A case asked for by name need not be listed.
    templates = templates_of(document.data, root)
    chosen.extend(
        path
        for path in request.only
        if path.is_file() and path not in chosen and path not in templates
    )
    return chosen, [path for path in every if path not in chosen]


def _has_datasets(section: object) -> bool:
    return isinstance(section, dict) and bool(section.get("datasets"))


def _beside(directory: Path) -> list[Path]:
    """Every YAML file beside the suite and in `cases/` that is no suite, and no judge's script."""
    is_case = IsCase()
    return [
        path
        for folder in (directory, directory / "cases")
        for path in sorted(folder.glob("*"))
        if path.suffix in _ENDINGS
        and not path.name.startswith(".")
        and path.is_file()
        # Variants of a suite stand beside it: eval-other.yaml. A case may be called evaluate.yaml.
        and path.stem != "eval"
        and (not path.name.startswith("eval") or is_case(path))
        and not is_case.is_judge_script(path)
    ]


def _listed(
    patterns: list[object], document: Document, root: Path, directory: Path, problems: list[Problem]
) -> list[Path]:
    found: list[Path] = []
    for index, written in enumerate(patterns):
        if not isinstance(written, str | int) or not str(written):
            continue  # said already by the suite's own validation
        pattern = str(written)
        if leaves(pattern, root) and not is_trusted(os.environ):
            loc = ("cases", "files", index)
            message = f"{pattern} leads out of {project_of(root)}; {ALLOW}"
            problems.append(_at(document, loc, field_name(loc), message))
            continue
        matches = _matches(pattern, root) or _matches(pattern, directory)
        found.extend(matches)
        if not matches:
            loc = ("cases", "files", index)
            what = "matches no file" if _is_glob(pattern) else "no such file"
            message = f"{what}: {pattern} (paths start from {root.name}/)"
            problems.append(_at(document, loc, field_name(loc), message))
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


def _at(document: Document, loc: Loc, field: str, message: str) -> Problem:
    line, column = document.locate(loc)
    return Problem(document.path, line, column, field, message)
