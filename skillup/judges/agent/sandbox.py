"""Where a judge works: ``desk/workspace`` and ``desk/judge``, both read-only, and a home beside it.

The desk, not the copy of the workspace, is the judge's working directory: so what the agent under
test left for agents to find (instructions, settings, skills) is not found as the judge's own.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillup.engines.base import Engine
from skillup.judges.agent.question import Materials, write_materials
from skillup.judges.artifacts import JudgedPart, WorkspaceCopy, copy_of, make_read_only
from skillup.judges.scratch import JudgePlace
from skillup.schema.judge import JudgeConfig, JudgeContext, SkillRef
from skillup.schema.record import FileState
from skillup.workspace import SkillToInstall, install_skill, skill_name
from skillup.workspace.failures import PreparationError
from skillup.workspace.trees import list_tree, shown

_SEALED = ("workspace", "judge")


@dataclass(frozen=True, slots=True)
class JudgeSandbox:
    """A place that was made for one judge, and what was put into it."""

    root: Path
    copy: WorkspaceCopy
    materials: Materials
    skills: dict[str, Path]
    seal: dict[str, str]

    @property
    def desk(self) -> Path:
        """The judge's working directory."""
        return self.root / "desk"

    def changed(self) -> list[str]:
        """What the judge changed of what it was shown, though it must not; sorted."""
        now = _state(self.desk)
        return sorted(path for path in {*self.seal, *now} if self.seal.get(path) != now.get(path))


def set_up(
    judge: JudgeConfig,
    subject: JudgedPart,
    read_file: Callable[[FileState], bytes | None],
    place: JudgePlace,
    engine: Engine,
) -> JudgeSandbox:
    """A fresh room below the place's scratch.

    Raises LostFilesError, MissingAttachmentError, PreparationError (a skill), and OSError.
    """
    place.scratch.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="agent-", dir=place.scratch)).resolve()
    desk = root / "desk"
    desk.mkdir()
    (root / "home").mkdir(mode=0o700)
    copy = copy_of(subject.files, read_file, desk / "workspace")
    materials = write_materials(
        desk / "judge",
        subject,
        judge.context or JudgeContext(),
        read_file,
        place.suite_root,
        place.mask,
    )
    skills: dict[str, Path] = {}
    for ref in judge.skills:
        wanted = to_install(ref, place.suite_root)
        installed = install_skill(wanted, desk, engine.skill_directories())
        skills[wanted.name] = desk / installed.directories[0]
    for name in _SEALED:
        make_read_only(desk / name)
    return JudgeSandbox(root, copy, materials, skills, _state(desk))


def to_install(ref: SkillRef, suite_root: Path) -> SkillToInstall:
    """The skill as it is installed. Raises PreparationError if it cannot be."""
    if ref.source != "local_path":
        raise PreparationError(f"judge skills from a `{ref.source}` are not fetched yet")
    source = (suite_root / ref.path).resolve()
    name = ref.name or skill_name(source)
    return SkillToInstall(name, source, ref.include, ref.exclude, ref.target)


def _state(desk: Path) -> dict[str, str]:
    """Everything that is sealed, by path: kind, mode, and content or target."""
    found: dict[str, str] = {}
    for name in _SEALED:
        for entry in list_tree(desk / name):
            path = desk / name / entry.path
            what = f"{entry.kind} {stat.S_IMODE(entry.status.st_mode):o}"
            if entry.kind == "file":
                with path.open("rb") as file:
                    what += hashlib.file_digest(file, "sha256").hexdigest()
            elif entry.kind == "link":
                what += os.readlink(path)  # noqa: PTH115 - its exact spelling
            found[shown(f"{name}/{entry.path}")] = what
    return found


def names(paths: Sequence[str]) -> str:
    """A few of the paths, in one line."""
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(paths[:5]) + more
