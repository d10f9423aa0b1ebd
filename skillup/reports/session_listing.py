"""`skillup session list`: sessions at a glance."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillup.engines.session_entries import SessionSummary
from skillup.reports.stream_console import make_console
from skillup.reports.text import one_line


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A row of the list."""

    engine: str
    session_id: str
    path: Path
    modified: float
    """Seconds since 1970."""
    size: int
    summary: SessionSummary
    """Of the file's head, if `whole` is false."""
    whole: bool


def session_as_dict(row: ListedSession) -> dict[str, Any]:
    """For ``--json``; `turns` are those of the head if `turns_complete` is false."""
    summary = row.summary
    return {
        "engine": row.engine,
        "session_id": row.session_id,
        "modified": datetime.fromtimestamp(row.modified, UTC).isoformat(timespec="seconds"),
        "project": summary.cwd,
        "turns": summary.turns,
        "turns_complete": row.whole,
        "first_words": summary.first_words,
        "title": summary.title,
        "model": summary.model,
        "version": summary.version,
        "size": row.size,
        "path": str(row.path),
    }


def print_sessions(rows: Sequence[ListedSession], *, more: int, at_most: bool = False) -> None:
    """One table to stdout, and how many are not in it: `more`, or no more than that."""
    from rich.table import Table
    from rich.text import Text

    console = make_console(sys.stdout)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("session", style="cyan", no_wrap=True)
    table.add_column("engine", no_wrap=True)
    table.add_column("last change", no_wrap=True)
    table.add_column("turns", justify="right", no_wrap=True)
    table.add_column("project", overflow="fold")
    table.add_column("first words", overflow="fold", ratio=1)
    for row in rows:
        turns = str(row.summary.turns) if row.whole else f"≥{row.summary.turns}"
        words = row.summary.first_words or row.summary.title or ""
        table.add_row(
            Text(one_line(row.session_id, 40)),
            row.engine,
            datetime.fromtimestamp(row.modified).astimezone().strftime("%Y-%m-%d %H:%M"),
            turns,
            Text(_short(row.summary.cwd or "–")),
            Text(one_line(words, 80)),
        )
    console.print(table)
    if more:
        count = f"up to {more}" if at_most else str(more)
        console.print(f"and {count} more: --limit shows them", style="dim")


def _short(directory: str) -> str:
    home = str(Path.home())
    inside = directory == home or directory.startswith(home + "/")
    return one_line("~" + directory[len(home) :] if inside else directory, 60)
