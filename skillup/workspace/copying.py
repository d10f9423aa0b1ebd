"""Copies of directory trees: contents, permissions, times, and links as links."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from skillup.workspace.links import stays_inside
from skillup.workspace.listing import Entry, list_tree, shown


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
