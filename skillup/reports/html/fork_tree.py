"""Trials that share turns, as trees: which turns they share, and where each goes its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.reports.html.progress import Fork

# How trials branch: their forks, put together into one tree of shared turns and of trials.

_Group = tuple[str, int]
"""Turns up to a number, held in the name of a trial."""


def shape_of(forks: Mapping[str, Fork], case_of: Mapping[str, str]) -> dict[str, Any]:
    """The tree of the trials of `case_of` (job to case id), which `forks` hold together.

    Nodes are ``{job, name, shared, own_from, children}``. A node without a `job` is turns that are
    shared, ``shared: [first, last]``, and no trial's own; `name` is what the cases below it have in
    common, None if that is no more than what stands above. A trial whose case the ones below
    branch from stands in place of such a node.
    """
    groups: dict[str, set[int]] = {}
    for job in case_of:
        fork = forks.get(job)
        if fork is not None:
            groups.setdefault(fork.parent, set()).add(fork.after_turn)

    def home(job: str) -> _Group | None:
        """What the trial's own turns hang on: the last turns that it shares."""
        own = groups.get(job)
        return (job, max(own)) if own else _forked_from(forks, job)

    def above(group: _Group) -> _Group | None:
        job, count = group
        before = [one for one in groups.get(job, ()) if one < count]
        return (job, max(before)) if before else _forked_from(forks, job)

    inside: dict[_Group | None, list[str | _Group]] = {}
    placed: set[_Group] = set()
    for job in case_of:
        entry: str | _Group = job
        at = home(job)
        inside.setdefault(at, []).append(entry)
        while at is not None and at not in placed:
            placed.add(at)
            entry, at = at, above(at)
            inside.setdefault(at, []).append(entry)

    def node(entry: str | _Group, start: int, named: str | None) -> dict[str, Any]:
        if isinstance(entry, str):
            return _node(entry, case_of[entry], None, start, [])
        count = entry[1]
        members = inside[entry]
        name = _common([case_of[job] for job in _jobs(entry, inside)])
        head = next((m for m in members if isinstance(m, str) and case_of[m] == name), None)
        below = [node(one, count + 1, name) for one in members if one != head]
        if head is not None:
            return _node(head, name, [start, count], start, below)
        return _node(None, name if name != named else None, [start, count], start, below)

    roots = inside[None]
    return node(roots[0], 1, None)


def _node(
    job: str | None,
    name: str | None,
    shared: list[int] | None,
    own_from: int,
    children: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "job": job,
        "name": name or None,
        "shared": shared,
        "own_from": own_from,
        "children": children,
    }


def _forked_from(forks: Mapping[str, Fork], job: str) -> _Group | None:
    fork = forks.get(job)
    return (fork.parent, fork.after_turn) if fork is not None else None


def _jobs(entry: str | _Group, inside: Mapping[_Group | None, Sequence[str | _Group]]) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [job for one in inside[entry] for job in _jobs(one, inside)]


def _common(names: Sequence[str]) -> str:
    """``a/b`` of ``a/b/x`` and ``a/b/y``."""
    parts = [name.split("/") for name in names]
    count = 0
    while all(len(one) > count for one in parts) and len({one[count] for one in parts}) == 1:
        count += 1
    return "/".join(parts[0][:count])


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
