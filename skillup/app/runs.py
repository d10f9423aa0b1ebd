"""Runs as users name them: a directory, an id or its beginning, `last`; and what ends a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from skillup.errors import SkillupError, UsageError
from skillup.load.discover import workspace_root
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import plain
from skillup.store.places import runs_folder, runs_in

LAST = "last"
_SHOWN = 5


def run_path(name: str) -> Path:
    """The directory of the run `name`; one that is there, whatever is in it. Says which is `last`.

    Raises UsageError if there is none, or if several ids begin so.
    """
    if name != LAST and os.path.exists(name):  # noqa: PTH110 - a name may be too long for a path
        return Path(name)
    folder = runs_folder(workspace_root(Path()))
    ids = runs_in(folder)
    if name == LAST and ids:
        # One that was written elsewhere may be newer, and be the one that was meant.
        sys.stderr.write(plain(f"{LAST}: {shown_path(folder / ids[-1])}") + "\n")
        return folder / ids[-1]
    found = _called(name, ids)
    if len(found) == 1:
        return folder / found[0]
    if found:
        some = ", ".join(found[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"say more of it: {some}")
    what = "there is no run yet" if name == LAST else f"there is no run {name}"
    raise UsageError(what, hint=f"give a run's directory or id; {newest_runs()}")


def newest_runs() -> str:
    """For hints: which runs there are."""
    folder = runs_folder(workspace_root(Path()))
    newest = ", ".join(reversed(runs_in(folder)[-_SHOWN:]))
    return f"the newest ones: {newest}" if newest else f"there is no run in {folder} yet"


def means_a_run(name: str) -> bool:
    """Whether `name` is `last`, or the id of a run (or the beginning of some)."""
    return name == LAST or bool(_called(name, runs_in(runs_folder(workspace_root(Path())))))


def _called(name: str, ids: list[str]) -> list[str]:
    return [name] if name in ids else [run for run in ids if name and run.startswith(name)]


def index_finished_run(path: Path, start: Path, given: str | None) -> None:
    """Index the run in the directory `path`.

    `start`: where the workspace is looked for; `given`: `--index`. Trouble is a line on stderr and
    nothing else: the run is over, and its result is on the disk.
    """
    try:
        from skillup.history.index import add_run, index_url
        from skillup.history.runs import read_run

        url = index_url(given, os.environ, workspace_root(start), write=True)
        if url:
            add_run(url, read_run(path))
    except SkillupError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        sys.stderr.write(plain(f"not indexed: {error.message}{hint}\n"))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nothing here may change what the run came to
        sys.stderr.write(plain(f"not indexed: {type(error).__name__}: {error}\n"))
