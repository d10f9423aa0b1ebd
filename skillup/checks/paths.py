"""Paths and globs as checks write them, and the files of a snapshot that they find."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from skillup.schema.workspace_paths import outside_problem
from skillup.workspace.globs import matches_glob, may_match_below

State = TypeVar("State")

_WILD = frozenset("*?[{")


@lru_cache(maxsize=1024)
def path_problem(pattern: str) -> str | None:
    """Why `pattern` cannot name a file of the workspace; None if it can."""
    problem = outside_problem(pattern)
    if problem is not None:
        return problem
    try:
        matches_glob("", normal_path(pattern))
    except re.error as trouble:
        return f"{pattern} is not a valid glob: {trouble}"
    return None


@lru_cache(maxsize=1024)
def normal_path(pattern: str) -> str:
    """With forward slashes, without ``./`` and double slashes."""
    parts = pattern.replace("\\", "/").split("/")
    directory = "/" if len(parts) > 1 and not parts[-1] else ""
    return "/".join(part for part in parts if part not in ("", ".")) + directory


def found_by(pattern: str, files: Mapping[str, object]) -> list[str]:
    """Files that a path or glob finds; a directory is found by way of the files in it."""
    path = normal_path(pattern)
    bare = path.rstrip("/")
    if path in files:
        return [path]
    if not bare:
        return list(files)
    below = bare + "/"
    inside = [name for name in files if name.startswith(below)]
    if inside or not _WILD.intersection(bare):
        return inside
    known: dict[str, bool] = {"": False}

    def within(directory: str) -> bool:
        if directory not in known:
            known[directory] = matches_glob(directory, bare) or within(_parent(directory))
        return known[directory]

    also_files = not path.endswith("/")
    return [
        name for name in files if within(_parent(name)) or (also_files and matches_glob(name, bare))
    ]


def files_named(pattern: str, files: Mapping[str, State]) -> dict[str, State]:
    """Files whose own path is, or matches, the pattern; directories do not count."""
    path = normal_path(pattern)
    if path in files:
        return {path: files[path]}
    return {name: state for name, state in files.items() if matches_glob(name, path)}


def unseen_by(pattern: str, unseen: Sequence[str]) -> str | None:
    """What of the workspace was not looked at, and might be what the pattern means; None: nothing.

    `unseen` is as in a turn's record; what is in `.git` is never looked at.
    """
    path = normal_path(pattern).rstrip("/")
    if ".git" in path.split("/"):
        return ".git"
    for place in unseen:
        inside = place.rstrip("/")
        if path == inside or may_match_below(inside, path):
            return place
    return None


def near_misses(pattern: str, files: Sequence[str]) -> list[str]:
    """Up to three paths that look like the one that was not found."""
    import difflib

    wanted = normal_path(pattern)
    name = wanted.rpartition("/")[2].casefold()
    same_name = [path for path in files if path.rpartition("/")[2].casefold() == name]
    return same_name[:3] or difflib.get_close_matches(wanted, files[:500], n=3, cutoff=0.6)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
