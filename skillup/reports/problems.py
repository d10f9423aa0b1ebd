"""Validation problems, for people and for programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.errors import Problem
from skillup.reports.text import plain


def shown_path(path: Path) -> str:
    """`path` as short as it can be said from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def problem_line(problem: Problem) -> str:
    """``file:line:column: field: what is wrong; what would be right``."""
    text = str(problem).removeprefix(str(problem.file))
    return plain(shown_path(problem.file) + text)


def problem_as_dict(problem: Problem) -> dict[str, Any]:
    """For ``--json``."""
    return {
        "file": shown_path(problem.file),
        "line": problem.line,
        "column": problem.column,
        "field": problem.field,
        "message": problem.message,
        "fix": problem.fix,
        "severity": problem.severity,
    }


def print_problems(problems: Sequence[Problem], counts: Mapping[str, int]) -> None:
    """All of them to stderr, then what was looked at (`counts`, by kind) and the verdict."""
    for problem in problems:
        sys.stderr.write(problem_line(problem) + "\n")
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    counted = ", ".join(
        _many(count, kind) for kind, count in counts.items() if count or kind != "profile"
    )
    found = f"{_many(errors, 'error')}, {_many(warnings, 'warning')}"
    verdict = "ok" if not errors else "not valid"
    sys.stderr.write(f"{counted}: {verdict} ({found})\n" if problems else f"{counted}: ok\n")


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
