"""Skills are copied to where agents look for them."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillup.errors import Problem
from skillup.load.skills import SKILL_FILE, skill_problem
from skillup.schema.record import SkillInfo
from skillup.workspace.failures import PreparationError, path_problem
from skillup.workspace.globs import matches_any_glob
from skillup.workspace.trees import EntryKind, list_tree, shown, stays_inside

_NEVER = frozenset({".git", "__pycache__", ".DS_Store", ".skillup"})
_CASES = "evals"  # the agent under test must not find the answers


@dataclass(frozen=True, slots=True)
class SkillToInstall:
    """A skill on disk, and what of it is installed."""

    name: str  # As in :func:`skill_name`, unless the suite gives another
    source_dir: Path
    include: Sequence[str] = ()  # Globs; none: everything. SKILL.md always is
    exclude: Sequence[str] = ()  # Globs; they outrank ``include``
    target: str | None = None
    """The directory in the workspace, in place of those that the engine looks in."""
    role: Literal["under_test", "distractor"] = "under_test"
    as_is: bool = False  # Without a SKILL.md, what is there is installed all the same


@dataclass(frozen=True, slots=True)
class InstalledSkill:
    """A skill in a workspace."""

    info: SkillInfo
    directories: tuple[str, ...]  # Where it is, relative to the workspace


_SkillFile = tuple[str, Path, os.stat_result]  # Path in the skill, the file on disk, and its status


def install_skill(
    skill: SkillToInstall, workspace: Path, skill_directories: Sequence[str]
) -> InstalledSkill:
    """Copies the skill's files to ``<directory>/<name>`` for each of the engine's directories.

    ``evals/``, ``.git``, ``__pycache__``, ``.DS_Store`` and ``.skillup`` are never installed.
    Permissions are kept; links become what they point to. Raises PreparationError if the skill is
    not usable, if a link leads out of it, or if the place is taken.
    """
    problem = unusable(skill.source_dir, as_is=skill.as_is)
    if problem is not None:
        raise PreparationError(str(problem))
    name = skill.name
    root = skill.source_dir.resolve()
    files = sorted(
        file
        for file in _files(root, skill.exclude)
        if file[0] == SKILL_FILE or not skill.include or matches_any_glob(file[0], skill.include)
    )
    if not skill.as_is and not any(path == SKILL_FILE for path, _, _ in files):
        raise PreparationError(f"the skill {name} excludes its own {SKILL_FILE}; change `exclude`")
    places = [f"{directory.rstrip('/')}/{name}" for directory in skill_directories]
    if skill.target is not None:
        places = [skill.target.rstrip("/")]
    directories = tuple(dict.fromkeys(places))
    for directory in directories:
        _check_place(workspace, directory, name)
        for path, source, _ in files:
            target = workspace / directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    # SHA-256 over path, executable bit and content of every file, in order of path.
    whole = hashlib.sha256()
    for path, source, status in files:
        with source.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        executable = "x" if status.st_mode & stat.S_IXUSR else "-"
        whole.update(f"{shown(path)}\0{executable}\0{digest}\n".encode())
    info = SkillInfo(name=name, sha256=whole.hexdigest(), role=skill.role)
    return InstalledSkill(info, directories)


def unusable(directory: Path, *, as_is: bool) -> Problem | None:
    """Why this directory cannot be installed as a skill; None if it can."""
    if as_is and directory.is_dir() and not (directory / SKILL_FILE).exists():
        return None
    return skill_problem(directory)


def _check_place(workspace: Path, directory: str, name: str) -> None:
    problem = path_problem(directory)
    if problem is not None:
        raise PreparationError(f"the skill {name} cannot be installed to {directory!r}: {problem}")
    place = workspace / directory
    if os.path.lexists(place):
        raise PreparationError(
            f"the skill {name} cannot be installed: {directory} is there already; give skills in "
            "`skills` only, each once, and not in a fixture as well"
        )
    if not place.resolve().is_relative_to(workspace.resolve()):
        raise PreparationError(
            f"the skill {name} cannot be installed to {directory}: "
            "a link of the fixture leads out of the workspace"
        )


def _files(root: Path, exclude: Sequence[str]) -> Iterator[_SkillFile]:
    """The files of the skill; links resolved."""

    def leave_out(path: str, _kind: EntryKind) -> bool:
        return _is_litter(path) or matches_any_glob(path, exclude)

    for entry in list_tree(root, leave_out=leave_out):
        path, source = entry.path, root / entry.path
        if entry.kind == "file":
            yield path, source, entry.status
        elif entry.kind == "special":
            raise PreparationError(f"{source} is a FIFO, socket or device; exclude or remove it")
        elif entry.kind == "link":
            real = Path(os.path.realpath(source))
            inside = stays_inside(root, path)
            if not inside or not real.exists():
                why = "leads nowhere" if inside else "leads out of the skill"
                raise PreparationError(f"the link {source} {why}; exclude it, or copy the file")
            if _is_litter(real.relative_to(root).as_posix()):
                continue
            if not real.is_file():
                why = "leads to a directory; copy that, or exclude the link"
                raise PreparationError(f"the link {source} {why}")
            yield path, real, real.stat()


def _is_litter(path: str) -> bool:
    parts = path.split("/")
    return parts[0] == _CASES or not _NEVER.isdisjoint(parts)
