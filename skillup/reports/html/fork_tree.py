"""Trials that share turns, as trees: which turns they share, and where each goes its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.reports.html.progress import Fork

_Group = tuple[str, int]
"""Turns up to a number, run in the name of a trial."""
Row = Mapping[str, Any]


class ForkTrees:
    """The forks of a run, for the rows of its page."""

    def __init__(self, forks: Mapping[str, Fork], rows: Sequence[Row]) -> None:
        self._forks = {job: fork for job, fork in forks.items() if not _is_circular(job, forks)}
        self._rows = {row["job"]: row for row in rows}
        self._members: dict[str, list[Row]] = {}
        for row in rows:
            self._members.setdefault(self._root(row["job"]), []).append(row)

    def of(self, job: str, shift: int = 0) -> dict[str, Any] | None:
        """``{of, tree, shape}``; None: the trial shares no turns. `shift` is added to each `n`.

        `tree`: its trials, each with the one in whose name the turns before its fork ran.
        `shape`: how they branch, a node ``{job, name, shared, own_from, children}``. One that is
        no trial (`job` None) is turns that are shared, ``[first, last]``, and no case of its own.
        """
        members = self._members.get(self._root(job), [])
        if len(members) < 2:
            return None
        tree = []
        for row in members:
            fork = self._forks.get(row["job"])
            parent = self._rows.get(fork.parent) if fork is not None else None
            tree.append(
                {
                    **{key: row[key] for key in ("job", "case_id", "trial", "status")},
                    "n": row["n"] + shift,
                    "forks_at": fork.after_turn + 1 if fork is not None else 1,
                    "parent_n": parent["n"] + shift if parent is not None else None,
                }
            )
        own = self._rows[job]
        shape = shape_of(self._forks, {row["job"]: row["case_id"] for row in members})
        return {"of": own["branch_of"] or own["case_id"], "tree": tree, "shape": shape}

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

    def jobs(entry: str | _Group) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [job for one in inside[entry] for job in jobs(one)]

    def node(entry: str | _Group, start: int, named: str | None) -> dict[str, Any]:
        job: str | None = None
        children: list[dict[str, Any]] = []
        if isinstance(entry, str):
            job, name, shared = entry, case_of[entry], None
        else:
            name, shared = _common([case_of[job] for job in jobs(entry)]), [start, entry[1]]
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


def _common(names: Sequence[str]) -> str:
    """``a/b`` of ``a/b/x`` and ``a/b/y``."""
    parts = [name.split("/") for name in names]
    count = 0
    while all(len(one) > count for one in parts) and len({one[count] for one in parts}) == 1:
        count += 1
    return "/".join(parts[0][:count])
