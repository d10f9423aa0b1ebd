"""Runs as users name them: a directory, an id or its beginning, `last`."""

from __future__ import annotations

import sys
from pathlib import Path

from skillup.errors import UsageError
from skillup.store.runs import runs_in

LAST = "last"
_SHOWN = 5


def run_path(name: str) -> Path:
    """The directory of the run `name`; one that is there, whatever is in it. Says which is `last`.

    Raises UsageError if there is none, or if several ids begin so.
    """
    from skillup.load.discover import workspace_root
    from skillup.store.places import runs_folder

    path = Path(name)
    if name != LAST and _is_there(path):
        return path
    folder = runs_folder(workspace_root(Path()))
    ids = runs_in(folder)
    if name == LAST and ids:
        _say_which(folder / ids[-1])
        return folder / ids[-1]
    found = _called(name, ids)
    if len(found) == 1:
        return folder / found[0]
    if found:
        some = ", ".join(found[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"say more of it: {some}")
    what = "there is no run yet" if name == LAST else f"there is no run {name}"
    raise UsageError(what, hint=f"give a run's directory or id; {newest_runs()}")


def _say_which(run: Path) -> None:
    """On stderr: one that was written elsewhere may be newer, and be the one that was meant."""
    from skillup.reports.terminal.listing import shown_path
    from skillup.reports.text import plain

    sys.stderr.write(plain(f"{LAST}: {shown_path(run)}") + "\n")


def newest_runs() -> str:
    """For hints: which runs there are."""
    from skillup.load.discover import workspace_root
    from skillup.store.places import runs_folder

    folder = runs_folder(workspace_root(Path()))
    newest = ", ".join(reversed(runs_in(folder)[-_SHOWN:]))
    return f"the newest ones: {newest}" if newest else f"there is no run in {folder} yet"


def name_of_newest(run: Path) -> str:
    """What the run that has just ended is called on the command line: `last`, or its place."""
    from shlex import quote

    from skillup.load.discover import workspace_root
    from skillup.reports.terminal.listing import shown_path
    from skillup.store.places import runs_folder

    folder = runs_folder(workspace_root(Path())).absolute()
    newest = run.parent == folder and runs_in(folder)[-1:] == [run.name]
    return LAST if newest else quote(shown_path(run))


def means_a_run(name: str) -> bool:
    """Whether `name` is `last`, or the id of a run (or the beginning of some)."""
    from skillup.load.discover import workspace_root
    from skillup.store.places import runs_folder

    return name == LAST or bool(_called(name, runs_in(runs_folder(workspace_root(Path())))))


def _called(name: str, ids: list[str]) -> list[str]:
    return [name] if name in ids else [run for run in ids if name and run.startswith(name)]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for the system
        return False
