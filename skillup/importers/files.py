"""Files that a source names: found, if they are where a suite may look, and read or copied.

A suite comes from anybody, and what it names is copied into a workspace that an agent reads. So a
file outside of the source's project, or hidden in it, is not touched: ``../.ssh/id_rsa`` is no
fixture.
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


def _project(source: Path) -> Path:
    """The directory that files named in `source` may lie in: its repository, else one level up."""
    directory = source.resolve().parent
    repositories = (above for above in (directory, *directory.parents) if (above / ".git").exists())
    return next(repositories, directory.parent)


def find(reference: str, node: SourceValue, base: Path | None = None) -> Path | None:
    """The file or directory that `reference` means; None, and a note, if it is not to be had."""
    found = find_all(reference, node, base)
    return found[0] if found else None


def find_all(reference: str, node: SourceValue, base: Path | None = None) -> list[Path]:
    """The same for a reference that may be a glob of files."""
    name = reference.removeprefix(SCHEME)
    start = (base or node.source.path.parent).resolve()
    project = _project(node.source.path)
    try:
        if any(mark in name for mark in "*?["):
            found = [path.resolve() for path in sorted(start.glob(name)) if path.is_file()]
        else:
            # Other tools look in the directories above, too, up to the repository's own.
            above = [p for p in (start, *start.parents) if p.is_relative_to(project)] or [start]
            found = [(p / name).resolve() for p in above if (p / name).exists()][:1]
    except (OSError, ValueError, NotImplementedError):
        found = []
    open_ones = [path for path in found if _is_open(path, project)]
    if not found:
        node.lost(f"there is no `{name}`", "not read: add the file, and import again")
    elif not open_ones:
        what = f"`{name}` lies outside of {project.name}/ or is hidden in it"
        node.lost(what, "not read: copy it into the suite yourself")
    return open_ones


def _is_open(path: Path, project: Path) -> bool:
    return path.is_relative_to(project) and all(
        part in _OPEN_DOT_NAMES or not part.startswith(".")
        for part in path.relative_to(project).parts
    )


def read(reference: str, node: SourceValue, base: Path | None = None) -> str | None:
    """The text of the file that `reference` means; None, and a note, if it is not to be had."""
    if reference.rpartition(".")[2].partition(":")[0] in ("js", "ts", "mjs", "cjs", "py", "rb"):
        node.lost("this is made by a program", "left out: write the value itself")
        return None
    found = find(reference, node, base)
    try:
        return None if found is None else read_text(found)
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
    if found is not None and (found, target) not in placed:
        sizes = [path.stat().st_size for path, _ in files_below(found)]
        if len(sizes) <= _MOST_FILES and sum(sizes) <= _MOST_BYTES:
            placed.append((found, target))
        else:
            what = f"{len(sizes)} files, {sum(sizes) / 1e6:.0f} MB"
            node.lost(what, "not copied: name it in the case's `context.fixture` yourself")
    return target


def files_below(path: Path) -> Iterator[tuple[Path, str]]:
    """The regular files in a directory, each with its path from there, links left out; or a file
    itself, with an empty path.
    """
    if not path.is_dir():
        yield path, ""
    for here, names, files in os.walk(path):
        names[:] = sorted(n for n in names if n not in _NEVER_COPIED)
        for found in (Path(here) / name for name in sorted(files)):
            if found.is_file() and not found.is_symlink():
                yield found, found.relative_to(path).as_posix()
