"""A line of the page's table for each trial: held, being held, or not held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from skillup.reports.html.advice import error_data
from skillup.reports.html.progress import PlannedJob
from skillup.reports.html.raw_files import RawFiles, TurnLinks
from skillup.schema.grade import BASELINE, Grade, TurnGrade
from skillup.schema.record import Record

Row = dict[str, Any]


def graded_row(planned: PlannedJob, grade: Grade, branch_of: str | None) -> Row:
    """A trial that has ended."""
    verdict = grade.status in ("PASS", "FAIL")
    return {
        **_row(planned, grade.status, grade.reason),
        "suite": grade.suite,
        "case_id": grade.case_id,
        "title": grade.title,
        "tags": grade.tags,
        "engine": grade.engine,
        "variant": grade.variant,
        "trial": grade.trial,
        "score": grade.score if verdict else None,
        "turns": [{"status": _status(turn, grade), "ok": _is_ok(turn)} for turn in grade.turns],
        "end": _end(grade),
        "duration_ms": grade.duration_ms,
        "cost_usd": grade.cost_usd,
        "tokens": _tokens(grade.usage),
        "error_kind": grade.error.get("kind") if grade.error else None,
        "branch_of": branch_of if branch_of != grade.case_id else None,
        "simulator": _simulator(grade),
    }


def running_row(
    planned: PlannedJob,
    turn: int | None,
    doing: str = "being prepared",
    *,
    since: str | None = None,
) -> Row:
    """A trial that is being held: it is at `turn`, or at none, and then `doing` something else.

    `since`: when it was begun. Its turns are judged when it is over.
    """
    row = _row(planned, "RUNNING", doing if turn is None else f"turn {turn} is held")
    held = [{"status": "completed", "ok": None, "unjudged": True} for _ in range((turn or 1) - 1)]
    return {**row, "turns": held, "started_at": since}


def waiting_row(planned: PlannedJob) -> Row:
    """A trial that is still to come, of a run that goes on."""
    return _row(planned, "WAITING", "not started yet")


def not_held_row(planned: PlannedJob, reason: str) -> Row:
    """A trial without a grade."""
    return _row(planned, "NOT_HELD", reason)


def not_needed_row(planned: PlannedJob) -> Row:
    """A trial that `--until-decided` saved: what its case came to stands without it."""
    return _row(planned, "NOT_NEEDED", "its case was decided without it")


def _row(planned: PlannedJob, status: str, reason: str) -> Row:
    return {
        "n": planned.n,
        "job": planned.id,
        "suite": planned.key.suite,
        "case_id": planned.key.case_id,
        "title": planned.title,
        "tags": list(planned.tags),
        "engine": planned.key.engine,
        "variant": planned.key.variant,
        "trial": planned.trial,
        "status": status,
        "score": None,
        "reason": reason,
        "turns": [],
        "end": None,
        "duration_ms": None,
        "cost_usd": None,
        "tokens": None,
        "error_kind": None,
        "branch_of": None,
        "simulator": None,
        "flaky": False,
    }


def mark_flaky(rows: Sequence[Row]) -> None:
    """Say of each row whether some trials of its case passed and some failed.

    Not of those without the skill: how the agent wavers by itself is nothing to be mended.
    """
    seen: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        seen.setdefault(_key(row), set()).add(row["status"])
    for row in rows:
        of_its_case = row["variant"] != BASELINE and row["status"] != "NOT_NEEDED"
        row["flaky"] = of_its_case and {"PASS", "FAIL"} <= seen[_key(row)]


def _key(row: Row) -> tuple[str, ...]:
    return (row["suite"], row["case_id"], row["engine"], row["variant"])


def _status(turn: TurnGrade, grade: Grade) -> str:
    """A turn whose gate skips the rest of the case is shown as skipped itself: nothing failed."""
    skips = grade.status == "SKIP" and turn.post_condition_passed is False
    return "skipped" if skips and turn.status == "completed" else turn.status


def _is_ok(turn: TurnGrade) -> bool | None:
    """Whether its checks passed; None: it has none, or was not held to its end."""
    if turn.status == "failed":
        return False
    checks = turn.deciding_checks()
    if turn.status != "completed" or not checks:
        return None
    return all(check.passed for check in checks)


def _end(grade: Grade) -> bool | None:
    """Whether the checks of the whole conversation passed.

    None: there are none, or no verdict, or a turn's gate kept them from being evaluated.
    """
    if not grade.assertions or grade.status not in ("PASS", "FAIL"):
        return None
    unmet = [check for check in grade.assertions if not check.passed]
    gated = any(turn.post_condition_passed is False for turn in grade.turns)
    if gated and unmet and not any(check.assertable for check in unmet):
        return None
    return not unmet


def _simulator(grade: Grade) -> dict[str, Any] | None:
    """What the simulated user took; None: there was none."""
    user = grade.simulator
    if user is None:
        return None
    return {
        "messages": user.messages,
        "cost_usd": user.cost_usd,
        "tokens": _tokens(user.usage),
        "models": user.models,
    }


def _tokens(usage: Mapping[str, Any] | None) -> int | None:
    """Input and output; None if neither is told."""
    told = [(usage or {}).get(name) for name in ("input_tokens", "output_tokens")]
    known = [count for count in told if isinstance(count, int)]
    return sum(known) if known else None


# Attempts at a trial that were not counted: how each ended, and what was said in it.

_MOST = 1000
"""More than that no trial takes: a larger number stands in a damaged record."""

Turns = Callable[[Record, TurnLinks], list[dict[str, Any]]]


def earlier_attempts(
    raw: RawFiles, job: str, attempt: int, turns_of: Turns
) -> list[dict[str, Any]]:
    """``{attempt, error, reason, turns, raw}`` of each attempt before `attempt`, the first first.

    `error` is of the whole of it, or of the turn that it ended in; without one, `reason` is what
    that turn says. An attempt whose record is damaged has its files alone.
    """
    return [_attempt(raw, job, number, turns_of) for number in range(1, min(attempt, _MOST))]


def _attempt(raw: RawFiles, job: str, number: int, turns_of: Turns) -> dict[str, Any]:
    links, streams = raw.of_attempt(job, number)
    told: dict[str, Any] = {"attempt": number, "error": None, "reason": "", "turns": []}
    try:
        record = Record.model_validate_json(raw.record_of_attempt(job, number))
    except (OSError, ValidationError):
        return {**told, "reason": "its record cannot be read", "raw": links}
    steps = [step for turn in record.turns for step in turn.executed()]
    error = record.error or next((step.error for step in steps if step.error), None)
    reason = next((turn.reason for turn in record.turns if turn.status == "failed"), "")
    told |= {"error": error_data(error), "reason": reason, "turns": turns_of(record, streams)}
    return {**told, "raw": links}
