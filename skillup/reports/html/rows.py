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
        **_UNKNOWN,
        **more,
    }
    return cast("PageRow", row)


def running_row(planned: PlannedJob, turn: int | None, doing: str, since: str | None) -> PageRow:
    """A trial that is at `turn`, or at none, and then `doing` something else.

    `since`: when it began. Its turns are judged when it is over.
    """
    done = [{"status": "completed", "ok": None, "unjudged": True} for _ in range((turn or 1) - 1)]
    reason = doing if turn is None else f"turn {turn} is running"
    return plain_row(planned, "RUNNING", reason, turns=done, started_at=since)


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
    """Note in each row whether some trials of its case passed and some failed.

    Not of those without the skill: how the agent wavers by itself is nothing to be fixed.
    """
    seen: dict[tuple[str, ...], set[str]] = {}
    keys = [(row["suite"], row["case_id"], row["engine"], row["variant"]) for row in rows]
    for row, key in zip(rows, keys, strict=True):
        seen.setdefault(key, set()).add(row["status"])
    for row, key in zip(rows, keys, strict=True):
        counted = row["variant"] != BASELINE and row["status"] != "NOT_NEEDED"
        row["flaky"] = counted and {"PASS", "FAIL"} <= seen[key]


# Trials that share turns, as trees: which turns they share, and where each goes its own way.

_Group = tuple[str, int]  # Turns up to a number, run in the name of a trial


class ForkTrees:
    def __init__(self, forks: Mapping[str, Fork], rows: Sequence[PageRow]) -> None:
        # A journal that somebody has edited may go round.
        self._forks = {job: fork for job, fork in forks.items() if _root(job, forks) is not None}
        self._rows = {row["job"]: row for row in rows}
        self._members: dict[str | None, list[PageRow]] = {}
        for row in rows:
            self._members.setdefault(_root(row["job"], self._forks), []).append(row)

    def of(self, job: str, shift: int = 0) -> dict[str, Any] | None:
        """``{of, tree, shape}``; None: the trial shares no turns. `shift` is added to each `n`.

        `tree`: its trials, each with the one in whose name the turns before its fork ran.
        `shape`: how they branch, a node ``{job, name, shared, own_from, children}``. One that is
        no trial (`job` None) is turns that are shared, ``[first, last]``, and no case of its own.
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
        shape = shape_of(self._forks, {row["job"]: row["case_id"] for row in members})
        return {"of": own["branch_of"] or own["case_id"], "tree": tree, "shape": shape}


def _root(job: str, forks: Mapping[str, Fork]) -> str | None:
    """The trial that a chain of forks comes from; None: it goes round."""
    seen = {job}
    while job in forks:
        job = forks[job].parent
        if job in seen:
            return None
        seen.add(job)
    return job


def shape_of(forks: Mapping[str, Fork], case_of: Mapping[str, str]) -> dict[str, Any]:
    """The tree of the trials of `case_of` (job to case id), which `forks` hold together.

    A node's `name` is what the cases below it have in common, None if that is no more than what
    stands above. A trial whose case the ones below branch from stands in place of such a node.
    """
    groups: dict[str, set[int]] = {}
    for job in case_of:
        if job in forks:
            groups.setdefault(forks[job].parent, set()).add(forks[job].after_turn)

    def above(job: str, before: int | None = None) -> _Group | None:
        """The last turns that the trial shares, or those before a number."""
        shared = [n for n in groups.get(job, ()) if before is None or n < before]
        if shared:
            return job, max(shared)
        return (forks[job].parent, forks[job].after_turn) if job in forks else None

    inside: dict[_Group | None, list[str | _Group]] = {}
    placed: set[_Group] = set()
    for job in case_of:
        entry: str | _Group = job
        at = above(job)
        inside.setdefault(at, []).append(entry)
        while at is not None and at not in placed:
            placed.add(at)
            entry, at = at, above(*at)
            inside.setdefault(at, []).append(entry)

    def names(entry: str | _Group) -> list[list[str]]:
        if isinstance(entry, str):
            return [case_of[entry].split("/")]
        return [name for one in inside[entry] for name in names(one)]

    def node(entry: str | _Group, start: int, named: str | None) -> dict[str, Any]:
        job: str | None = None
        shared: list[int] | None = None
        children: list[dict[str, Any]] = []
        if isinstance(entry, str):
            job, name = entry, case_of[entry]
        else:
            parts = names(entry)
            common = [set(level) for level in zip(*parts, strict=False)]
            alike = next((n for n, level in enumerate(common) if len(level) > 1), len(common))
            name, shared = "/".join(parts[0][:alike]), [start, entry[1]]
            same = (m for m in inside[entry] if isinstance(m, str) and case_of[m] == name)
            job = next(same, None)
            children = [node(one, entry[1] + 1, name) for one in inside[entry] if one != job]
            if job is None and name == named:
                name = ""
        return {
            "job": job,
            "name": name or None,
            "shared": shared,
            "own_from": start,
            "children": children,
        }

    return node(inside[None][0], 1, None)
