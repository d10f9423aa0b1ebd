"""The two environment variables by which descendants are recognised after their parents are gone.

``SKILLUP_TRIAL_MARKER`` differs from process to process that skillup starts; ``SKILLUP_OWNER`` is
the same for all that one skillup process starts, so that the next one can find what it left.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from pathlib import Path

from skillup.process.table import HAS_PROC, read_row

TRIAL_VARIABLE = "SKILLUP_TRIAL_MARKER"
OWNER_VARIABLE = "SKILLUP_OWNER"


def new_marker() -> str:
    """A marker nobody else has."""
    return f"{os.getpid()}-{secrets.token_hex(8)}"


def owner_id() -> str:
    """Our own value of ``SKILLUP_OWNER``: the same at every call, another one after a fork."""
    return _owner_id(os.getpid())


@lru_cache(maxsize=1)
def _owner_id(pid: int) -> str:
    row = read_row(pid)
    started = row.started if row else 0.0
    return f"{pid}-{started:.2f}-{secrets.token_hex(4)}"


def has_assignment(pid: int, assignment: bytes) -> bool:
    """Whether the environment that ``pid`` was started with holds ``NAME=value``.

    False where it may not be read: zombies, other users' processes, protected ones on macOS.
    """
    return assignment in _environment(pid)


def _environment(pid: int) -> list[bytes]:
    if HAS_PROC:
        try:
            return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return []
    import psutil

    try:
        variables = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return []
    return [os.fsencode(f"{name}={value}") for name, value in variables.items()]
