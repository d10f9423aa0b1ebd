"""Where running skillups are known, so that the next start can end what a killed one left."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from skillup.judges.scratch import remove_abandoned
from skillup.process import Leftover, end_leftovers


def default_register_dir() -> Path:
    """One place for all of a user's skillups: ``$XDG_CACHE_HOME/skillup/processes``.

    Where that cannot be written, a place of this user's among the system's temporary files.
    """
    home = os.path.expanduser("~/.cache")  # noqa: PTH111 - Path's raises where there is no home
    cache = os.environ.get("XDG_CACHE_HOME") or home
    directory = Path(cache) / "skillup" / "processes"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        pass
    else:
        if os.access(directory, os.W_OK | os.X_OK):
            return directory
    return Path(tempfile.gettempdir()) / f"skillup-{os.geteuid()}" / "processes"


def end_what_was_left(register_dir: Path | None = None) -> list[Leftover]:
    """End the agents and scripts of skillups that were killed, and remove where they judged.

    To be called before anything is started.
    """
    directory = register_dir or default_register_dir()
    ended = end_leftovers(directory) if directory.is_dir() else []
    remove_abandoned()
    return ended
