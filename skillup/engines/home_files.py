"""What of a trial's home is a login, or only a cache: no copy of the home is made of it."""

from __future__ import annotations

from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

LOGIN_FILES = ("home/.claude/.credentials.json", "home/.codex/auth.json")
"""Relative to the trial's home; a copy of the user's own, which the CLI may have renewed."""

_CACHES = (
    "tmp",
    "home/.cache",
    "home/.npm",
    "home/.claude/telemetry",
    "home/.codex/.tmp",
    "home/.codex/tmp",
    "home/.codex/log",
    # Only a log: what a session holds is in its own file.
    "home/.codex/logs_*.sqlite*",
)


def is_passing(path: str) -> bool:
    """Whether `path`, relative to the trial's home, is a login or a cache."""
    return path in LOGIN_FILES or any(fnmatchcase(path, pattern) for pattern in _CACHES)


def remove_logins(home: Path) -> None:
    """Removes the logins from a trial's home: it is kept, and nobody works in it."""
    for name in LOGIN_FILES:
        with suppress(OSError):
            (home / name).unlink()
