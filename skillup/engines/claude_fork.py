"""A session of Claude Code under a new id, in another trial's home; the parent's stays as it is.

Claude resumes a copy as it resumes the original. Besides its file, a session has a directory of
the same name (its sub-agents, long outputs), and lists of tasks elsewhere in the engine's home.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.engines.claude_projects import project_folder
from skillup.engines.session_rewriting import Rewriting

# Folders of the engine's home that have something for each session, named by its id.
_BY_SESSION = ("todos", "tasks", "file-history")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session is."""

    engine_home: Path
    home: Path
    """The trial's, which the engine's own is in under ``isolation: clean``."""
    workspace: Path
    """Real path."""
    session_id: str

    @property
    def folder(self) -> Path:
        """Where claude looks for the sessions of the workspace."""
        return project_folder(self.engine_home, self.workspace)

    @property
    def file(self) -> Path:
        """The session's file."""
        return self.folder / f"{self.session_id}.jsonl"


def fork_session(source: Path, parent: Place, child: Place) -> Path:
    """Copies the session in the file `source`, which is the parent's; the copy's file.

    Raises OSError; FileExistsError if the child's id is taken.
    """
    rewriting = _rewriting(source, parent, child)
    child.folder.mkdir(parents=True, exist_ok=True)
    _copy(source, child.file, rewriting)
    own_directory = source.with_suffix("")
    for path in _files_below(own_directory):
        target = child.file.with_suffix("") / path.relative_to(own_directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(path, target, rewriting)
    for name in _BY_SESSION:
        _copy_named(parent.engine_home / name, child.engine_home / name, parent, child)
    return child.file


def _rewriting(source: Path, parent: Place, child: Place) -> Rewriting:
    paths = {
        source.parent: child.folder,
        parent.engine_home: child.engine_home,
        parent.home: child.home,
        parent.workspace: child.workspace,
    }
    as_text = {str(old): str(new) for old, new in paths.items()}
    return Rewriting(as_text, {parent.session_id: child.session_id}, untouched=_is_thought)


def _is_thought(value: Mapping[str, Any]) -> bool:
    """Thoughts are signed: the model's API refuses them if a letter is changed."""
    return value.get("type") in ("thinking", "redacted_thinking")


def _copy(source: Path, target: Path, rewriting: Rewriting) -> None:
    """Line by line, rewritten if it is JSON; for its owner only, as claude makes it."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    is_json = source.suffix in (".jsonl", ".json")
    with source.open("rb") as lines, os.fdopen(descriptor, "wb") as copy:
        if is_json:
            copy.writelines(map(rewriting.line, lines))
        else:
            shutil.copyfileobj(lines, copy)


def _copy_named(source: Path, target: Path, parent: Place, child: Place) -> None:
    """What is named by the parent's id, under the child's."""
    if not source.is_dir():
        return
    for entry in sorted(source.iterdir()):
        if not entry.name.startswith(parent.session_id):
            continue
        renamed = target / entry.name.replace(parent.session_id, child.session_id)
        target.mkdir(parents=True, exist_ok=True)
        if entry.is_dir():
            shutil.copytree(entry, renamed)
        else:
            shutil.copyfile(entry, renamed)


def _files_below(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        yield from sorted(path for path in directory.rglob("*") if path.is_file())
