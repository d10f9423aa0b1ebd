"""The judge that is a script: run in a copy of the workspace, on its own, within its time; in a
sandbox, if the trial was in one.

As in skill-up exit code 0 is a pass, another is not, and what it prints is the evidence. Codes by
which a shell says that there was nothing to run, or that a signal ended it, are no verdicts. A
script may also print a JSON object (docs/judges.md), as all of its output or at its end, from the
start of a line. The exit code has the last word against a pass, never for one; nor for a verdict
that cannot be read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import AliasChoices, BaseModel, Field, StrictBool, ValidationError, model_validator

from skillup.engines.environment import clean_variables
from skillup.engines.events import shortened
from skillup.judges import artifacts
from skillup.judges.artifacts import CannotJudgeError, JudgedPart, JudgePlace
from skillup.judges.evaluate import blank_result
from skillup.judges.material import harmless
from skillup.judges.question import MalformedAnswerError, Number, bare, strict_json, what_is_wrong
from skillup.process.run import CompletedOutput, run_quiet
from skillup.sandbox.base import NO_BOX, BoxPlan, NoBoxError, installation
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.workspace.disk import refuse_full_disk

DEFAULT_SECONDS = 30.0
_SHELLS = {".sh": "/bin/sh", ".bash": "bash"}
_LONGEST_VALUE_BYTES = 96 << 10  # No program starts with a variable of over 128 KiB
_EVIDENCE_CHARACTERS = 2_000


async def judge_by_script(
    part: JudgedPart, place: JudgePlace, blank: CheckResult, judge: JudgeConfig
) -> CheckResult:
    """`blank` with the verdict of the judge's script, or the `error` that kept it from one."""
    if part.nothing is not None:
        return blank.model_copy(update=part.nothing)
    if place.models.answers.preview is not None:
        return blank.model_copy(update={"error": "it was not run"})
    seconds, path = judge.timeout_seconds or DEFAULT_SECONDS, judge.script_path or ""
    mask = place.models.mask

    def prepare() -> tuple[tuple[str, ...], Path, dict[str, str], list[str], BoxPlan]:
        scratch = place.new_directory("script-")
        script, notes = _find_script(path, part, place.suite_root, scratch)
        workspace = scratch / "workspace"
        lacks = artifacts.copy_of(part.files, part.read_file, workspace)
        environment = _environment(part, lacks[artifacts.TOO_LARGE], place, scratch)
        argv = command_of(script)
        plan = BoxPlan(
            writable=[workspace, scratch / "home"],
            temporary=Path(environment["TMPDIR"]),
            # What it is made of, and its material; a Python has its packages.
            readable=[
                *(scratch / "record", script),
                *filter(Path.is_dir, (place.suite_root.absolute(), scratch / "script")),
            ],
            programs=[Path(sys.prefix), *installation(argv, environment)],
        )
        return argv, workspace, environment, [*notes, *part.notes, *artifacts.notes_on(lacks)], plan

    try:
        argv, workspace, environment, notes, plan = await anyio.to_thread.run_sync(prepare)
        box = NO_BOX
        if part.record.sandbox is not None:
            from skillup.sandbox.opening import reopen_box

            box = await reopen_box(part.record.sandbox, plan)
        try:
            output = await run_quiet(
                argv, cwd=workspace, env=environment, timeout_seconds=seconds, run=box.run
            )
        finally:
            await box.close()
    except (CannotJudgeError, NoBoxError) as problem:
        return blank.model_copy(update={"error": mask(str(problem))})
    except OSError as problem:
        refuse_full_disk(problem, place.scratch)
        return blank.model_copy(update={"error": mask(f"the script or its files: {problem}")})
    output = replace(
        output,
        stdout=mask(output.stdout),
        stderr=mask(output.stderr),
        start_error=mask(output.start_error) if output.start_error else None,
    )
    result = verdict_of(output, blank, judge)
    return result.model_copy(update={"notes": [*notes, *result.notes]})


