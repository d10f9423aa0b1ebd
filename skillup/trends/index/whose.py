"""Whose an indexed run is: this workspace's, or another's that shares the index."""

from __future__ import annotations

from pathlib import Path

from skillup.errors import RunDirectoryError
from skillup.load.discover import workspace_root
from skillup.store.place import HOME_DIRECTORY
from skillup.store.place import runs_folder as runs_folder_of
from skillup.store.runs_in_order import is_run
from skillup.trends.reading import run_told_in, start_told_in


def is_from_here(path: Path, began: tuple[str, str], runs_folder: Path) -> bool:
    """Whether the run that began so (time and id) is in `path`, and this workspace's.

    `runs_folder` is that of the workspace: the run is in it, or was started from within the
    workspace, and written to no other workspace's.
    """
    if not is_run(path):
        return False
    try:
        if run_told_in(path) != began:
            return False  # a later run was written to its place
        start = start_told_in(path)
    except RunDirectoryError:
        return False
    if _is_runs_folder(path.parent):
        return path.parent.resolve() == runs_folder.resolve()
    if start is None:
        return False
    return runs_folder_of(workspace_root(start)).resolve() == runs_folder.resolve()


def workspace_of(path: Path) -> Path:
    """The workspace of the run in `path`: whose folder it is in, else where it was started."""
    folder = path.absolute().parent
    if _is_runs_folder(folder):
        return folder.parent.parent
    try:
        start = start_told_in(path)
    except RunDirectoryError:
        start = None
    return workspace_root(start if start is not None and start.is_dir() else path)


def is_of_neighbours(path: Path, runs_folder: Path) -> bool:
    """Whether the run that was written to `path` is another workspace's of this machine.

    What is still there and not from here is; and what was in the folder of one that is there. Of
    other machines' runs the index has all there is.
    """
    if is_run(path):
        return True
    folder = path.parent
    try:
        there = _is_runs_folder(folder) and folder.is_dir()
    except OSError:
        return False
    return there and folder.resolve() != runs_folder.resolve()


def _is_runs_folder(folder: Path) -> bool:
    return folder == runs_folder_of(folder.parent.parent) and folder.parent.name == HOME_DIRECTORY
