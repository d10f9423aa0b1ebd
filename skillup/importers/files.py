"""Files that a source names: found, if they are where a suite may look, and read or copied.

A suite comes from anybody, and what it names is copied into a workspace that an agent reads. So
what lies outside of the source's project, or hidden in it, is not touched (``../.ssh/id_rsa``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from skillup.errors import InvalidFilesError
from skillup.importers.source import SourceValue
from skillup.load.yaml_reader import read_text

SCHEME = "file://"
_MOST_FILES = 2000
_MOST_BYTES = 50 * 1024 * 1024
_OPEN_DOT_NAMES = {".agentv", ".agents", ".claude", ".codex", ".github"}
_NEVER_COPIED = {".git", "node_modules", ".venv", "__pycache__"}

Placed = tuple[Path, str]
"""A file or directory to copy, and its path in the workspace (``""``: the workspace itself)."""


def find(reference: str, node: SourceValue, base: Path | None = None) -> list[Path]:
    """The file or directory, or the files of a glob; none, and a note, if they are not to be had.

    They may lie in the repository of the file that names them, else as far as one level up.
    """
    name = reference.removeprefix(SCHEME)
    start = (base or node.source.path.parent).resolve()
    directory = node.source.path.resolve().parent
    repositories = (above for above in (directory, *directory.parents) if (above / ".git").exists())
    project = next(repositories, directory.parent)
    try:
        if any(mark in name for mark in "*?["):
            found = [path.resolve() for path in sorted(start.glob(name)) if path.is_file()]
        else:
            # Other tools look in the directories above, too, up to the repository's own.
            above = [p for p in (start, *start.parents) if p.is_relative_to(project)] or [start]
            found = [(p / name).resolve() for p in above if (p / name).exists()][:1]
    except (OSError, ValueError, NotImplementedError):
        found = []
    open_ones = [
        path
        for path in found
        if path.is_relative_to(project)
        and all(
            part in _OPEN_DOT_NAMES or not part.startswith(".")
            for part in path.relative_to(project).parts
        )
    ]
    if not found:
        node.lost(f"there is no `{name}`", "not read: add the file, and import again")
    elif not open_ones:
        what = f"`{name}` lies outside of {project.name}/ or is hidden in it"
        node.lost(what, "not read: copy it into the suite yourself")
    return open_ones


def read(reference: str, node: SourceValue, base: Path | None = None) -> str | None:
    """The text of the file that `reference` means; None, and a note, if it is not to be had."""
    if reference.rpartition(".")[2].partition(":")[0] in ("js", "ts", "mjs", "cjs", "py", "rb"):
        node.lost("this is made by a program", "left out: write the value itself")
        return None
    try:
        return next(map(read_text, find(reference, node, base)), None)
    except InvalidFilesError as error:
        node.lost(f"`{reference}`: {error.problems[0].message}", "not read")
        return None


def workspace_path(reference: str) -> str:
    """Where a named file goes in the workspace: its path without the steps upwards."""
    parts = PurePosixPath(reference.removeprefix(SCHEME)).parts
    return "/".join(part for part in parts if part not in ("..", ".", "/")) or "file"


def place(
    reference: str,
    node: SourceValue,
    placed: list[Placed],
    base: Path | None = None,
    target: str | None = None,
) -> str:
    """Have what is named in the workspace, if it is to be had; its path there in any case."""
    target = workspace_path(reference) if target is None else target
    found = find(reference, node, base)
    if found and (found[0], target) not in placed:
        sizes = [path.stat().st_size for path, _ in files_below(found[0])]
        if len(sizes) <= _MOST_FILES and sum(sizes) <= _MOST_BYTES:
            placed.append((found[0], target))
        else:
            what = f"{len(sizes)} files, {sum(sizes) / 1e6:.0f} MB"
            node.lost(what, "not copied: name it in the case's `context.fixture` yourself")
    return target


def files_below(path: Path) -> Iterator[tuple[Path, str]]:
    """The regular files in a directory with their paths from there; a file itself with ``""``."""
    if not path.is_dir():
        yield path, ""
    for here, names, files in os.walk(path):
        names[:] = sorted(n for n in names if n not in _NEVER_COPIED)
        for found in (Path(here) / name for name in sorted(files)):
            if found.is_file() and not found.is_symlink():
                yield found, found.relative_to(path).as_posix()
