"""Runs a script in a copy of the workspace, on its own, within its time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from skillup.judges.exhibits.subject import Exhibited
from skillup.judges.exhibits.workspace_copy import LostFilesError, WorkspaceCopy, copy_of
from skillup.judges.place import JudgePlace
from skillup.judges.scripts.find import FoundScript, ScriptProblemError, find_script
from skillup.judges.scripts.output import ScriptVerdict, verdict_of
from skillup.judges.scripts.variables import script_environment
from skillup.process import CompletedOutput, run_quiet
from skillup.schema.record import FileState
from skillup.workspace.full_disk import refuse_full_disk

DEFAULT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Setting:
    script: FoundScript
    copy: WorkspaceCopy
    environment: dict[str, str]


async def judge_by_script(
    path: str,
    subject: Exhibited,
    read_file: Callable[[FileState], bytes | None],
    place: JudgePlace,
    *,
    timeout_seconds: float | None = None,
    pass_threshold: float = 1.0,
    exit_code_decides: bool = False,
) -> ScriptVerdict:
    """The verdict of the suite's script `path` on `subject`; what goes wrong is in it.

    The script may write in its copy of the workspace, which is its working directory. Nothing that
    it starts outlives it. `timeout_seconds` None or 0: 30.
    """
    seconds = timeout_seconds or DEFAULT_SECONDS
    try:
        setting = await anyio.to_thread.run_sync(_prepare, path, subject, read_file, place)
    except (ScriptProblemError, LostFilesError) as problem:
        return ScriptVerdict(error=place.mask(str(problem)))
    except OSError as problem:
        refuse_full_disk(problem, place.scratch)
        return ScriptVerdict(error=place.mask(f"the script's workspace: {problem}"))
    output = await run_quiet(
        setting.script.argv,
        cwd=setting.copy.root,
        env=setting.environment,
        timeout_seconds=seconds,
    )
    verdict = verdict_of(
        _masked(output, place.mask),
        timeout_seconds=seconds,
        pass_threshold=pass_threshold,
        workspace=setting.copy.root,
        exit_code_decides=exit_code_decides,
    )
    notes = (*setting.script.notes, *subject.notes, *setting.copy.notes(), *verdict.notes)
    return ScriptVerdict(
        verdict.passed, verdict.score, verdict.found, verdict.error, verdict.children, notes
    )


def _prepare(
    path: str,
    subject: Exhibited,
    read_file: Callable[[FileState], bytes | None],
    place: JudgePlace,
) -> _Setting:
    place.scratch.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="script-", dir=place.scratch)).resolve()
    script = find_script(path, subject.record, read_file, place.suite_root, scratch)
    copy = copy_of(subject.files, read_file, scratch / "workspace")
    environment = script_environment(
        subject, copy, place.environment, place.suite_root, scratch, place.mask
    )
    return _Setting(script, copy, environment)


def _masked(output: CompletedOutput, mask: Callable[[str], str]) -> CompletedOutput:
    return CompletedOutput(
        exit_code=output.exit_code,
        stdout=mask(output.stdout),
        stderr=mask(output.stderr),
        timed_out=output.timed_out,
        start_error=mask(output.start_error) if output.start_error else None,
    )
