"""What a person reads in pytest's output of a case that did not pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skillup.checks.describe import beside_found
from skillup.reports.text import one_line, plain
from skillup.schema.grade import CheckResult, Grade, TurnGrade

_MESSAGE_CHARACTERS = 600
_ANSWER_CHARACTERS = 1200
_EVIDENCE_CHARACTERS = 2000


def failure_text(grade: Grade, record: str) -> str:
    """Of a FAIL: its reason, the turns with their checks, and where the `record` is."""
    return plain("\n".join([one_line(grade.reason, 300), "", *_turns(grade), f"record: {record}"]))


def error_text(grade: Grade, record: str) -> str:
    """Of an ERROR: what kept it from being run or judged, the evidence, and the record's place."""
    error = grade.error or {}
    kind, message = error.get("kind", "error"), error.get("message") or grade.reason
    lines = [f"{kind}: {message}", ""]
    evidence = str(error.get("evidence") or "")
    if evidence:
        lines += ["evidence:", *_lines(evidence, _EVIDENCE_CHARACTERS, "  ")]
    return plain("\n".join([*lines, *_turns(grade), f"record: {record}"]))


def _failed(grade: Grade, checks: Iterable[CheckResult]) -> list[CheckResult]:
    """Those that failed; of an ERROR, of which that says nothing, those not judged."""
    if grade.status == "ERROR":
        return [check for check in checks if check.error]
    return [check for check in checks if not check.passed and check.evaluated]


def _turns(grade: Grade) -> Iterator[str]:
    for turn in grade.turns:
        yield from _turn(turn, _failed(grade, turn.deciding_checks()))
    failed = _failed(grade, grade.assertions)
    if failed:
        yield "the whole conversation:"
        for check in failed:
            yield from _check(check, "  ")
    yield from (f"warning: {warning}" for warning in grade.warnings)


def _turn(turn: TurnGrade, failed: list[CheckResult]) -> Iterator[str]:
    """A turn with nothing to show is one line; in others the conversation is shown."""
    head = f"turn {turn.turn_number}"
    if turn.status == "skipped":
        yield f"{head}: skipped{f' ({one_line(turn.reason)})' if turn.reason else ''}"
        return
    if turn.status == "completed" and not failed:
        yield f"{head}: ok: {one_line(turn.content)}"
        return
    yield f"{head}: {turn.status if turn.status != 'completed' else 'not as it should be'}"
    messages = [("user", turn.content, turn.response)]
    messages += [(one.label, one.content, one.response) for one in turn.follow_ups]
    for who, message, answer in messages:
        yield f"  {who}:"
        yield from _lines(message, _MESSAGE_CHARACTERS, "    ")
        yield "  answer:"
        yield from _lines(answer or "(nothing)", _ANSWER_CHARACTERS, "    ")
    if turn.error is not None:
        yield f"  {turn.error['kind']}: {turn.error['message']}"
    for check in failed:
        yield from _check(check, "  ")


def _check(check: CheckResult, margin: str) -> Iterator[str]:
    role = "" if check.role == "assertion" else f" ({check.role.replace('_', '-')})"
    yield f"{margin}✗ {one_line(check.name, 200)}{role}"
    parts = {
        "error": check.error or "",
        "expected": check.expected,
        "found": beside_found(check.found),
        "excerpt": check.excerpt,
    }
    for word, text in parts.items():
        first, *rest = [*_lines(text, _MESSAGE_CHARACTERS, "")] or [""]
        if text:
            yield f"{margin}    {word + ':':<9} {first}"
            yield from (f"{margin}              {line}" for line in rest)
    for child in check.children:
        if not child.passed:
            yield from _check(child, margin + "    ")


def _lines(text: str, width: int, margin: str) -> Iterator[str]:
    if len(text) > width:
        text = f"{text[:width]}… ({len(text)} characters in all)"
    return (margin + line for line in text.splitlines())
