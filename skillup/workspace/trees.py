"""Copies of directory trees: contents, permissions, times, and links as links."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# Where symbolic links lead, as seen from a tree that will stand somewhere else.

_MOST_LINKS = 40  # what systems allow before they call it a loop


def stays_inside(root: Path, link: str) -> bool:
    """Whether the link at ``link`` (relative to ``root``) never leaves ``root`` on its way.

    Absolute targets leave it, and so does ``../name-of-root/file``: in a copy of the tree they
    would lead back to the original or to nothing. Targets that do not exist may stay inside.
    """
    todo = link.split("/")[::-1]
    at: list[str] = []
    followed = 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not at:
                return False
            at.pop()
            continue
        here = root.joinpath(*at, part)
        if here.is_symlink():
            followed += 1
            target = str(here.readlink())
            if target.startswith("/") or followed > _MOST_LINKS:
                return False
            todo.extend(target.split("/")[::-1])
        else:
            at.append(part)
    return True


# What is in a directory tree, in one fixed order; no file is opened and no link followed.

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


class UnsafeTreeError(Exception):
    """A tree holds what must not be copied; the message names it and says what to do."""


def copy_fixture(source: Path, destination: Path) -> None:
    """Copies a fixture's content into the existing directory ``destination``.

    Raises UnsafeTreeError for a link that leads out of the fixture (the agent would work on the
    original) and for FIFOs, sockets and devices; OSError where the disk does.
    """
    for entry in list_tree(source):
        name = shown(entry.path)
        if entry.kind == "special":
            raise UnsafeTreeError(
                f"{name} in the fixture {source} is a FIFO, socket or device; remove it"
            )
        if entry.kind == "link" and not stays_inside(source, entry.path):
            raise UnsafeTreeError(
                f"the symbolic link {name} in the fixture {source} leads out of it; "
                "replace it by what it points to, or by a relative link within the fixture"
            )
    _copy(source, destination)


def copy_workspace(source: Path, destination: Path) -> None:
    """Copies a workspace, to go on in the copy; ``destination`` is made and must not exist.

    Links stay as they are, wherever they lead: the agent made them. FIFOs, sockets and devices are
    left out. Raises OSError where the disk does.
    """
    destination.mkdir(parents=True)
    _copy(source, destination)


def _copy(source: Path, destination: Path) -> None:
    directories: list[Entry] = []
    for entry in list_tree(source):
        target = destination / entry.path
        if entry.kind == "directory":
            target.mkdir(exist_ok=True)
            directories.append(entry)
        elif entry.kind == "link":
            # Not through Path: it would change the target's spelling (`./a` to `a`).
            target_of_link = os.readlink(source / entry.path)  # noqa: PTH115
            os.symlink(target_of_link, target)  # noqa: PTH211
        elif entry.kind == "file":
            copy_file(source / entry.path, target, entry.status)
    # Innermost first and last of all: a read-only directory takes no more files, and every new
    # file changes its directory's time.
    for entry in reversed(directories):
        target = destination / entry.path
        os.utime(target, ns=(entry.status.st_atime_ns, entry.status.st_mtime_ns))
        target.chmod(stat.S_IMODE(entry.status.st_mode))


def copy_file(source: Path, target: Path, status: os.stat_result) -> None:
    """Copies one regular file with its permissions and times; ``target`` must not be a link."""
    shutil.copyfile(source, target)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    target.chmod(stat.S_IMODE(status.st_mode))
