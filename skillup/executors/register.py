"""Where running skillups are known, so that the next start can end what a killed one left."""

from __future__ import annotations

import os
from pathlib import Path

from skillup.process import Leftover, end_leftovers


def default_register_dir() -> Path:
    """One place for all of a user's skillups: ``$XDG_CACHE_HOME/skillup/processes``."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "skillup" / "processes"


def end_what_was_left(register_dir: Path | None = None) -> list[Leftover]:
    """End the agents of skillups that were killed; to be called before a run starts."""
    directory = register_dir or default_register_dir()
    return end_leftovers(directory) if directory.is_dir() else []
