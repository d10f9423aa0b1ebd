"""`skillup list`: suites and cases at a glance."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from skillup.load.model import LoadedCase, LoadedSuite
from skillup.reports.problems import shown_path
from skillup.reports.stream_console import make_console
from skillup.reports.table import print_table
from skillup.reports.text import one_line, shown_id
from skillup.schema.simulation import lead_of
from skillup.trial.transcript import turns_of

_MESSAGE = 80
"""Characters of an item's message."""


def case_as_dict(suite: LoadedSuite, loaded: LoadedCase) -> dict[str, Any]:
    """For ``--json``."""
    case = loaded.case
    return {
        "suite": suite.name,
        "id": case.id,
        "branch_of": loaded.branch_of,
        "title": case.title,
        "tags": case.tags,
        "turns": turn_count(loaded),
        "trials": case.trials or 1,
        "depends_on": case.depends_on,
        "file": shown_path(loaded.path),
    }


def turn_count(loaded: LoadedCase) -> int | None:
    """How many turns the case has; None if a simulated user decides."""
    if lead_of(loaded.case) is not None:
        return None
    given = loaded.case.input
    if given.transcript is not None:
        return len(turns_of(given.transcript))
    return len(given.all_turns()) or None


def print_listing(suites: Sequence[tuple[LoadedSuite, Sequence[LoadedCase]]]) -> None:
    """One table for all suites, to stdout."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("suite", style="cyan", no_wrap=True)
    table.add_column("case", no_wrap=True)
    table.add_column("turns", justify="right")
    table.add_column("tags", style="dim")
    table.add_column("title")
    for suite, cases in suites:
        for loaded in cases:
            turns = turn_count(loaded)
            table.add_row(
                Text(one_line(suite.name)),
                Text(shown_id(loaded.case.id)),
                str(turns) if turns else "?",
                Text(one_line(", ".join(loaded.case.tags))),
                Text(_title(loaded)),
            )
    print_table(make_console(sys.stdout), table)


def _title(loaded: LoadedCase) -> str:
    """An item of a dataset seldom has one: what it asks tells it from the others."""
    if loaded.case.title or loaded.item is None:
        return one_line(loaded.case.title or "")
    return one_line(loaded.item.removeprefix(f"{loaded.family} "), _MESSAGE)
