"""A line of the page's table for each trial, whether it ran or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from skillup.reports.html.page_data import Row
from skillup.reports.html.progress import PlannedJob
from skillup.reports.view_model import row_of, total_tokens
from skillup.schema.grade import BASELINE, Grade, TurnGrade

_FIELDS = (
    *("score", "end", "duration_ms", "cost_usd", "tokens"),
    *("error_kind", "branch_of", "simulator"),
)


def plain_row(planned: PlannedJob, status: str, reason: str, **more: Any) -> Row:
    """A trial without a grade: NOT_HELD, NOT_NEEDED, RUNNING or WAITING."""
    row = {
        "n": planned.n,
        "job": planned.id,
        **planned.key._asdict(),
        "title": planned.title,
        "tags": list(planned.tags),
        "trial": planned.trial,
        "status": status,
        "reason": reason,
        "turns": [],
        "flaky": False,
        **dict.fromkeys(_FIELDS),
        **more,
    }
    return cast("Row", row)


def running_row(planned: PlannedJob, turn: int | None, doing: str, since: str | None) -> Row:
    """A trial that is at `turn`, or at none, and then `doing` something else.

    `since`: when it began. Its turns are judged when it is over.
    """
    done = [{"status": "completed", "ok": None, "unjudged": True} for _ in range((turn or 1) - 1)]
    reason = doing if turn is None else f"turn {turn} is running"
    return plain_row(planned, "RUNNING", reason, turns=done, started_at=since)


def graded_row(planned: PlannedJob, grade: Grade, branch_of: str | None) -> Row:
    """A trial that has ended."""
    row = row_of(grade)
    copied = ("suite", "case_id", "title", "tags", "engine", "variant", "trial", "duration_ms")
    user = grade.simulator
    return plain_row(
        planned,
        grade.status,
        grade.reason,
        **{name: getattr(grade, name) for name in copied},
        score=row.score,
        turns=[{"status": _status(turn, grade), "ok": _is_ok(turn)} for turn in grade.turns],
        end=_end(grade),
        cost_usd=grade.cost_usd,
        tokens=row.tokens,
        error_kind=grade.error.get("kind") if grade.error else None,
        branch_of=branch_of if branch_of != grade.case_id else None,
        simulator=user
        and {
            "messages": user.messages,
            "cost_usd": user.cost_usd,
            "tokens": total_tokens(user.usage),
            "models": user.models,
        },
    )


def mark_flaky(rows: Sequence[Row]) -> None:
    """Note in each row whether some trials of its case passed and some failed.

    Not of those without the skill: how the agent wavers by itself is nothing to be fixed.
    """
    seen: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        seen.setdefault(_key(row), set()).add(row["status"])
    for row in rows:
        counted = row["variant"] != BASELINE and row["status"] != "NOT_NEEDED"
        row["flaky"] = counted and {"PASS", "FAIL"} <= seen[_key(row)]


def _key(row: Row) -> tuple[str, ...]:
    return (row["suite"], row["case_id"], row["engine"], row["variant"])


def _status(turn: TurnGrade, grade: Grade) -> str:
    """A turn whose gate skips the rest of the case is shown as skipped itself: nothing failed."""
    skips = grade.status == "SKIP" and turn.post_condition_passed is False
    return "skipped" if skips and turn.status == "completed" else turn.status


def _is_ok(turn: TurnGrade) -> bool | None:
    """Whether its checks passed; None: it has none, or did not run to its end."""
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
    failed = [check for check in grade.assertions if not check.passed]
    gated = any(turn.post_condition_passed is False for turn in grade.turns)
    if gated and failed and not any(check.assertable for check in failed):
        return None
    return not failed
