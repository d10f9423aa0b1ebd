"""`collect_artifacts`: files of the final workspace, kept as they are beside the record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skillup.schema.record import FileState
from skillup.workspace import BlobStore, Snapshot, matches_any_glob
from skillup.workspace.full_disk import refuse_full_disk


def collect_artifacts(
    globs: Sequence[str], snapshot: Snapshot, workspace: Path, blobs: BlobStore, destination: Path
) -> list[str]:
    """Copy what the globs match, paths kept; a line for each file that could not be copied.

    Symbolic links are not followed: what they lead to need not be the agent's work. Secrets are
    masked, in contents and in names.
    """
    missed: list[str] = []
    for path, state in snapshot.files.items():
        if state.link is not None or not matches_any_glob(path, globs):
            continue
        target = destination / os.fsdecode(blobs.masked(os.fsencode(path)))
        try:
            content = _content(state, workspace / path, blobs)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except OSError as error:
            refuse_full_disk(error, target)
            missed.append(f"{path} was not collected: {error.strerror or error}")
    return missed


def _content(state: FileState, path: Path, blobs: BlobStore) -> bytes:
    kept = blobs.read_state(state)
    if kept is not None:
        return kept
    if state.sha256 is None:
        raise OSError("it is too large")
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return blobs.masked(file.read())
