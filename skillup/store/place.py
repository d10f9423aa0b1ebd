"""Where runs are kept unless the user says otherwise, and what they share."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path

from skillup.store.errors_of_disk import disk_errors

HOME_DIRECTORY = ".skillup"


def new_run_id() -> str:
    """A run's id: the time in UTC, so that runs sort by it, and six hex digits.

    Of these, three are the part of the second, so that quick runs sort, too; three are random.
    """
    return f"{beginning_of_id(datetime.now(UTC))}{secrets.randbelow(4096):03x}"


def beginning_of_id(started: datetime) -> str:
    """What the ids of runs begin with that were started at this time, which is in UTC."""
    part = started.microsecond * 4096 // 1_000_000
    return f"{started:%Y%m%dT%H%M%SZ}-{part:03x}"


def default_run_path(workspace_root: Path, run_id: str) -> Path:
    """``<root>/.skillup/runs/<run id>``; the run directory itself is not made.

    Makes ``.skillup`` with a ``.gitignore`` in it, so that runs are not committed by accident.
    Raises RunDirectoryError if that cannot be written.
    """
    _home(workspace_root)
    return runs_folder(workspace_root) / run_id


def runs_folder(workspace_root: Path) -> Path:
    """``<root>/.skillup/runs``: the runs whose place nobody chose; nothing is made."""
    return workspace_root / HOME_DIRECTORY / "runs"


def shared_answers_path(workspace_root: Path) -> Path:
    """``<root>/.skillup/judge-cache``: what models answered to the judges of all its runs.

    As :func:`default_run_path`.
    """
    return _home(workspace_root) / "judge-cache"


def default_index_path(workspace_root: Path, *, make: bool) -> Path:
    """``<root>/.skillup/index.sqlite``: the index of its past runs.

    With `make`, as :func:`default_run_path`; else nothing is made.
    """
    home = _home(workspace_root) if make else workspace_root / HOME_DIRECTORY
    return home / "index.sqlite"


def _home(workspace_root: Path) -> Path:
    home = workspace_root / HOME_DIRECTORY
    ignore = home / ".gitignore"
    with disk_errors("write", ignore):
        home.mkdir(parents=True, exist_ok=True)
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    return home
