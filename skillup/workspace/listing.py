"""What is in a directory tree, in one fixed order; no file is opened and no link followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EntryKind = Literal["file", "link", "directory", "special"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry below the root of a listing."""

    path: str
    """POSIX, relative to the root, as the system gave it (undecodable bytes as surrogates)."""
    kind: EntryKind
    """special: a FIFO, socket or device."""
    status: os.stat_result
    """Of the entry itself, not of what a link points to."""


def list_tree(
    root: Path,
    *,
    leave_out: Callable[[str, EntryKind], bool] = lambda _path, _kind: False,
    on_error: Callable[[str, OSError], None] | None = None,
) -> Iterator[Entry]:
    """Every entry below ``root``, a directory before its content, sorted by name in each.

    ``leave_out(path, kind)`` drops an entry with all that is below it. What vanishes while we look
    is left out. What cannot be read goes to ``on_error(path, error)``; without it the
    OSError is raised.
    """
    pending = [""]
    while pending:
        relative = pending.pop()
        try:
            with os.scandir(root / relative) as scan:
                names = sorted(entry.name for entry in scan)
        except FileNotFoundError:
            if relative:
                continue
            raise
        except OSError as error:
            if on_error is None:
                raise
            on_error(relative, error)
            continue
        below: list[str] = []
        for name in names:
            path = f"{relative}/{name}" if relative else name
            try:
                status = os.lstat(root / path)
            except FileNotFoundError:
                continue
            except OSError as error:  # the path is too long, most likely
                if on_error is None:
                    raise
                on_error(path, error)
                continue
            kind = _kind(status.st_mode)
            if leave_out(path, kind):
                continue
            yield Entry(path, kind, status)
            if kind == "directory":
                below.append(path)
        pending.extend(reversed(below))


def _kind(mode: int) -> EntryKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "directory"
    return "special"


def shown(path: str) -> str:
    r"""A path as text for people and records: bytes that are no UTF-8 as ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
