"""Directory trees: listed in one fixed order, and copied with permissions, times and links."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillup.workspace.failures import PreparationError


def stays_inside(root: Path, link: str) -> bool:
    """Whether the link at ``link`` (relative to ``root``) never leaves ``root`` on its way.

    Absolute targets leave it, and so does ``../name-of-root/file``: in a copy of the tree they
    would lead back to the original or to nothing. Targets that do not exist may stay inside.
    """
    target = os.readlink(root / link)  # noqa: PTH115 - `..` is not taken out of it
    on_its_way = os.path.normpath(os.path.join(os.path.dirname(link), target))  # noqa: PTH118, PTH120
    leaves = on_its_way.split("/")[0] in ("", "..")
    real = os.path.realpath(root / link)
    return not leaves and Path(real).is_relative_to(os.path.realpath(root))


EntryKind = Literal["file", "link", "directory", "special"]
_KINDS: dict[int, EntryKind] = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFDIR: "directory",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry below the root of a listing."""

    path: str
    """POSIX, relative to the root, as the system gave it (undecodable bytes as surrogates)."""
    kind: EntryKind  # special: a FIFO, socket or device
    status: os.stat_result  # Of the entry itself, not of what a link points to


def _raise(_path: str, error: OSError) -> None:
    raise error


def list_tree(
    root: Path,
    *,
    leave_out: Callable[[str, EntryKind], bool] = lambda _path, _kind: False,
    on_error: Callable[[str, OSError], None] = _raise,
) -> Iterator[Entry]:
    """Every entry below ``root``, a directory before its content, sorted by name in each.

    No file is opened and no link followed. ``leave_out(path, kind)`` drops an entry with all that
    is below it. What vanishes meanwhile is left out. What cannot be read goes to
    ``on_error(path, error)``; without it the OSError is raised.
    """
    pending = [""]
    top = str(root)
    while pending:
        relative = pending.pop()
        directory = f"{top}/{relative}" if relative else top
        below: list[str] = []
        try:
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            if not (relative and isinstance(error, FileNotFoundError)):
                on_error(relative, error)
            continue
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:  # the path is too long, most likely
                if not isinstance(error, FileNotFoundError):
                    on_error(path, error)
                continue
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "special")
            if leave_out(path, kind):
                continue
            yield Entry(path, kind, status)
            if kind == "directory":
                below.append(path)
        pending.extend(reversed(below))


def shown(path: str) -> str:
    r"""A path as text for people and records: bytes that are no UTF-8 as ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def copy_fixture(source: Path, destination: Path) -> None:
    """Copies a fixture's content into the existing directory ``destination``.

    Raises PreparationError for a link that leads out of the fixture (the agent would work on the
    original) and for FIFOs, sockets and devices; OSError where the disk does.
    """
    entries = list(list_tree(source))
    for entry in entries:
        name = shown(entry.path)
        if entry.kind == "special":
            raise PreparationError(
                f"{name} in the fixture {source} is a FIFO, socket or device; remove it"
            )
        if entry.kind == "link" and not stays_inside(source, entry.path):
            raise PreparationError(
                f"the symbolic link {name} in the fixture {source} leads out of it; "
                "replace it by what it points to, or by a relative link within the fixture"
            )
    _copy(entries, source, destination)


def copy_workspace(source: Path, destination: Path) -> None:
    """Copies a workspace, to go on in the copy; ``destination`` is made and must not exist.

    Links stay as they are, wherever they lead: the agent made them. FIFOs, sockets and devices are
    left out. Raises OSError where the disk does.
    """
    destination.mkdir(parents=True)
    _copy(list(list_tree(source)), source, destination)


def _copy(entries: list[Entry], source: Path, destination: Path) -> None:
    for entry in entries:
        target = destination / entry.path
        if entry.kind == "directory":
            target.mkdir(exist_ok=True)
        elif entry.kind == "link":
            # Not through Path: it would change the target's spelling (`./a` to `a`).
            os.symlink(os.readlink(source / entry.path), target)  # noqa: PTH115, PTH211
        elif entry.kind == "file":
            shutil.copy2(source / entry.path, target)
    # Innermost first and last of all: a read-only directory takes no more files, and every new
    # file changes its directory's time.
    for entry in reversed(entries):
        if entry.kind == "directory":
            shutil.copystat(source / entry.path, destination / entry.path)
