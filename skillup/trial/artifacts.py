"""`collect_artifacts`: files of the final workspace, kept as they are beside the record."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from skillup.workspace import Snapshot, matches_any_glob


def collect_artifacts(
    globs: Sequence[str], snapshot: Snapshot, workspace: Path, destination: Path
) -> list[str]:
    """Copy what the globs match, paths kept; a line for each file that could not be copied.

    Symbolic links are not followed: what they lead to need not be the agent's work.
    """
    missed: list[str] = []
    for path, state in snapshot.files.items():
        if state.link is not None or not matches_any_glob(path, globs):
            continue
        target = destination / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(workspace / path, target, follow_symlinks=False)
        except OSError as error:
            missed.append(f"{path} was not collected: {error.strerror or error}")
    return missed
