"""The runs of a folder, by the time at which they began; and whether one is being written."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from skillup.store.files import open_regular
from skillup.store.places import beginning_of_id
from skillup.store.run_directory import LOCK_FILE, RUN_FILE

_TIME_AS_NAME = re.compile(r"\d{8}T\d{6}Z-")
_STARTED_AT = re.compile(rb'"started_at": "([^"]*)"')
_HEAD_BYTES = 4096
"""Of `run.json`: its start comes first, and the thousand trials that it plans later."""
_CLOCKS_DIFFER_BY = 2.0
"""Seconds: when a process began is known to a hundredth at best, and file systems round."""


def is_run(path: Path) -> bool:
    """Whether it is a run directory; not if nobody here may look, as of another machine's paths."""
    try:
        return (path / RUN_FILE).is_file()
    except OSError:
        return False


def runs_in(folder: Path, counts: Callable[[Path], bool] = is_run) -> list[str]:
    """The names of the run directories in `folder`, the newest last; empty if there is none.

    `counts` says what is one. Most runs are called by their time; one whose start is unknown comes
    before all others.
    """

    def began(path: Path) -> str:
        if _TIME_AS_NAME.match(path.name):
            return path.name
        with suppress(OSError, ValueError), open_regular(path / RUN_FILE) as file:
            started = _STARTED_AT.search(file.read(_HEAD_BYTES))
            if started is not None:
                return beginning_of_id(datetime.fromisoformat(started[1].decode()))
        return ""

    try:
        found = [path for path in folder.iterdir() if counts(path)]
    except OSError:
        return []
    return [path.name for path in sorted(found, key=lambda path: (began(path), path.name))]


def writer_of(run: Path) -> int | None:
    """The process that has locked the run directory; None if there is none on this machine.

    Asked without taking the lock: the file keeps the number of its last owner. A process of that
    number that began after the lock was taken is another one.
    """
    import psutil

    path = run / LOCK_FILE
    try:
        pid = int(path.read_bytes()[:32])
        taken = path.stat().st_mtime
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return pid if process.create_time() <= taken + _CLOCKS_DIFFER_BY else None
    except (OSError, ValueError, psutil.Error):
        return None
