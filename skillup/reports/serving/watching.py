"""Whether something has changed in a run, or in the folder: asked of the file system, cheaply."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from skillup.store.checkpoints import CHECKPOINT_FILE
from skillup.store.names import directory_of_job
from skillup.store.run_directory import JOURNAL_FILE, RESULT_FILE, RUN_FILE
from skillup.store.trials import GRADE_FILE

Stamp = tuple[object, ...]


def run_stamp(run: Path) -> Stamp:
    """Differs when a trial starts or ends, and when the run is opened, ends or is replaced."""
    return tuple(_of_file(f"{run}/{name}") for name in (RUN_FILE, JOURNAL_FILE, RESULT_FILE))


def turns_stamp(run: Path, jobs: Iterable[str]) -> Stamp:
    """Differs when one of the running `jobs` begins or ends a turn, or is judged, by its files."""
    places = [f"{run}/trials/{directory_of_job(job)}" for job in jobs]
    return tuple(
        (
            _of_file(f"{place}/raw", size=False),
            _of_file(f"{place}/{CHECKPOINT_FILE}"),
            _of_file(f"{place}/{GRADE_FILE}"),
        )
        for place in places
    )


def _of_file(path: str, *, size: bool = True) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - every second, for thousands of files
    except OSError:
        return None
    return (status.st_ino, status.st_size if size else 0, status.st_mtime_ns)
