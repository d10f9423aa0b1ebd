"""How preparing a workspace fails, and what the disk refuses."""

from __future__ import annotations

import errno
import os
from pathlib import Path, PurePosixPath

from skillup.errors import FullDiskError
from skillup.schema.record import ErrorKind, TurnError

_EVIDENCE_CHARACTERS = 4000


class PreparationError(Exception):
    """Carries the TurnError that :func:`skillup.workspace.prepare_workspace` returns."""

    def __init__(self, message: str, *, evidence: str = "", kind: ErrorKind = "setup") -> None:
        super().__init__(message)
        evidence = evidence.strip()
        if len(evidence) > _EVIDENCE_CHARACTERS:  # at their end commands say what went wrong
            evidence = f"[…]\n{evidence[-_EVIDENCE_CHARACTERS:]}"
        self.error = TurnError(kind=kind, message=message, evidence=evidence)


def path_problem(path: str) -> str | None:
    """Why a path that a user wrote may not be one below the workspace; None if it may."""
    pure = PurePosixPath(path)
    if "\0" in path:
        return "it holds a NUL character"
    if pure.is_absolute():
        return "it is absolute; write it relative to the workspace"
    if ".." in pure.parts:
        return "it holds `..`; it must stay in the workspace"
    return None if pure.parts else "it names no file"


# A full disk is nobody's doing in a trial: no error of the trial, but the end of the run.

_ADVICE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit on the size of files (`ulimit -f`)",
}
_LEAST_BYTES = 256 << 10
"""With less than this the next write may fail; whoever met the end of the disk leaves less."""


def refuse_full_disk(error: OSError, place: Path | None = None) -> None:
    """Raises FullDiskError if that is why the system refused; `place`: where it does not say."""
    advice = _ADVICE.get(error.errno or 0)
    if advice is not None:
        where = error.filename or place
        raise _full(f"{error.strerror}{f' ({where})' if where else ''}", advice) from error


def refuse_without_room(place: Path) -> None:
    """Raises FullDiskError if the disk of `place` has no room left for bytes, or for files."""
    try:
        disk = os.statvfs(place)
    except OSError:
        return
    # Some file systems have no number of files that they could hold: they say 0 of 0.
    no_files = disk.f_files > 0 and disk.f_favail == 0
    if disk.f_bavail * disk.f_frsize < _LEAST_BYTES or no_files:
        raise _full(f"no room is left on the disk of {place}", _ADVICE[errno.ENOSPC])


def _full(what: str, advice: str) -> FullDiskError:
    return FullDiskError(
        f"the run cannot go on: {what}",
        hint=f"{advice} (TMPDIR says where trials work), then go on with --resume",
    )
