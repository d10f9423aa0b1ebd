"""Makes a trial's workspace as the case's ``context`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from skillup.schema.case import Context
from skillup.schema.record import SkillInfo, TurnError
from skillup.workspace.copying import UnsafeTreeError, copy_fixture
from skillup.workspace.failure import PreparationError
from skillup.workspace.full_disk import refuse_full_disk
from skillup.workspace.git import Git, hide_from_git, prepare_repository
from skillup.workspace.inline_files import write_inline_files
from skillup.workspace.install import InstalledSkill, SkillToInstall, install_skill
from skillup.workspace.setup_command import run_setup_command


@dataclass(frozen=True, slots=True)
class PreparedWorkspace:
    """A workspace that is ready for turn 1."""

    root: Path
    """A real path: agents name their sessions after it."""
    skills: tuple[SkillInfo, ...]
    skill_paths: dict[str, Path]
    """Name → directory in the workspace, the first if the engine looks in several."""


async def prepare_workspace(
    context: Context,
    *,
    suite_root: Path,
    destination: Path,
    variables: Mapping[str, str],
    skills: Sequence[SkillToInstall],
    skill_directories: Sequence[str],
    env: Mapping[str, str],
    marker: str,
    timeout_seconds: float,
    setup_steps: Sequence[str] = (),
) -> PreparedWorkspace | TurnError:
    """Fills ``destination`` (made if need be) or says what keeps it from being filled.

    In this order: fixture, inline files, git, skills, the suite's ``setup_steps``, the case's
    ``context.setup``; so setup commands see everything, and the skills are in no commit and not in
    ``git status``. ``env`` is the whole environment of the commands, and ``marker``
    is how their processes are recognised; each may take ``timeout_seconds``; what they leave
    running is ended. Relative paths of ``context`` are
    relative to ``suite_root``.
    """
    try:
        await anyio.to_thread.run_sync(partial(destination.mkdir, parents=True, exist_ok=True))
        root = destination.resolve()
        await anyio.to_thread.run_sync(_place_files, context, suite_root, root, variables)
        if context.git is not None:
            diff = context.git.apply_diff
            patch = (suite_root / diff).resolve() if diff is not None else None
            await prepare_repository(Git(root, env, timeout_seconds), context.git, patch)
        installed = await anyio.to_thread.run_sync(_install, skills, root, skill_directories)
        for field, commands in (
            ("environment.setup_steps", setup_steps),
            ("context.setup", context.setup),
        ):
            for command in commands:
                await run_setup_command(
                    command, field, root, env=env, marker=marker, timeout_seconds=timeout_seconds
                )
        # A setup command may have made the repository.
        await anyio.to_thread.run_sync(_hide, root, installed)
    except PreparationError as failure:
        return failure.error
    except UnsafeTreeError as failure:
        return TurnError(kind="setup", message=str(failure))
    except OSError as error:
        refuse_full_disk(error, destination)
        where = f" ({error.filename})" if error.filename else ""
        return TurnError(
            kind="setup",
            message=f"the workspace could not be prepared: {error.strerror or error}{where}; "
            "see that the file can be read and the disk has room",
        )
    return PreparedWorkspace(
        root=root,
        skills=tuple(skill.info for skill in installed),
        skill_paths={skill.info.name: root / skill.directories[0] for skill in installed},
    )


def _place_files(
    context: Context, suite_root: Path, root: Path, variables: Mapping[str, str]
) -> None:
    if context.fixture is not None:
        fixture = (suite_root / context.fixture).resolve()
        if not fixture.is_dir():
            raise PreparationError(
                f"`context.fixture`: there is no directory {fixture}; correct the path, which is "
                "relative to the suite root"
            )
        copy_fixture(fixture, root)
    write_inline_files(root, context.files, None if context.literal else variables)


def _install(
    skills: Sequence[SkillToInstall], root: Path, skill_directories: Sequence[str]
) -> list[InstalledSkill]:
    installed = [install_skill(skill, root, skill_directories) for skill in skills]
    _hide(root, installed)
    return installed


def _hide(root: Path, installed: Sequence[InstalledSkill]) -> None:
    hide_from_git(root, [directory for skill in installed for directory in skill.directories])
