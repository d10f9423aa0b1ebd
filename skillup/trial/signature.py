"""Signatures of directory trees: whether one is still as it was, without reading its files."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skillup.workspace.listing import Entry, EntryKind, list_tree


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells that an entry of a tree was touched."""

    kind: EntryKind
    size: int = 0
    mtime_ns: int = 0
    mode: int = 0
    link: str = ""


def marks_of(
    root: Path, leave_out: Callable[[str, EntryKind], bool] = lambda _path, _kind: False
) -> dict[str, Mark]:
    """The mark of everything below `root`, by path. Raises OSError if it cannot be read."""
    return {entry.path: mark_of(root, entry) for entry in list_tree(root, leave_out=leave_out)}


def mark_of(root: Path, entry: Entry) -> Mark:
    """The mark of one entry of a listing."""
    status = entry.status
    if entry.kind == "file":
        return Mark("file", status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode))
    if entry.kind == "link":
        return Mark("link", link=os.readlink(root / entry.path))  # noqa: PTH115 - its spelling
    # A directory's times change with files that come and go, as git's locks do.
    return Mark(entry.kind)


def digest_of(marks: dict[str, Mark]) -> str:
    """Over all paths and marks."""
    digest = hashlib.sha256()
    for path, mark in sorted(marks.items()):
        known = f"\0{mark.kind}\0{mark.size}\0{mark.mtime_ns}\0{mark.mode}\0{mark.link}\0"
        digest.update(os.fsencode(path + known))
    return digest.hexdigest()


def workspace_signature(root: Path) -> str | None:
    """Of a workspace with its `.git`; None if it cannot be looked at, or is no directory."""
    try:
        if root.is_symlink():
            return None
        marks = marks_of(root)
    except OSError:
        return None
    return digest_of({path: _without_stat_cache(path, mark) for path, mark in marks.items()})


def _without_stat_cache(path: str, mark: Mark) -> Mark:
    """`git status`, which agents run to look, refreshes what the index knows of files' times."""
    if path == ".git/index" or path.endswith("/.git/index"):
        return Mark(mark.kind, mark.size)
    return mark
