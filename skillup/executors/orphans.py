"""Where running skillups are known, so that the next start can end what a killed one left."""

from __future__ import annotations

from pathlib import Path

from skillup.process import ProcessRow, end_leftovers
from skillup.store.scratch import remove_orphaned, user_directory


def default_register_dir() -> Path:
    """One place for all of a user's skillups: ``$XDG_CACHE_HOME/skillup/processes``.

    Where that cannot be written, a place of this user's among the system's temporary files.
    """
    return user_directory("processes")


def end_what_was_left(register_dir: Path | None = None) -> list[ProcessRow]:
    """End the agents and scripts of skillups that were killed, and remove where trials
    of runs worked whose directories are gone.

    To be called before anything is started.
    """
    directory = register_dir or default_register_dir()
    ended = end_leftovers(directory) if directory.is_dir() else []
    remove_orphaned()
    return ended
