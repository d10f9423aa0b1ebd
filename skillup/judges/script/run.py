"""Runs a script in a copy of the workspace, on its own, within its time."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from skillup.engines.environment import clean_variables
from skillup.judges.artifacts import (
    JudgedPart,
    LostFilesError,
    WorkspaceCopy,
    as_json,
    as_markdown,
    copy_of,
)
from skillup.judges.scratch import JudgePlace
from skillup.judges.script.output import ScriptVerdict, verdict_of
from skillup.process import CompletedOutput, run_quiet
from skillup.schema.record import FileState, Record
from skillup.workspace.failures import refuse_full_disk

# Where a script is, and how it is started.

_SHELLS = {".sh": "/bin/sh", ".bash": "bash"}


class ScriptProblemError(Exception):
    """The script cannot be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class FoundScript:
    """A script that can be started."""

    argv: tuple[str, ...]
    notes: tuple[str, ...] = ()


def find_script(
    path: str,
    record: Record,
    read_file: Callable[[FileState], bytes | None],
    suite_root: Path,
    scratch: Path,
) -> FoundScript:
    """The script that the suite calls `path`; a kept copy is written below `scratch`.

    Raises ScriptProblemError if it is nowhere or cannot be started.
    """
    kept = record.references.get(path)
    own = suite_root / path
    if kept is None:
        return FoundScript(command_of(own))
    try:
        present = own.read_bytes() if own.is_file() else None
    except OSError:
        present = None
    if present is not None and hashlib.sha256(present).hexdigest() == kept.sha256:
        return FoundScript(command_of(own))
    content = read_file(kept)
    if content is None:
        raise ScriptProblemError(
            f"the script {own} is not what it was, and the copy kept with the record is gone; "
            "put it back, or judge by what it is now: `skillup judge RUN --cases PATH`"
        )
    copy = scratch / "script" / Path(path).name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    copy.chmod(0o755 if kept.executable else 0o644)
    changed = (f"{path} has changed since; the copy kept with the record was run",)
    return FoundScript(command_of(copy), changed if present is not None else ())


def command_of(script: Path) -> tuple[str, ...]:
    """The command that starts it: its executable bit, its first line or its ending say how.

    Raises ScriptProblemError.
    """
    if script.exists() and not script.is_file():  # a pipe might never end
        raise ScriptProblemError(f"the script {script} is no file; correct its path")
    try:
        with script.open("rb") as file:
            start = file.read(512)
    except FileNotFoundError:
        raise ScriptProblemError(f"there is no script {script}; correct its path") from None
    except OSError as error:
        why = f"the script {script} cannot be read: {error.strerror or error}"
        raise ScriptProblemError(why) from error
    shebang = start.split(b"\n", 1)[0][2:].strip() if start.startswith(b"#!") else b""
    # A program that is no text has no other way to be started.
    if os.access(script, os.X_OK) and (shebang or b"\0" in start):
        return (str(script),)
    if script.suffix == ".py":
        return (sys.executable, str(script))
    if shebang:
        # The interpreter and at most one argument, as the system splits the line.
        return (*shebang.decode(errors="surrogateescape").split(None, 1), str(script))
    if script.suffix in _SHELLS:
        return (_SHELLS[script.suffix], str(script))
    raise ScriptProblemError(
        f"it is not clear how to start the script {script}: "
        "begin it with `#!` and its interpreter, such as `#!/bin/sh`"
    )


# The `EVAL_*` variables of a script: skill-up's three, and more of our own.

# The system refuses to start a program with a variable of over 128 KiB.
_LONGEST_VALUE_BYTES = 96 << 10


def script_environment(
    subject: JudgedPart,
    copy: WorkspaceCopy,
    user_environment: Mapping[str, str],
    suite_root: Path,
    scratch: Path,
    mask: Callable[[str], str],
) -> dict[str, str]:
    """The whole environment of the script; writes the files that it names below `scratch`."""
    home = scratch / "home"
    home.mkdir()
    files = scratch / "record"
    files.mkdir()
    record, last = subject.record, subject.last
    written = {
        "EVAL_TRANSCRIPT_PATH": ("transcript.json", as_json(subject.turns, record.history)),
        "EVAL_TRANSCRIPT_MARKDOWN_PATH": (
            "transcript.md",
            "\n".join(as_markdown(subject.turns, record.history)),
        ),
        "EVAL_FINAL_MESSAGE_PATH": ("final_message.txt", last.response),
        "EVAL_RECORD_PATH": ("record.json", record.model_dump_json()),
    }
    variables: dict[str, str] = {}
    for name, (file, text) in written.items():
        (files / file).write_text(mask(text), "utf-8", errors="backslashreplace", newline="")
        variables[name] = str(files / file)
    variables |= {
        "EVAL_FINAL_MESSAGE": _as_value(mask(last.response)),
        "EVAL_WORKSPACE": str(copy.root),
        "EVAL_CASE_ID": _as_value(record.case_id),
        "EVAL_TURNS": str(len(record.turns)),
        "EVAL_FILES_NOT_KEPT": _as_value("\n".join(copy.not_kept)),
    }
    if last.process is not None and last.process.exit_code is not None:
        variables["EVAL_EXIT_CODE"] = str(last.process.exit_code)
    if subject.number is not None:
        variables["EVAL_TURN"] = str(subject.number)
    if suite_root.is_dir():
        variables["EVAL_SUITE_ROOT"] = str(suite_root)
    return {**clean_variables(user_environment), "HOME": str(home), **variables}


def _as_value(text: str) -> str:
    """The text, cut to what a variable can hold; variables cannot hold NUL."""
    encoded = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "backslashreplace")
    if len(encoded) <= _LONGEST_VALUE_BYTES:
        return os.fsdecode(encoded)
    return encoded[:_LONGEST_VALUE_BYTES].decode(errors="ignore")


DEFAULT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Setting:
    script: FoundScript
    copy: WorkspaceCopy
    environment: dict[str, str]


async def judge_by_script(
    path: str,
    subject: JudgedPart,
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
    subject: JudgedPart,
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
