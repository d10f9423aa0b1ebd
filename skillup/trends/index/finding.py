"""Runs by name: a directory, an id or its beginning, `last`, `previous`."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import Connection

from skillup.errors import IndexTroubleError, RunDirectoryError, UsageError
from skillup.store.runs_in_order import is_run, runs_in
from skillup.trends.index.database import open_index
from skillup.trends.index.nearness import Kin, Nearness
from skillup.trends.index.reading import RunHead, newest_runs, places, stored_run
from skillup.trends.index.whose import is_from_here, is_of_neighbours
from skillup.trends.outcomes import RunOutcomes
from skillup.trends.reading import read_run, run_told_in

LAST = "last"
PREVIOUS = "previous"
_SHOWN = 5


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
        with open_index(url, write=False) as connection:
            heads = newest_runs(connection)
            found = {head.run_id for head in heads if head.run_id.startswith(name)}
            chosen = _only(name, {*found, *with_id}, heads)
            if chosen not in with_id:
                return _as_it_is_now(connection, chosen)
    except IndexTroubleError:
        if not with_id:
            raise
        chosen = _only(name, set(with_id), [])
    return read_run(with_id[chosen])


def _as_it_is_now(connection: Connection, run_id: str) -> RunOutcomes:
    """As its directory says, or the index, where that is not there, or now holds another run."""
    stored = stored_run(connection, run_id)
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
        with open_index(url, write=False) as connection:
            for head, path in places(connection):
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
    with open_index(url, write=False) as connection:
        for head, gone in places(connection):
            if not is_of_neighbours(Path(gone), runs_folder):
                return stored_run(connection, head.run_id)
    raise UsageError("no run of this workspace is indexed yet", hint=_HINT)


def run_before(later: RunOutcomes, url: str) -> RunOutcomes:
    """The newest run that began before `later` and was asked for the same, or planned all of its
    cases on the same engines; else the one that planned most of them.

    A run of chosen cases (`-k` and the like) is none that a whole one is compared with: what failed
    in both would be no news to any night. Raises UsageError if there is no such run,
    RunDirectoryError if it cannot be read, and IndexTroubleError.
    """
    with open_index(url, write=False) as connection:
        kin = Kin(connection, later)
        best: tuple[Nearness, str] | None = None
        for head in newest_runs(connection):
            if (head.started_at, head.run_id) >= (later.started_at, later.run_id):
                continue
            near = kin.nearness(head.run_id)
            if near is not None and near.unnarrowed and (best is None or near > best[0]):
                best = (near, head.run_id)
            if best is not None and best[0].same_kind:
                break
        if best is not None:
            return _as_it_is_now(connection, best[1])
    less = any(near is not None for near in kin.known.values())
    raise UsageError(
        f"no earlier run in the index held a suite of {later.run_id} on the same engine"
        + (": only chosen cases of it (-k, --tag and the like)" if less else ""),
        hint="name a run, or index older ones with `skillup trends --rebuild`",
    )


_HINT = "`skillup trends --rebuild` indexes the runs that are there"


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