def _find_script(
    path: str, part: JudgedPart, suite_root: Path, scratch: Path
) -> tuple[Path, list[str]]:
    """The script as it was when the record was made, where it lies or copied, and what to note."""
    kept, own = part.record.references.get(path), suite_root / path
    if kept is None:
        return own, []
    present = None
    with suppress(OSError):
        present = own.read_bytes() if own.is_file() else None
    if present is not None and hashlib.sha256(present).hexdigest() == kept.sha256:
        return own, []
    content = part.read_file(kept)
    if content is None:
        what = f"the script {own} is not what it was, and the copy kept with the record is gone"
        fix = "put it back, or judge by what it is now: `skillup judge RUN --cases PATH`"
        raise CannotJudgeError(f"{what}; {fix}")
    copy = scratch / "script" / Path(path).name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    copy.chmod(0o755 if kept.executable else 0o644)
    changed = f"{path} has changed since; the copy kept with the record was run"
    return copy, [changed] if present is not None else []


def command_of(script: Path) -> tuple[str, ...]:
    """How to start it: by its bit, first line or ending. Raises CannotJudgeError, OSError."""
    if not script.is_file():  # a pipe might never end
        raise CannotJudgeError(f"there is no script {script}; correct its path")
    with script.open("rb") as file:
        start = file.read(512)
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
    fix = "begin it with `#!` and its interpreter, such as `#!/bin/sh`"
    raise CannotJudgeError(f"it is not clear how to start the script {script}: {fix}")


def _environment(
    part: JudgedPart, not_kept: Sequence[str], place: JudgePlace, scratch: Path
) -> dict[str, str]:
    """The whole environment; writes the files that it names below `scratch`."""
    home, files, temporary = scratch / "home", scratch / "record", scratch / "tmp"
    for directory in (home, files, temporary):
        directory.mkdir()
    record, last = part.record, part.last
    variables = {"EVAL_WORKSPACE": str(scratch / "workspace"), "EVAL_TURNS": str(len(record.turns))}
    markdown = "\n".join(artifacts.as_markdown(part.exchanges))
    for name, file, text in (
        ("EVAL_TRANSCRIPT_PATH", "transcript.json", artifacts.as_json(part.turns, record.history)),
        ("EVAL_TRANSCRIPT_MARKDOWN_PATH", "transcript.md", markdown),
        ("EVAL_FINAL_MESSAGE_PATH", "final_message.txt", last.response),
        ("EVAL_RECORD_PATH", "record.json", record.model_dump_json()),
    ):
        masked = place.models.mask(text)
        (files / file).write_text(masked, "utf-8", errors="backslashreplace", newline="")
        variables[name] = str(files / file)
    for name, text in (
        ("EVAL_FINAL_MESSAGE", place.models.mask(last.response)),
        ("EVAL_CASE_ID", record.case_id),
        ("EVAL_FILES_NOT_KEPT", "\n".join(not_kept)),
    ):
        # Variables cannot hold NUL, nor very long texts.
        value = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "backslashreplace")
        variables[name] = os.fsdecode(value)
        if len(value) > _LONGEST_VALUE_BYTES:
            variables[name] = value[:_LONGEST_VALUE_BYTES].decode(errors="ignore")
    if last.process is not None and last.process.exit_code is not None:
        variables["EVAL_EXIT_CODE"] = str(last.process.exit_code)
    if part.number is not None:
        variables["EVAL_TURN"] = str(part.number)
    if place.suite_root.is_dir():
        variables["EVAL_SUITE_ROOT"] = str(place.suite_root)
    own = {"HOME": str(home), "TMPDIR": str(temporary)}
    return {**clean_variables(place.models.environment), **own, **variables}


# The verdict: an exit code, and perhaps a JSON object.

_DECIDING = ("pass", "passed", "score", "assertions", "details")
# `[ok] …` and `[1/3] …` are ways to write a log.
_LIKE_JSON = re.compile(
    r"""^(?P<line>[ \t]*(?:\{|\[\s*(?:[\[{"']|\]|$)))"""
    r"""|\{[^{}]*?["'](?:score|pass|passed|assertions|details|verdict)["']\s*:""",
    re.IGNORECASE | re.MULTILINE,
)


