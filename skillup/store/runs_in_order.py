"""The runs of a folder, by the time at which they began."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from skillup.store.place import beginning_of_id
from skillup.store.regular import open_regular
from skillup.store.run_directory import RUN_FILE

_TIME_AS_NAME = re.compile(r"\d{8}T\d{6}Z-")
_STARTED_AT = re.compile(rb'"started_at": "([^"]*)"')
_HEAD_BYTES = 4096
"""Of `run.json`: its start is told at once, and the thousand trials that it plans come later."""


def is_run(path: Path) -> bool:
    """Whether it is a run directory; not if nobody here may look, as of another machine's paths."""
    try:
        return (path / RUN_FILE).is_file()
    except OSError:
        return False


def runs_in(folder: Path, counts: Callable[[Path], bool] = is_run) -> list[str]:
    """The names of the run directories in `folder`, the newest last; empty if there is none.

    `counts` says what is one.
    """
    try:
        found = [path for path in folder.iterdir() if counts(path)]
    except OSError:
        return []
    return [path.name for path in sorted(found, key=lambda path: (_began(path), path.name))]


def _began(path: Path) -> str:
    """As in ids: most runs are called by theirs. One that does not tell comes before all others."""
    if _TIME_AS_NAME.match(path.name):
        return path.name
    with suppress(OSError, ValueError), open_regular(path / RUN_FILE) as file:
        told = _STARTED_AT.search(file.read(_HEAD_BYTES))
        if told is not None:
            return beginning_of_id(datetime.fromisoformat(told[1].decode()))
    return ""
