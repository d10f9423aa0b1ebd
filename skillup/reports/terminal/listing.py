"""Lists: suites and cases, and problems of files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skillup.errors import Problem
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.reports.terminal.layout import Part, make_console, print_table
from skillup.reports.text import count, one_line, plain, shown_id
from skillup.schema.suite import lead_of
from skillup.trial.history import turns_of


def shown_path(path: Path) -> str:
    """`path` as short as it can be from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def problem_line(problem: Problem) -> str:
    """``file:line:column: field: what is wrong; what would be right``."""
    text = str(problem).removeprefix(str(problem.file))
    return plain(shown_path(problem.file) + text)


def problem_as_dict(problem: Problem) -> dict[str, Any]:
    return {**asdict(problem), "file": shown_path(problem.file)}


def print_problems(problems: Sequence[Problem], counts: Mapping[str, int]) -> None:
    """All of them to stderr, then what was checked (`counts`, by kind) and the verdict."""
    for problem in problems:
        sys.stderr.write(problem_line(problem) + "\n")
    errors = sum(problem.severity == "error" for problem in problems)
    counted = ", ".join(
        count(number, kind) for kind, number in counts.items() if number or kind != "profile"
    )
    found = f"{count(errors, 'error')}, {count(len(problems) - errors, 'warning')}"
    verdict = "not valid" if errors else "ok"
    sys.stderr.write(f"{counted}: {verdict}{f' ({found})' if problems else ''}\n")


def case_as_dict(suite: LoadedSuite, loaded: LoadedCase) -> dict[str, Any]:
    case = loaded.case
    return {
        "suite": suite.name,
        "id": case.id,
        "branch_of": loaded.branch_of,
        "title": case.title,
        "tags": case.tags,
        "turns": _turn_count(loaded),
        "trials": case.trials or 1,
        "depends_on": case.depends_on,
        "file": shown_path(loaded.path),
    }


def _turn_count(loaded: LoadedCase) -> int | None:
    """How many turns the case has; None if a simulated user decides."""
    if lead_of(loaded.case) is not None:
        return None
    given = loaded.case.input
    if given.transcript is not None:
        return len(turns_of(given.transcript))
    return len(given.all_turns()) or None


def print_listing(suites: Sequence[tuple[LoadedSuite, Sequence[LoadedCase]]]) -> None:
    rows: list[list[Part]] = []
    for suite, cases in suites:
        for loaded in cases:
            title = one_line(loaded.case.title or "")
            if not title and loaded.item is not None:
                # An item of a dataset seldom has one: what it asks tells it from the others.
                title = one_line(loaded.item.removeprefix(f"{loaded.family} "), 80)
            tags = one_line(", ".join(loaded.case.tags))
            turns = str(_turn_count(loaded) or "?")
            name = (one_line(suite.name), "cyan")
            rows.append([name, shown_id(loaded.case.id), turns, (tags, "dim"), title])
    heads = ["suite", "case", "turns", "tags", "title"]
    print_table(make_console(sys.stdout), rows, heads, align="nnrll", style="bold")