class _Verdict(BaseModel):
    passed: StrictBool | None = Field(None, validation_alias=AliasChoices("pass", "passed"))
    score: Annotated[float, Number, Field(ge=0, le=1)] | None = None
    parts: list[_Verdict] | None = Field(
        None, validation_alias=AliasChoices("assertions", "details")
    )
    name: Any = Field("", validation_alias=AliasChoices("name", "text", "id"))
    reason: Any = Field("", validation_alias=AliasChoices("reason", "evidence", "message"))

    @model_validator(mode="before")
    @classmethod
    def _decides(cls, given: Any) -> Any:
        if isinstance(given, dict):
            if all(given.get(key) in (None, []) for key in _DECIDING):
                raise ValueError("neither `score` nor `pass` nor any `assertions`")
            if given.keys() >= {"pass", "passed"} and given["pass"] != given["passed"]:
                raise ValueError("`pass` and `passed` contradict each other")
        return given

    def result(self, blank: CheckResult, threshold: float) -> dict[str, Any]:
        """The fields of `blank` that it gives; a score without `pass` passes from `threshold`."""
        children: list[CheckResult] = []
        for number, part in enumerate(self.parts or [], start=1):
            own = {"name": _shown(part.name or f"assertion {number}"), "scope": blank.scope}
            children.append(blank_result("script", blank.role, **own, **part.result(blank, 1.0)))
        passed, score = self.passed, self.score
        if score is None:
            if passed is None:
                passed = all(child.passed for child in children)
            scores = [child.score for child in children] or [float(passed)]
            score = sum(scores) / len(scores)
        return {
            "passed": score >= threshold if passed is None else passed,
            "score": score,
            "found": _shown(self.reason, _EVIDENCE_CHARACTERS),
            "children": children,
        }


def verdict_of(output: CompletedOutput, blank: CheckResult, judge: JudgeConfig) -> CheckResult:
    """`blank` with what the output means."""
    code, texts = output.exit_code, (output.stdout, output.stderr)
    evidence, complaint = (_shown(text, _EVIDENCE_CHARACTERS) for text in texts)
    notes = [f"stderr: {complaint}"] if complaint else []
    late = f"the script did not end within {judge.timeout_seconds or DEFAULT_SECONDS:g} s"
    passed, problem = code == 0 and not output.timed_out, None
    update: dict[str, Any] = {"passed": passed, "score": float(passed)}
    update["found"] = evidence or complaint or f"exit code {code}"
    if output.start_error is not None:
        problem = f"the script did not start: {output.start_error}"
    elif judge.exit_code_decides:
        how, words = late if output.timed_out else f"exit code {code}", evidence or complaint
        update |= {"found": f"{how}: {words}" if words else how, "notes": notes}
        return blank.model_copy(update=update)
    elif output.timed_out:
        problem = f"{late}, and was ended; raise `timeout_seconds`"
    elif code is None:
        problem = "the script was ended by a signal, or printed more than is allowed"
    elif code in (126, 127) or code >= 128:
        problem = f"exit code {code}: a command of the script was not run, or ended by a signal"
    if problem is not None and (words := complaint or evidence):
        problem = f"{problem}: {words}"
    try:
        if problem is not None:
            raise CannotJudgeError(problem)
        if (printed := _printed(output.stdout)) is not None:
            threshold = 1.0 if judge.pass_threshold is None else judge.pass_threshold
            update = printed.result(blank, threshold)
            update["found"] = update["found"] or f"score {update['score']:g}"
            if update["passed"] and not passed:
                found = f"exit code {code}: {update['found']}"
                update |= {"passed": False, "score": 0.0, "found": found}
    except CannotJudgeError as wrong:
        update = {"error": _shown(str(wrong), 9_000), "found": evidence}
    return blank.model_copy(update={**update, "notes": notes})


def _printed(stdout: str) -> _Verdict | None:
    """The object at the end of the output; None: prose. Raises CannotJudgeError: neither."""
    text = bare(stdout)
    like = _LIKE_JSON.search(text)
    if like is None:
        return None
    try:
        if like["line"] is None:
            raise MalformedAnswerError("it does not begin a line")
        return _Verdict.model_validate(strict_json(text[like.start() :]))
    except MalformedAnswerError as doubt:
        why = str(doubt)
    except ValidationError as error:
        why = what_is_wrong(error)
    what = "the script printed what cannot be understood as a verdict"
    raise CannotJudgeError(f"{what} ({why}): {_shown(text)}")


def _shown(given: Any, longest: int = 200) -> str:
    """In words, shortened, and without what could steer a terminal."""
    if not isinstance(given, str):
        given = "" if given is None else json.dumps(given, ensure_ascii=False)
    return shortened(harmless(given), longest)
