"""A line of the page's table for each trial, whether it ran or not; and the trees of forks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from skillup.reports.html.page_data import PageRow
from skillup.reports.html.run_files import Fork, PlannedJob
from skillup.reports.view_model import row_of, total_tokens
from skillup.schema.grade import BASELINE, Grade

_UNKNOWN = dict.fromkeys(
    ("score", "end", "duration_ms", "cost_usd", "tokens", "error_kind", "branch_of", "simulator")
)


def plain_row(planned: PlannedJob, status: str, reason: str, **more: Any) -> PageRow:
    """A trial without a grade: NOT_RUN, NOT_NEEDED, RUNNING or WAITING."""
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
        **_UNKNOWN,
        **more,
    }
    return cast("PageRow", row)


def running_row(planned: PlannedJob, turn: int | None, doing: str) -> PageRow:
    """A trial that is at `turn`, or at none, and then `doing` something else."""
    done = [{"status": "completed", "ok": None, "unjudged": True} for _ in range((turn or 1) - 1)]
    reason = doing if turn is None else f"turn {turn} is running"
    return plain_row(planned, "RUNNING", reason, turns=done)


def graded_row(planned: PlannedJob, grade: Grade, branch_of: str | None) -> PageRow:
    row, user = row_of(grade), grade.simulator
    copied = ("suite", "case_id", "title", "tags", "engine", "variant", "trial", "duration_ms")
    turns = []
    for turn in grade.turns:
        checks = turn.deciding_checks()
        ok: bool | None = None  # it has no checks, or did not run to its end
        if turn.status == "failed":
            ok = False
        elif turn.status == "completed" and checks:
            ok = all(check.passed for check in checks)
        # A turn whose gate skips the rest of the case is shown as skipped itself: nothing failed.
        skips = grade.status == "SKIP" and turn.post_condition_passed is False
        status = "skipped" if skips and turn.status == "completed" else turn.status
        turns.append({"status": status, "ok": ok})
    return plain_row(
        planned,
        grade.status,
        grade.reason,
        **{name: getattr(grade, name) for name in copied},
        score=row.score,
        turns=turns,
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


def mark_flaky(rows: Sequence[PageRow]) -> None:
    """Note in each row whether some trials of its case, with the skill, passed and some failed."""
    seen: dict[tuple[str, ...], set[str]] = {}
    keys = [(row["suite"], row["case_id"], row["engine"], row["variant"]) for row in rows]
    for row, key in zip(rows, keys, strict=True):
        seen.setdefault(key, set()).add(row["status"])
    for row, key in zip(rows, keys, strict=True):
        counted = row["variant"] != BASELINE and row["status"] != "NOT_NEEDED"
        row["flaky"] = counted and {"PASS", "FAIL"} <= seen[key]


# Trials that share turns, as trees: which turns they share, and where each goes its own way.


class ForkTrees:
    def __init__(self, forks: Mapping[str, Fork], rows: Sequence[PageRow]) -> None:
        # A journal that somebody has edited may go round.
        self._forks = {job: fork for job, fork in forks.items() if _root(job, forks) is not None}
        self._rows = {row["job"]: row for row in rows}
        self._members: dict[str | None, list[PageRow]] = {}
        for row in rows:
            self._members.setdefault(_root(row["job"], self._forks), []).append(row)

    def of(self, job: str, shift: int = 0) -> dict[str, Any] | None:
        """``{of, tree}``; None: the trial shares no turns. `shift` is added to each `n`.

        `tree`: its trials, each with the one in whose name the turns before its fork ran.
        """
        members = self._members.get(_root(job, self._forks), [])
        if len(members) < 2:
            return None
        tree = []
        for row in members:
            fork = self._forks.get(row["job"])
            parent = self._rows.get(fork.parent) if fork is not None else None
            tree.append(
                {
                    "job": row["job"],
                    "case_id": row["case_id"],
                    "trial": row["trial"],
                    "status": row["status"],
                    "n": row["n"] + shift,
                    "forks_at": fork.after_turn + 1 if fork is not None else 1,
                    "parent_n": parent["n"] + shift if parent is not None else None,
                }
            )
        own = self._rows[job]
        return {"of": own["branch_of"] or own["case_id"], "tree": tree}


def _root(job: str, forks: Mapping[str, Fork]) -> str | None:
    """The trial that a chain of forks comes from; None: it goes round."""
    seen = {job}
    while job in forks:
        job = forks[job].parent
        if job in seen:
            return None
        seen.add(job)
    return job
