"""Sessions that are rows of a SQLite database, as lines that can be compared between turns."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from skillup.engines.session_files import json_line


def dump_rows(database: Path, query: str, session_id: str, to: Path) -> Path | None:
    """The rows of a session as lines of JSON in the file `to`; None if there are none."""
    to.unlink(missing_ok=True)
    if not database.is_file():
        return None
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
        try:
            found = opened.execute(query, {"session": session_id})
            names = [column[0] for column in found.description]
            lines = [json_line(dict(zip(names, row, strict=True))) for row in found]
        except sqlite3.Error:  # No such table yet, or the file is none
            return None
    if lines:
        to.write_bytes(b"".join(lines))
    return to if lines else None
