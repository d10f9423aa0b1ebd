"""The workspace as it was after a turn, made anew from what the record has kept."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.schema.record import FileState
from skillup.workspace.listing import list_tree
from skillup.workspace.paths import path_problem


class LostFilesError(Exception):
    """The record's stored files are incomplete, or none of a workspace; the message says how."""


@dataclass(frozen=True, slots=True)
class WorkspaceCopy:
    """A copy, and what is not in it."""

    root: Path
    not_kept: tuple[str, ...] = ()
    """Files that were too large to be kept with the record."""
    left_out: tuple[str, ...] = ()
    """Links that led out of the workspace: here they would lead to something else."""

    def notes(self) -> list[str]:
        """For the reader of a grade."""
        said = []
        if self.not_kept:
            said.append(f"not shown, because too large to be kept: {_listed(self.not_kept)}")
        if self.left_out:
            said.append(f"not shown, links out of the workspace: {_listed(self.left_out)}")
        return said


def copy_of(
    files: Mapping[str, FileState],
    read_file: Callable[[FileState], bytes | None],
    destination: Path,
) -> WorkspaceCopy:
    """Writes `files` to the new directory `destination`: contents, executable bits, links.

    Raises LostFilesError if a content that should be stored is not, OSError where the disk does.
    """
    destination.mkdir(parents=True)
    not_kept: list[str] = []
    links: list[tuple[str, str]] = []
    for path, state in files.items():
        problem = path_problem(path)
        if problem is not None:
            raise LostFilesError(f"{path!r} is no path of a workspace: {problem}")
        if state.link is not None:
            links.append((path, state.link))
            continue
        if not state.kept or state.sha256 is None:
            not_kept.append(path)
            continue
        content = read_file(state)
        if content is None:
            raise LostFilesError(f"the stored content of {path} is missing from the run")
        target = destination / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if state.executable else 0o644)
    # Links last: no file may be written through one.
    left_out = [path for path, target in links if not _link(destination, path, target)]
    return WorkspaceCopy(destination, tuple(not_kept), tuple(left_out))


def _link(root: Path, path: str, target: str) -> bool:
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or inside == ".." or inside.startswith("../"):
        return False
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    # Not through Path: it would change the target's spelling (`./a` to `a`).
    os.symlink(target, place)  # noqa: PTH211
    return True


def make_read_only(root: Path) -> None:
    """Takes the right to write from every file and directory at and below `root`."""
    _change_modes(root, lambda mode: mode & ~0o222)


def make_removable(root: Path) -> None:
    """Gives the owner back the right to write."""
    _change_modes(root, lambda mode: mode | stat.S_IWUSR)


def _change_modes(root: Path, change: Callable[[int], int]) -> None:
    for entry in list_tree(root):
        if entry.kind in ("file", "directory"):
            (root / entry.path).chmod(change(stat.S_IMODE(entry.status.st_mode)))
    root.chmod(change(stat.S_IMODE(root.stat().st_mode)))


def _listed(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(paths[:5]) + more
