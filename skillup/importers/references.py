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
from skillup.importers.draft import CreatedSession
from skillup.importers.promptfoo.values import SourceValue
from skillup.load.file_text import read_text

SCHEME = "file://"
_MOST_FILES = 2000
_MOST_BYTES = 50 * 1024 * 1024
_OPEN_DOT_NAMES = {".agentv", ".agents", ".claude", ".codex", ".github"}
_NEVER_COPIED = {".git", "node_modules", ".venv", "__pycache__"}


def project_of(source: Path) -> Path:
    """The directory that files named in `source` may lie in: its repository, else one level up."""
    directory = source.resolve().parent
    for above in (directory, *directory.parents):
        if (above / ".git").exists():
            return above
    return directory.parent


def find(reference: str, node: SourceValue, *, base: Path | None = None) -> Path | None:
    """The file or directory that `reference` means; None, and a note, if it is not to be had."""
    name = reference.removeprefix(SCHEME)
    source = node.source.path
    start = base or source.resolve().parent
    project = project_of(source)
    try:
        found = (start / name).resolve()
        for above in (start, *start.parents):
            if not above.is_relative_to(project):
                break
            # Other tools look in the directories above, too, up to the repository's own.
            if (above / name).exists():
                found = (above / name).resolve()
                break
        inside = found.is_relative_to(project) and not _hidden(found.relative_to(project))
        there = found.exists()
    except (OSError, ValueError):
        inside, there = True, False
    if not inside:
        node.lost(
            f"`{name}` lies outside of {project.name}/ or is hidden in it",
            "not read: copy it into the suite yourself",
        )
        return None
    if not there:
        node.lost(f"there is no `{name}`", "not read: add the file, and import again")
        return None
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") and part not in _OPEN_DOT_NAMES for part in path.parts)


def read(reference: str, node: SourceValue, *, base: Path | None = None) -> str | None:
    """The text of the file that `reference` means; None, and a note, if it is not to be had."""
    found = find(reference, node, base=base)
    if found is None:
        return None
    try:
        return read_text(found)
    except InvalidFilesError as error:
        node.lost(f"`{reference}`: {error.problems[0].message}", "not read")
        return None


def workspace_path(reference: str) -> str:
    """Where a named file goes in the workspace: its path without the steps upwards."""
    parts = PurePosixPath(reference.removeprefix(SCHEME).replace(os.sep, "/")).parts
    kept = [part for part in parts if part not in ("..", ".", "/")]
    return "/".join(kept) or "file"


def place(
    reference: str, node: SourceValue, placed: list[CreatedSession], *, base: Path | None = None
) -> str:
    """Have the named file in the workspace, if it is to be had; its path there in any case."""
    target = workspace_path(reference)
    found = find(reference, node, base=base)
    if found is not None and _fits(found, node) and (found, target) not in placed:
        placed.append((found, target))
    return target


def place_directory(
    reference: str, node: SourceValue, placed: list[CreatedSession], *, base: Path | None = None
) -> None:
    """Have a directory's content in the workspace, if it is to be had."""
    found = find(reference, node, base=base)
    if found is None:
        return
    if not found.is_dir():
        node.lost(f"`{reference}` is not a directory", "not copied")
    elif _fits(found, node):
        placed.append((found, ""))


def files_below(directory: Path) -> Iterator[tuple[Path, str]]:
    """The regular files in `directory`, each with its path from there; links are left out."""
    for here, names, files in os.walk(directory):
        names[:] = sorted(n for n in names if n not in _NEVER_COPIED)
        for name in sorted(files):
            path = Path(here) / name
            if path.is_file() and not path.is_symlink():
                yield path, path.relative_to(directory).as_posix()


def _fits(found: Path, node: SourceValue) -> bool:
    files = [path for path, _ in files_below(found)] if found.is_dir() else [found]
    size = sum(path.stat().st_size for path in files)
    if len(files) <= _MOST_FILES and size <= _MOST_BYTES:
        return True
    node.lost(
        f"{len(files)} files, {size / 1e6:.0f} MB",
        "not copied: name it in the case's `context.fixture` yourself",
    )
    return False
