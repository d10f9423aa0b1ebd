"""Trials that share turns, as trees: which turns they share, and where each goes its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.reports.page.branching import shape_of
from skillup.reports.page.progress import Fork

Row = Mapping[str, Any]


class Families:
    """The forks of a run, for the rows of its page."""

    def __init__(self, forks: Mapping[str, Fork], rows: Sequence[Row]) -> None:
        self._forks = {job: f for job, f in forks.items() if not _is_circular(job, forks)}
        self._rows = {row["job"]: row for row in rows}
        self._members: dict[str, list[Row]] = {}
        for row in rows:
            self._members.setdefault(self._root(row["job"]), []).append(row)

    def of(self, job: str) -> dict[str, Any] | None:
        """``{of, tree, shape}``; None: the trial shares no turns.

        `tree`: its trials, each with the one in whose name the turns before its fork were held.
        `shape`: how they branch, a node ``{job, name, shared, own_from, children}``. One that is
        no trial (`job` None) is turns that are shared, ``[first, last]``, and no case of its own.
        """
        members = self._members.get(self._root(job), [])
        if len(members) < 2:
            return None
        own = self._rows[job]
        return {
            "of": own["branch_of"] or own["case_id"],
            "tree": [self._node(row) for row in members],
            "shape": shape_of(self._forks, {row["job"]: row["case_id"] for row in members}),
        }

    def _node(self, row: Row) -> dict[str, Any]:
        fork = self._forks.get(row["job"])
        parent = self._rows.get(fork.parent) if fork is not None else None
        return {
            "job": row["job"],
            "n": row["n"],
            "case_id": row["case_id"],
            "trial": row["trial"],
            "status": row["status"],
            "forks_at": fork.after_turn + 1 if fork is not None else 1,
            "parent_n": parent["n"] if parent is not None else None,
        }

    def _root(self, job: str) -> str:
        while job in self._forks:
            job = self._forks[job].parent
        return job


def _is_circular(job: str, forks: Mapping[str, Fork]) -> bool:
    """A journal that somebody has edited may go round."""
    seen = {job}
    while job in forks:
        job = forks[job].parent
        if job in seen:
            return True
        seen.add(job)
    return False
