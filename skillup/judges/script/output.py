"""What a script said: its exit code, and what it printed.

As in skill-up 0 is a pass, another code is not, and what it prints is the evidence. Codes by which
a shell says that there was nothing to run, or that a signal ended it, are no verdicts. A script may
also print a JSON object, as all of its output or at its end, from the start of a line on::

    {"score": 0.8, "pass": true, "reason": "…",
     "assertions": [{"name": "…", "pass": true, "score": 1.0, "reason": "…"}]}

One of `score`, `pass` and `assertions` must be there; `passed` and `details` are read, too. The
exit code has the last word against a pass, never for one; nor for a verdict that cannot be read.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.engines.failures import shortened
from skillup.judges.strict_json import BYTE_ORDER_MARK, DoubtfulJsonError, strict_json
from skillup.process import CompletedOutput
from skillup.schema.grade import CheckResult

# The JSON object that a script gives as its verdict: found, or seen to be unreadable.

VERDICT_KEYS = frozenset({"score", "pass", "passed", "assertions", "details"})

_EXCERPT_CHARACTERS = 200
_MOST_STARTS = 200
_OBJECT_STARTS = re.compile(r"^\{", re.MULTILINE)
# `[ok] …` and `[1/3] …` are ways to write a log.
_LOOKS_LIKE_JSON = re.compile(r"""\{|\[\s*(?:[\[{"']|$)""")
_LOOKS_LIKE_VERDICT = re.compile(
    r"""\{[^{}]*?["'](?:score|pass|passed|assertions|details|verdict)["']\s*:""", re.IGNORECASE
)


class NoVerdictError(Exception):
    """The script printed a verdict that cannot be read; the message says what is wrong with it."""


def printed_verdict(stdout: str) -> dict[str, Any] | None:
    """The object that is all of the output, or its end from the start of a line on; None: prose.

    Raises NoVerdictError for anything that looks like JSON and is not one such object.
    """
    text = stdout.strip().lstrip(BYTE_ORDER_MARK).strip()
    for start in _starts(text):
        try:
            value = strict_json(text[start:])
        except DoubtfulJsonError:
            continue
        if isinstance(value, dict) and not VERDICT_KEYS.isdisjoint(value):
            if _LOOKS_LIKE_VERDICT.search(text, 0, start):
                raise NoVerdictError(f"more than one verdict: {_excerpt(text)}")
            return value
    if not _looks_like_json(text):
        return None
    raise NoVerdictError(f"what cannot be understood as a verdict ({_why(text)}): {_excerpt(text)}")


def _starts(text: str) -> list[int]:
    """Where an object may begin that goes on to the end, the longest first."""
    if not text.endswith("}"):
        return []
    starts = [match.start() for match in _OBJECT_STARTS.finditer(text)]
    last_line = text.rfind("\n") + 1
    last_line += len(text[last_line:]) - len(text[last_line:].lstrip())
    return sorted({*starts[:1], *starts[-_MOST_STARTS:], last_line})


def _looks_like_json(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    return (
        any(_LOOKS_LIKE_JSON.match(line) for line in lines)
        or _LOOKS_LIKE_VERDICT.search(text) is not None
        or (text.startswith("[") and _parses(text))
    )


def _parses(text: str) -> bool:
    try:
        strict_json(text)
    except DoubtfulJsonError:
        return False
    return True


def _why(text: str) -> str:
    try:
        value = strict_json(text)
    except DoubtfulJsonError as doubt:
        return str(doubt)
    if not isinstance(value, dict):
        return "it is not one object"
    return "it has none of `score`, `pass`, `assertions`"


def _excerpt(text: str) -> str:
    return shortened(text, _EXCERPT_CHARACTERS)


# Whether a script broke down instead of judging: what it says on stderr tells.

_TRACEBACK = "Traceback (most recent call last):"
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ", re.MULTILINE)
_FRAME = re.compile(r'^ +File "(.*?)", line \d+', re.MULTILINE)


def crash_of(exit_code: int, stderr: str, workspace: Path | None) -> str | None:
    """What Python reports of its end; None: it did not crash.

    A program in `workspace`, which the script has run and found broken, is the work of the agent:
    that it crashed is the script's finding.
    """
    if exit_code != 1:
        return None
    at = stderr.rfind(_TRACEBACK)
    if at == -1 and not _SYNTAX.search(stderr):
        return None
    told = stderr[max(at, 0) :]
    first = _FRAME.search(told)
    if first is None or (workspace is not None and _lies_in(first[1], workspace)):
        return None
    return told.strip().rsplit("\n", 1)[-1]


def _lies_in(name: str, workspace: Path) -> bool:
    if name.startswith("<"):  # <stdin>, <string>: words of the script itself
        return False
    return (workspace / name).resolve().is_relative_to(workspace.resolve())


_CANNOT_RUN = {126: "it may not be executed", 127: "a command was not found"}
_EVIDENCE_CHARACTERS = 2000
_NAMES = ("name", "text", "id", "criterion", "assertion")
_REASONS = ("reason", "evidence", "message", "found")


@dataclass(frozen=True, slots=True)
class ScriptVerdict:
    """What a script came to, or why it came to nothing."""

    passed: bool = False
    score: float = 0.0
    found: str = ""
    error: str | None = None
    children: tuple[CheckResult, ...] = ()
    notes: tuple[str, ...] = ()


def verdict_of(
    output: CompletedOutput,
    *,
    timeout_seconds: float,
    pass_threshold: float,
    workspace: Path | None = None,
    exit_code_decides: bool = False,
) -> ScriptVerdict:
    """What the output means; a score without `pass` passes from `pass_threshold` on.

    `workspace` is where the script ran: it holds the programs of the agent. Where the exit code
    decides, a script that started has a verdict, however it ended.
    """
    said = shortened(_readable(output.stdout), _EVIDENCE_CHARACTERS)
    complaint = shortened(_readable(output.stderr), _EVIDENCE_CHARACTERS)
    notes = (f"stderr: {complaint}",) if complaint else ()
    if exit_code_decides and output.start_error is None:
        passed = output.exit_code == 0 and not output.timed_out
        how = f"exit code {output.exit_code}"
        if output.timed_out:
            how = f"the script did not end within {timeout_seconds:g} s"
        found = f"{how}: {said or complaint}" if said or complaint else how
        return ScriptVerdict(passed, float(passed), found, notes=notes)
    problem = _problem(output, timeout_seconds, workspace)
    if problem is not None:
        words = complaint or said
        return ScriptVerdict(error=f"{problem}: {words}" if words else problem, notes=notes)
    good = output.exit_code == 0
    try:
        told = printed_verdict(output.stdout)
        if told is None:
            found = said or complaint or f"exit code {output.exit_code}"
            return ScriptVerdict(good, float(good), found, notes=notes)
        verdict = _from_json(told, pass_threshold)
    except NoVerdictError as wrong:
        error = _readable(f"the script printed {wrong}")
        return ScriptVerdict(error=error, found=said, notes=notes)
    found = verdict.found or f"score {verdict.score:g}"
    if verdict.passed and not good:
        found = f"exit code {output.exit_code}: {found}"
    return ScriptVerdict(
        verdict.passed and good,
        verdict.score if good or not verdict.passed else 0.0,
        found,
        children=verdict.children,
        notes=notes,
    )


def _problem(output: CompletedOutput, timeout_seconds: float, workspace: Path | None) -> str | None:
    """Why there is no verdict; None: there is one."""
    if output.start_error is not None:
        return f"the script did not start: {output.start_error}"
    if output.timed_out:
        return (
            f"the script did not end within {timeout_seconds:g} s, and was ended; "
            "raise `timeout_seconds`"
        )
    if output.exit_code is None:
        return "the script was ended by a signal, or printed more than is allowed"
    if output.exit_code in _CANNOT_RUN:
        return f"the script ended with code {output.exit_code} ({_CANNOT_RUN[output.exit_code]})"
    if output.exit_code >= 128:
        return f"a signal ended the script's work (exit code {output.exit_code})"
    crash = crash_of(output.exit_code, output.stderr, workspace)
    return f"the script crashed ({shortened(_readable(crash), 200)})" if crash else None


def _from_json(told: dict[str, Any], pass_threshold: float) -> ScriptVerdict:
    strange = [key for key in told if key not in VERDICT_KEYS and key.lower() in VERDICT_KEYS]
    if strange:
        raise NoVerdictError(f"`{strange[0]}`, which is written `{strange[0].lower()}`")
    parts = _same(told, "assertions", "details")
    children = tuple(_child(n, part) for n, part in enumerate(_list(parts), start=1))
    passed, score = _passed(told), _score(told)
    if score is None and passed is None and not children:
        raise NoVerdictError("a verdict with neither `score` nor `pass` nor any `assertions`")
    if score is None and passed is None:
        passed = all(child.passed for child in children)
    if score is None:
        shared = sum(child.score for child in children) / len(children) if children else 0.0
        score = shared if children else float(bool(passed))
    if passed is None:
        passed = score >= pass_threshold
    return ScriptVerdict(passed, score, _reason(told), children=children)


def _child(number: int, part: Any) -> CheckResult:
    if not isinstance(part, dict):
        raise NoVerdictError(f"an assertion that is no object: {_shown(part)}")
    passed, score = _passed(part), _score(part)
    if passed is None and score is None:
        raise NoVerdictError(f"an assertion (number {number}) with neither `pass` nor `score`")
    if passed is None:
        passed = score is not None and score >= 1.0
    named = next((str(part[key]) for key in _NAMES if part.get(key)), f"assertion {number}")
    return CheckResult(
        name=_readable(named),
        kind="script",
        passed=passed,
        score=float(passed) if score is None else score,
        found=_reason(part),
    )


def _list(parts: Any) -> list[Any]:
    if parts is None:
        return []
    if not isinstance(parts, list):
        raise NoVerdictError("`assertions` that are no list")
    return parts


def _same(told: dict[str, Any], name: str, other: str) -> Any:
    """The value of a key that has two names; None: neither is there, or null."""
    given = [told[key] for key in (name, other) if told.get(key) is not None]
    if len(given) == 2 and given[0] != given[1]:
        raise NoVerdictError(f"`{name}` and `{other}` that say different things")
    return given[0] if given else None


def _passed(told: dict[str, Any]) -> bool | None:
    value = _same(told, "pass", "passed")
    if value is not None and not isinstance(value, bool):
        raise NoVerdictError(f"`pass` that is neither true nor false: {_shown(value)}")
    return value


def _score(told: dict[str, Any]) -> float | None:
    value = told.get("score")
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # In this order: isfinite() cannot take integers beyond the range of floats.
    if not number or not 0 <= value <= 1 or not math.isfinite(value):
        raise NoVerdictError(f"a `score` that is no number from 0 to 1: {_shown(value)}")
    return float(value)


def _shown(value: Any) -> str:
    return shortened(repr(value), 100)


def _reason(told: dict[str, Any]) -> str:
    said = next((told[key] for key in _REASONS if told.get(key)), "")
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return shortened(_readable(text), _EVIDENCE_CHARACTERS)


def _readable(text: str) -> str:
    """Without what could steer a terminal."""
    unknown = "\N{REPLACEMENT CHARACTER}"
    return "".join(c if c.isprintable() or c in "\n\t" else unknown for c in text)
