"""Paths that users write for places in the workspace."""

from __future__ import annotations

from pathlib import PurePosixPath


def path_problem(path: str) -> str | None:
    """Why this may not be a path below the workspace; None if it may."""
    pure = PurePosixPath(path)
    if "\0" in path:
        return "it holds a NUL character"
    if pure.is_absolute():
        return "it is absolute; write it relative to the workspace"
    if ".." in pure.parts:
        return "it holds `..`; it must stay in the workspace"
    if not pure.parts:
        return "it names no file"
    return None
