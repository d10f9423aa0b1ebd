"""How trials branch: their forks, put together into one tree of shared turns and of trials.

A fork is journalled in the name of the first trial that goes on, so that the forks alone make that
trial look like the parent of its siblings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.reports.page.progress import Fork

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
