"""Runs as users name them where no index is asked: a directory, an id or its beginning, `last`."""

from __future__ import annotations

from pathlib import Path

from skillup.errors import UsageError

LAST = "last"
_SHOWN = 5


def run_path(name: str) -> Path:
    """The directory of the run `name`; one that is there, whatever is in it.

    Raises UsageError if there is none, or if several ids begin so.
    """
    from skillup.load.discover import workspace_root
    from skillup.store.place import runs_folder

    path = Path(name)
    if name != LAST and path.exists():
        return path
    folder = runs_folder(workspace_root(Path()))
    ids = runs_in(folder)
    if name == LAST and ids:
        return folder / ids[-1]
    found = [name] if name in ids else [run for run in ids if name and run.startswith(name)]
    if len(found) == 1:
        return folder / found[0]
    if found:
        some = ", ".join(found[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"say more of it: {some}")
    newest = ", ".join(reversed(ids[-_SHOWN:]))
    there = f"the newest ones: {newest}" if newest else f"there is no run in {folder} yet"
    raise UsageError(f"there is no run {name}", hint=f"give a run's directory or id; {there}")


def runs_in(folder: Path) -> list[str]:
    """The names of the run directories in `folder`; by default they sort by their time."""
    from skillup.store.run_directory import RUN_FILE

    try:
        return sorted(path.name for path in folder.iterdir() if (path / RUN_FILE).is_file())
    except OSError:
        return []
