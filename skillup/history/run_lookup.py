"""Runs by name (directory, id or its beginning, `last`), and whose runs those of the index are."""

from __future__ import annotations

import os
from pathlib import Path

from skillup.errors import IndexTroubleError, RunDirectoryError, UsageError
from skillup.history.database import Index, open_index
from skillup.history.outcomes import RunOutcomes
from skillup.history.queries import (
    RunHead,
    newest_runs,
    places,
    stored_run,
)
from skillup.history.reading import read_run, run_told_in, start_told_in
from skillup.load.discover import workspace_root
from skillup.store.places import HOME_DIRECTORY
from skillup.store.places import runs_folder as runs_folder_of
from skillup.store.runs import is_run, runs_in

LAST = "last"
PREVIOUS = "previous"
_SHOWN = 5
_HINT = "`skillup trends --rebuild` indexes the runs that are there"


def find_run(name: str, url: str, runs_folder: Path) -> RunOutcomes:
    """The run that `name` means: a run directory, else what `runs_folder` or the index has.

    `runs_folder` is that of the workspace. The index is a copy, which a run that goes on again, or
    was killed, is ahead of: where a run's directory is there, the directory is read. Raises
    UsageError if `name` means none or several, RunDirectoryError if it cannot be read, and
    IndexTroubleError.
    """
    if name == LAST:
        return _last_run(url, runs_folder)
    if not name:
        raise UsageError("the name of a run is empty", hint="give its directory or id, or `last`")
    if os.path.exists(name):  # noqa: PTH110 - Path.exists raises for a long name
        return read_run(Path(name))
    with_id = _folders(name, runs_folder)
    if name == PREVIOUS and not with_id:
        raise UsageError(
            f"`{PREVIOUS}` is the run before B, so it is no B itself",
            hint=f"`skillup compare {PREVIOUS} RUN`: give B's directory or id, or `{LAST}`",
        )
    try:
        with open_index(url, write=False) as index:
            heads = newest_runs(index)
            found = {head.run_id for head in heads if head.run_id.startswith(name)}
            chosen = _only(name, {*found, *with_id}, heads)
            if chosen not in with_id:
                return as_it_is_now(index, chosen)
    except IndexTroubleError:
        if not with_id:
            raise
        chosen = _only(name, set(with_id), [])
    return read_run(with_id[chosen])


def as_it_is_now(index: Index, run_id: str) -> RunOutcomes:
    """As its directory says, or the index, where that is not there, or now holds another run."""
    stored = stored_run(index, run_id)
    path = Path(stored.path)
    if is_run(path) and run_told_in(path) == (stored.started_at, stored.run_id):
        return read_run(path)
    return stored


def last_place(url: str, runs_folder: Path, newest: Path | None) -> Path | None:
    """Where the newest run of this workspace is, for all commands: `newest`, of `runs_folder`, or
    one that was started from here later and written elsewhere, and is still there, as the index
    knows. None: there is neither.

    So a run that was killed, or kept out of the index, is not passed over in silence.
    """
    if newest is not None and not is_run(newest):
        return newest
    try:
        told = None if newest is None else run_told_in(newest)
        with open_index(url, write=False) as index:
            for head, path in places(index):
                began = (head.started_at, head.run_id)
                if told is not None and began <= told:
                    break
                if is_from_here(Path(path), began, runs_folder):
                    return Path(path)
    except (IndexTroubleError, RunDirectoryError):
        return newest
    return newest


def _last_run(url: str, runs_folder: Path) -> RunOutcomes:
    """:func:`last_place`; where no run is, as on a machine that has only the index, the newest of
    that.
    """
    names = runs_in(runs_folder)
    path = last_place(url, runs_folder, runs_folder / names[-1] if names else None)
    if path is not None:
        return read_run(path)
    with open_index(url, write=False) as index:
        for head, gone in places(index):
            if not is_of_neighbours(Path(gone), runs_folder):
                return stored_run(index, head.run_id)
    raise UsageError("no run of this workspace is indexed yet", hint=_HINT)


def _folders(name: str, runs_folder: Path) -> dict[str, Path]:
    """Runs in the folder whose ids begin with `name`: they may not be indexed."""
    if not runs_folder.is_dir() or not name:
        return {}
    return {
        path.name: path
        for path in runs_folder.iterdir()
        if path.name.startswith(name) and is_run(path)
    }


def _only(name: str, found: set[str], heads: list[RunHead]) -> str:
    if len(found) == 1:
        return next(iter(found))
    if name in found:
        return name
    if found:
        some = ", ".join(sorted(found)[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"say more of it: {some}")
    newest = ", ".join(head.run_id for head in heads[:_SHOWN])
    known = f"the newest ones: {newest}" if newest else _HINT
    raise UsageError(f"there is no run {name}", hint=known)


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
