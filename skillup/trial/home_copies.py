"""Copies of a trial's home, so that it can be put back to the moment before a message.

There are two, in turn: while one is being made, the other one is whole, whenever skillup dies.
Logins and caches are in neither (:mod:`skillup.engines.home_files`).
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from skillup.engines.home_files import is_passing
from skillup.trial.signature import Mark, digest_of, mark_of, marks_of
from skillup.workspace.copying import copy_file
from skillup.workspace.listing import EntryKind, list_tree

COPIES = "checkpoint"
"""The folder of the copies, in the trial's scratch."""

_SLOTS = ("a", "b")
_LARGEST_BYTES = 256 << 20
# As with snapshots of workspaces: a file that was changed this shortly before it was copied may
# have been changed again without its times telling.
_TIMES_TELL_AFTER_NS = 2_500_000_000


@dataclass(frozen=True, slots=True)
class HomeCopy:
    """One copy, as it was when it was made."""

    slot: str
    marks: dict[str, Mark]

    @property
    def sha256(self) -> str:
        """Over all of it but contents."""
        return digest_of(self.marks)


class HomeCopies:
    """The copies of one trial's home."""

    def __init__(self, home: Path, scratch: Path) -> None:
        self._home = home
        self._place = scratch / COPIES
        self._pinned: str | None = None
        self._copied: dict[str, dict[str, tuple[Mark, int]]] = {}
        """Of each slot: what each file was copied from, and when (ns)."""

    def take(self) -> HomeCopy | None:
        """A copy of the home as it is now; None if that would be too large.

        Only what has changed since the slot's last copy is copied. Raises OSError.
        """
        entries = [e for e in list_tree(self._home, leave_out=_left_out) if e.kind != "special"]
        if sum(entry.status.st_size for entry in entries if entry.kind == "file") > _LARGEST_BYTES:
            return None
        slot = next(name for name in _SLOTS if name != self._pinned)
        target = self._place / slot
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._place.chmod(0o700)
        started_ns = time.time_ns()
        before, copied = self._copied.pop(slot, {}), {}
        marks = {entry.path: mark_of(self._home, entry) for entry in entries}
        _remove_others(target, marks)
        for entry in entries:
            mark = marks[entry.path]
            known = before.get(entry.path)
            changed_ns = entry.status.st_ctime_ns
            settled = known is not None and changed_ns < known[1] - _TIMES_TELL_AFTER_NS
            if entry.kind == "file" and settled and known is not None and known[0] == mark:
                copied[entry.path] = known
                continue
            _place(self._home, target, entry.path, mark)
            copied[entry.path] = (mark, started_ns)
        self._copied[slot] = copied
        return HomeCopy(slot, marks)

    def pin(self, copy: HomeCopy) -> None:
        """From now on it is `copy` that the next ones must not overwrite."""
        self._pinned = copy.slot

    def find(self, slot: str, sha256: str) -> HomeCopy | None:
        """The copy that an earlier process made and pinned, if it is whole."""
        target = self._place / slot
        if slot not in _SLOTS or target.is_symlink() or not target.is_dir():
            return None
        try:
            copy = HomeCopy(slot, marks_of(target))
        except OSError:
            return None
        if copy.sha256 != sha256:
            return None
        self._pinned = slot
        return copy

    def put_back(self, copy: HomeCopy) -> None:
        """Make the home what it was. Raises OSError."""
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_others(self._home, copy.marks)
        for path, mark in copy.marks.items():
            _place(self._place / copy.slot, self._home, path, mark)


def _left_out(path: str, _kind: EntryKind) -> bool:
    return is_passing(path)


def _remove_others(root: Path, wanted: dict[str, Mark]) -> None:
    """Removes what is not `wanted`, or of another kind; logins and caches stay."""
    for entry in reversed(list(list_tree(root, leave_out=_left_out))):
        mark = wanted.get(entry.path)
        if mark is not None and mark.kind == entry.kind:
            continue
        path = root / entry.path
        if entry.kind == "directory":
            with suppress(OSError):  # a cache may be in it
                path.rmdir()
        else:
            path.unlink()


def _place(source: Path, target: Path, path: str, mark: Mark) -> None:
    """Copies one entry, in place of what is there; its directory exists."""
    to = target / path
    if mark.kind == "directory":
        to.mkdir(mode=0o700, exist_ok=True)
        return
    if to.is_dir() and not to.is_symlink():
        shutil.rmtree(to)
    to.unlink(missing_ok=True)
    if mark.kind == "link":
        os.symlink(mark.link, to)  # noqa: PTH211 - its exact spelling
    else:
        copy_file(source / path, to, (source / path).lstat())
