"""Makes a trial's workspace as the case's ``context`` says."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from skillup.process import ProcessRequest, run_process
from skillup.schema.case import Context
from skillup.schema.record import SkillInfo, TurnError
from skillup.schema.templates import UnresolvedNameError, render
from skillup.workspace.failures import PreparationError, path_problem, refuse_full_disk
from skillup.workspace.git import Git, hide_from_git, prepare_repository
from skillup.workspace.skills import InstalledSkill, SkillToInstall, install_skill
from skillup.workspace.trees import copy_fixture

_KEPT_LINES = 40
_LINE_BYTES = 1000


@dataclass(frozen=True, slots=True)
class PreparedWorkspace:
    """A workspace that is ready for turn 1."""

    root: Path  # A real path: agents name their sessions after it
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
    ``git status``. ``env`` is the whole environment of the commands, and ``marker`` is how their
    processes are recognised; each may take ``timeout_seconds``; what they leave running is ended.
    Relative paths of ``context`` are relative to ``suite_root``.
    """

    def place_files() -> Path:
        destination.mkdir(parents=True, exist_ok=True)
        root = destination.resolve()
        if context.fixture is not None:
            fixture = (suite_root / context.fixture).resolve()
            if not fixture.is_dir():
                raise PreparationError(f"`context.fixture`: there is no directory {fixture}")
            copy_fixture(fixture, root)
        _write_inline_files(root, context.files, None if context.literal else variables)
        return root

    def install() -> list[InstalledSkill]:
        installed = [install_skill(skill, root, skill_directories) for skill in skills]
        hide(installed)
        return installed

    def hide(installed: Sequence[InstalledSkill]) -> None:
        hide_from_git(root, [directory for skill in installed for directory in skill.directories])

    try:
        root = await anyio.to_thread.run_sync(place_files)
        if context.git is not None:
            diff = context.git.apply_diff
            patch = (suite_root / diff).resolve() if diff is not None else None
            await prepare_repository(Git(root, env, timeout_seconds), context.git, patch)
        installed = await anyio.to_thread.run_sync(install)
        commands = [("environment.setup_steps", command) for command in setup_steps]
        commands += [("context.setup", command) for command in context.setup]
        for field, command in commands:
            request = ProcessRequest(
                ("sh", "-c", command), root, env, timeout_seconds=timeout_seconds, marker=marker
            )
            await _run_setup_command(request, f"`{field}`: `{command}`")
        if commands:  # one of them may have made the repository
            await anyio.to_thread.run_sync(hide, installed)
    except PreparationError as failure:
        return failure.error
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


def _write_inline_files(
    workspace: Path, files: Mapping[str, str], variables: Mapping[str, str] | None
) -> None:
    """Writes each file, its templates filled in, over what a fixture may have put there.

    `variables`: None where the files' texts are no templates. Raises PreparationError for a path
    that leaves the workspace or is in the way of another, and for a name without a value (kind
    ``template``); FullDiskError.
    """
    for path, content in files.items():
        problem = path_problem(path)
        if problem is not None:
            raise PreparationError(f"`context.files` has the path {path!r}: {problem}")
        target = workspace / path
        try:
            text = content if variables is None else render(content, variables)
            target.parent.mkdir(parents=True, exist_ok=True)
            # A new file, rather than new content: the fixture's may be read-only, or a link.
            if os.path.lexists(target):
                target.unlink()
            target.write_bytes(text.encode("utf-8", "replace"))
        except UnresolvedNameError as error:
            message = f"{error}, but `context.files` needs it for {path!r}; define it in `vars`"
            raise PreparationError(message, kind="template") from None
        except OSError as error:
            refuse_full_disk(error, workspace)
            reason = error.strerror or str(error)
            raise PreparationError(
                f"`context.files` cannot write {path!r}: {reason}; "
                "is there a directory, a file or a link of the fixture in its way?"
            ) from error


async def _run_setup_command(request: ProcessRequest, where: str) -> None:
    """Raises PreparationError, with the end of its output, unless it exits with 0 in time."""
    last_lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
    outcome = await run_process(request, lambda line: last_lines.append(line[:_LINE_BYTES]))
    if outcome.start_error is not None:
        message = f"{where} could not be started; is there a shell on PATH?"
        raise PreparationError(message, evidence=outcome.start_error)
    if outcome.exit_code == 0 and outcome.ended_by == "exit":
        return
    how = f"ended with exit code {outcome.exit_code}"
    if outcome.ended_by == "timeout":
        how = f"did not end within {request.timeout_seconds:g} s"
    elif outcome.ended_by == "output_limit":
        how = "wrote too much output"
    elif outcome.signal is not None:
        how = f"was ended by signal {outcome.signal}"
    output = b"\n".join(last_lines).decode(errors="replace")
    raise PreparationError(f"{where} {how}", evidence=f"{output}\n{outcome.stderr_tail}")
