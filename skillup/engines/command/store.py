"""Sessions that are rows of a SQLite database, as lines that can be compared between turns."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from skillup.engines.session_files import json_line

_SECONDS, _STEPS = 10.0, 100_000
_READS = ("SELECT", "READ", "FUNCTION", "RECURSIVE")
_READ_CODES = {getattr(sqlite3, f"SQLITE_{name}") for name in _READS}


def dump_rows(database: Path, query: str, session_id: str, to: Path) -> Path | None:
    """The rows of a session as lines of JSON in the file `to`; None if there are none.

    The query can read that database and nothing else, for some seconds.
    """
    to.unlink(missing_ok=True)
    if not database.is_file():
        return None
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
        opened.set_authorizer(lambda what, *_: int(what not in _READ_CODES))  # 1: SQLITE_DENY
        end = time.monotonic() + _SECONDS
        opened.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        try:
            found = opened.execute(query, {"session": session_id})
            names = [column[0] for column in found.description or ()]
            lines = [json_line(dict(zip(names, row, strict=True))) for row in found]
        except sqlite3.Error:  # No such table yet, the file is none, or the query does more
            return None
    if lines:
        to.write_bytes(b"".join(lines))
    return to if lines else None
