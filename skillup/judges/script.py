"""The judge that is a script: run in a copy of the workspace, on its own, within its time.

As in skill-up exit code 0 is a pass, another is not, and what it prints is the evidence. Codes by
which a shell says that there was nothing to run, or that a signal ended it, are no verdicts. A
script may also print a JSON object, as all of its output or at its end, from the start of a line::

    {"score": 0.8, "pass": true, "reason": "…",
     "assertions": [{"name": "…", "pass": true, "score": 1.0, "reason": "…"}]}

The exit code has the last word against a pass, never for one; nor for a verdict that cannot be
read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.engines.environment import clean_variables
from skillup.engines.failures import shortened
from skillup.judges.answers import DoubtfulJsonError, bare, strict_json
from skillup.judges.artifacts import (
    JudgedPart,
    LostFilesError,
    WorkspaceCopy,
    as_json,
    as_markdown,
    copy_of,
)
from skillup.judges.scratch import JudgePlace
from skillup.process import CompletedOutput, run_quiet
from skillup.schema.grade import CheckResult
from skillup.schema.record import FileState
from skillup.workspace.failures import refuse_full_disk

DEFAULT_SECONDS = 30.0
_SHELLS = {".sh": "/bin/sh", ".bash": "bash"}
_LONGEST_VALUE_BYTES = 96 << 10
"""The system refuses to start a program with a variable of over 128 KiB."""
_EVIDENCE_CHARACTERS = 2_000
ReadFile = Callable[[FileState], bytes | None]


class ScriptProblemError(Exception):
    """The script cannot be started; the message says why and what to do."""


class NoVerdictError(Exception):
    """The script gave no verdict; the message says what is wrong."""


async def judge_by_script(
    path: str,
    subject: JudgedPart,
    read_file: ReadFile,
    place: JudgePlace,
    blank: CheckResult,
    *,
    timeout_seconds: float | None = None,
    pass_threshold: float = 1.0,
    exit_code_decides: bool = False,
) -> CheckResult:
    """`blank` with the verdict of the suite's script `path`, or the `error` that kept it from one.

    The script may write in its copy of the workspace, which is its working directory. Nothing that
    it starts outlives it. `timeout_seconds` None or 0: 30.
    """
    seconds = timeout_seconds or DEFAULT_SECONDS
    try:
        argv, copy, environment, notes = await anyio.to_thread.run_sync(
            _prepare, path, subject, read_file, place
        )
    except (ScriptProblemError, LostFilesError) as problem:
        return blank.model_copy(update={"error": place.mask(str(problem))})
    except OSError as problem:
        refuse_full_disk(problem, place.scratch)
        error = place.mask(f"the script's workspace: {problem}")
        return blank.model_copy(update={"error": error})
    output = await run_quiet(argv, cwd=copy.root, env=environment, timeout_seconds=seconds)
    output = CompletedOutput(
        exit_code=output.exit_code,
        stdout=place.mask(output.stdout),
        stderr=place.mask(output.stderr),
        timed_out=output.timed_out,
        start_error=place.mask(output.start_error) if output.start_error else None,
    )
    result = verdict_of(
        output,
        blank,
        timeout_seconds=seconds,
        pass_threshold=pass_threshold,
        workspace=copy.root,
        exit_code_decides=exit_code_decides,
    )
    notes += [*subject.notes, *copy.notes(), *result.notes]
    return result.model_copy(update={"notes": notes})


def _prepare(
    path: str, subject: JudgedPart, read_file: ReadFile, place: JudgePlace
) -> tuple[tuple[str, ...], WorkspaceCopy, dict[str, str], list[str]]:
    """Command, workspace, environment, notes."""
    place.scratch.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="script-", dir=place.scratch)).resolve()
    script, notes = _find_script(path, subject, read_file, place.suite_root, scratch)
    copy = copy_of(subject.files, read_file, scratch / "workspace")
    environment = _environment(
        subject, copy, place.environment, place.suite_root, scratch, place.mask
    )
    return command_of(script), copy, environment, notes


def _find_script(
    path: str, subject: JudgedPart, read_file: ReadFile, suite_root: Path, scratch: Path
) -> tuple[Path, list[str]]:
    """The script as it was when the record was made, and what to note.

    It is run where it lies if it is still the same, else from a copy below `scratch`.
    """
    kept, own = subject.record.references.get(path), suite_root / path
    if kept is None:
        return own, []
    try:
        present = own.read_bytes() if own.is_file() else None
    except OSError:
        present = None
    if present is not None and hashlib.sha256(present).hexdigest() == kept.sha256:
        return own, []
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
    changed = f"{path} has changed since; the copy kept with the record was run"
    return copy, [changed] if present is not None else []


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


def _environment(
    subject: JudgedPart,
    copy: WorkspaceCopy,
    user_environment: Mapping[str, str],
    suite_root: Path,
    scratch: Path,
    mask: Callable[[str], str],
) -> dict[str, str]:
    """The whole environment; writes the files that it names below `scratch`."""
    home, files = scratch / "home", scratch / "record"
    home.mkdir()
    files.mkdir()
    record, last = subject.record, subject.last
    transcript = as_json(subject.turns, record.history)
    markdown = "\n".join(as_markdown(subject.turns, record.history))
    variables: dict[str, str] = {}
    for name, file, text in (
        ("EVAL_TRANSCRIPT_PATH", "transcript.json", transcript),
        ("EVAL_TRANSCRIPT_MARKDOWN_PATH", "transcript.md", markdown),
        ("EVAL_FINAL_MESSAGE_PATH", "final_message.txt", last.response),
        ("EVAL_RECORD_PATH", "record.json", record.model_dump_json()),
    ):
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


# What it said: an exit code, and perhaps a JSON object.

_KEYS = frozenset({"score", "pass", "passed", "assertions", "details"})
_NAMES = ("name", "text", "id", "criterion", "assertion")
_REASONS = ("reason", "evidence", "message", "found")
_CANNOT_RUN = {126: "it may not be executed", 127: "a command was not found"}
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_MOST_STARTS = 100
# `[ok] …` and `[1/3] …` are ways to write a log.
_LIST = re.compile(r"""^[ \t]*\[\s*(?:[\[{"']|\d+\s*[,\]]|\]|$)""", re.MULTILINE)
_VERDICT = re.compile(
    r"""\{[^{}]*?["'](?:score|pass|passed|assertions|details|verdict)["']\s*:""", re.IGNORECASE
)
_FRAME = re.compile(r'^ +File "(.*?)", line \d+', re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"
_CRASHED = re.compile(
    r"^(?:Traceback \(most recent call last\):|(?:Syntax|Indentation|Tab)Error: )", re.MULTILINE
)


def verdict_of(
    output: CompletedOutput,
    blank: CheckResult,
    *,
    timeout_seconds: float,
    pass_threshold: float = 1.0,
    workspace: Path = Path("/nowhere"),
    exit_code_decides: bool = False,
) -> CheckResult:
    """`blank` with what the output means; a score without `pass` passes from the threshold on.

    `workspace` is where the script ran: it holds the programs of the agent. Where the exit code
    decides, a script that started has a verdict, however it ended.
    """
    code = output.exit_code
    evidence = shortened(_readable(output.stdout), _EVIDENCE_CHARACTERS)
    complaint = shortened(_readable(output.stderr), _EVIDENCE_CHARACTERS)
    result: dict[str, Any] = {"found": evidence or complaint or f"exit code {code}"}
    try:
        if exit_code_decides and output.start_error is None:
            how = f"exit code {code}"
            if output.timed_out:
                how = f"the script did not end within {timeout_seconds:g} s"
            words = evidence or complaint
            result["passed"] = code == 0 and not output.timed_out
            result["found"] = f"{how}: {words}" if words else how
        else:
            _refuse_no_verdict(output, timeout_seconds, workspace, complaint or evidence)
            result["passed"] = code == 0
            if (printed := printed_verdict(output.stdout)) is not None:
                result = _from_json(printed, pass_threshold, blank)
                if result["passed"] and code != 0:
                    found = f"exit code {code}: {result['found']}"
                    result |= {"passed": False, "score": 0.0, "found": found}
        result.setdefault("score", float(result["passed"]))
    except NoVerdictError as wrong:
        result = {"error": _readable(str(wrong)), "found": evidence}
    notes = [f"stderr: {complaint}"] if complaint else []
    return blank.model_copy(update={**result, "notes": notes})


def _refuse_no_verdict(
    output: CompletedOutput, seconds: float, workspace: Path, words: str
) -> None:
    """Raises NoVerdictError for a script that did not come to one."""
    code, problem = output.exit_code, None
    if output.start_error is not None:
        problem = f"the script did not start: {output.start_error}"
    elif output.timed_out:
        problem = (
            f"the script did not end within {seconds:g} s, and was ended; raise `timeout_seconds`"
        )
    elif code is None:
        problem = "the script was ended by a signal, or printed more than is allowed"
    elif code in _CANNOT_RUN:
        problem = f"the script ended with code {code} ({_CANNOT_RUN[code]})"
    elif code >= 128:
        problem = f"a signal ended the script's work (exit code {code})"
    elif code == 1 and (crash := _crash(output.stderr, workspace)):
        problem = f"the script crashed ({shortened(_readable(crash), 200)})"
    if problem is not None:
        raise NoVerdictError(f"{problem}: {words}" if words else problem)


def _crash(stderr: str, workspace: Path) -> str | None:
    """What Python reports of its end; None: it did not crash.

    That a program in `workspace`, which is the agent's work, crashed is the script's finding.
    """
    if not _CRASHED.search(stderr):
        return None
    report = stderr[max(stderr.rfind(_TRACEBACK), 0) :]
    first = _FRAME.search(report)
    # <stdin>, <string> are words of the script itself.
    if first is None or (
        first[1][:1] != "<" and (workspace / first[1]).resolve().is_relative_to(workspace)
    ):
        return None
    return report.strip().rsplit("\n", 1)[-1]


def printed_verdict(stdout: str) -> dict[str, Any] | None:
    """The object that is all of the output, or its end from the start of a line on; None: prose.

    Raises NoVerdictError for anything that looks like JSON and is not one such object.
    """
    text = bare(stdout)
    starts = [match.start() for match in _OBJECT.finditer(text)]
    why = "it is not one object"
    for start in dict.fromkeys([*starts[:1], *starts[-_MOST_STARTS:]]):
        try:
            value = strict_json(text[start:])
        except DoubtfulJsonError as doubt:
            why = str(doubt)
            continue
        if _KEYS.isdisjoint(value):
            why = "it has none of `score`, `pass`, `assertions`"
            continue
        if _VERDICT.search(text, 0, start):
            raise NoVerdictError(f"the script printed more than one verdict: {_shown(text)}")
        return dict(value)
    if starts or _LIST.search(text) or _VERDICT.search(text):
        what = "the script printed what cannot be understood as a verdict"
        raise NoVerdictError(f"{what} ({why}): {_shown(text)}")
    return None


def _from_json(
    printed: dict[str, Any], pass_threshold: float, blank: CheckResult
) -> dict[str, Any]:
    """The fields of the result. Raises NoVerdictError."""
    strange = [key for key in printed if key not in _KEYS and key.lower() in _KEYS]
    if strange:
        raise _unreadable(f"`{strange[0]}`, which is written `{strange[0].lower()}`")
    parts = _same(printed, "assertions", "details")
    if not isinstance(parts, list | None):
        raise _unreadable("`assertions` that are no list")
    children = [_child(n, part, blank) for n, part in enumerate(parts or (), start=1)]
    passed, score = _passed(printed), _score(printed)
    if score is None and passed is None:
        if not children:
            raise _unreadable("a verdict with neither `score` nor `pass` nor any `assertions`")
        passed = all(child.passed for child in children)
    if score is None:
        score = sum(c.score for c in children) / len(children) if children else float(bool(passed))
    if passed is None:
        passed = score >= pass_threshold
    found = _reason(printed) or f"score {score:g}"
    return {"passed": passed, "score": score, "found": found, "children": children}


def _child(number: int, part: Any, blank: CheckResult) -> CheckResult:
    if not isinstance(part, dict):
        raise _unreadable(f"an assertion that is no object: {_shown(repr(part))}")
    passed, score = _passed(part), _score(part)
    if passed is None and score is None:
        raise _unreadable(f"an assertion (number {number}) with neither `pass` nor `score`")
    if passed is None:
        passed = score is not None and score >= 1.0
    return CheckResult(
        name=_readable(
            next((str(part[key]) for key in _NAMES if part.get(key)), f"assertion {number}")
        ),
        kind="script",
        passed=passed,
        score=float(passed) if score is None else score,
        scope=blank.scope,
        role=blank.role,
        found=_reason(part),
    )


def _same(printed: dict[str, Any], name: str, other: str) -> Any:
    """The value of a key that has two names; None: neither is there, or null."""
    given = [printed[key] for key in (name, other) if printed.get(key) is not None]
    if len(given) == 2 and given[0] != given[1]:
        raise _unreadable(f"`{name}` and `{other}` that say different things")
    return given[0] if given else None


def _passed(printed: dict[str, Any]) -> bool | None:
    value = _same(printed, "pass", "passed")
    if not isinstance(value, bool | None):
        raise _unreadable(f"`pass` that is neither true nor false: {_shown(repr(value))}")
    return value


def _score(printed: dict[str, Any]) -> float | None:
    value = printed.get("score")
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # In this order: isfinite() cannot take integers beyond the range of floats.
    if not number or not 0 <= value <= 1 or not math.isfinite(value):
        raise _unreadable(f"a `score` that is no number from 0 to 1: {_shown(repr(value))}")
    return float(value)


def _reason(printed: dict[str, Any]) -> str:
    reason = next((printed[key] for key in _REASONS if printed.get(key)), "")
    text = reason if isinstance(reason, str) else json.dumps(reason, ensure_ascii=False)
    return shortened(_readable(text), _EVIDENCE_CHARACTERS)


def _unreadable(what: str) -> NoVerdictError:
    return NoVerdictError(f"the script printed {what}")


def _shown(text: str) -> str:
    return shortened(_readable(text), 200)


def _readable(text: str) -> str:
    """Without what could steer a terminal."""
    unknown = "\N{REPLACEMENT CHARACTER}"
    return "".join(c if c.isprintable() or c in "\n\t" else unknown for c in text)
