"""What a run is compared with: a run that was named, one that was pinned, or the nights before it.

A night is any indexed run. Runs of other repositories and branches are none of its past.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from zlib import crc32

from skillup.dataclass import frozen
from skillup.errors import UsageError
from skillup.history import index
from skillup.history.runs import CaseKey, RunOutcomes, by_case

NIGHTS = 60
"""The newest so many are read, and some more: more than a case's reference is of."""
_EARLIER, _FROM = 12, 24
"""Before them one of so many is, so that a case that got worse then stays red: always the same
ones, and from always the same nights on, or each night would be one more look at the past."""
_OLDEST = 360
"""How many runs of a branch are gone back for that, and where most are of a few cases."""
_DEFAULT_BRANCHES = ("main", "master")
PIN = ""  # The subject of a mark that is a pin
LABEL = "label:"  # Begins the scope of what is marked for a label; no branch is called so
Since = tuple[str, str]
"""When a run began, and its id: by it runs are ordered."""


@frozen
class Reference:
    """With what a run is compared; with nothing, in a first night."""

    nights: tuple[RunOutcomes, ...]  # The oldest first
    why: str
    """``the last 12 nights on main``, ``pinned for main``, ``named``; or why there is no night."""
    accepted: Mapping[CaseKey, str] = field(default_factory=dict)
    """By case the run with which its reference begins anew: of the nights, or the run itself."""
    pinned: RunOutcomes | None = None
    """What it has a verdict on is compared with it alone, unless it was accepted later."""


def reference_for(
    b: RunOutcomes,
    url: str,
    runs_folder: Path,
    *,
    baseline: str | None = None,
    branch: str | None = None,
) -> Reference:
    """What to compare `b` with.

    The run `baseline`, if it is given (`previous`: the last of the nights); else the newest nights
    before it, of the same selection, on its branch, and on the target or default branch before that
    had any. Of a pull request they are the target's. Those with uncommitted changes only count if
    `b` has some, too. If a run is pinned for the label or branch of `b`, then that and the nights.
    `branch`: those of that branch alone. Raises UsageError, RunDirectoryError, IndexTroubleError.
    """
    if baseline not in (None, index.PREVIOUS):
        named = index.find_run(str(baseline), url, runs_folder, b.about.repository)
        if started(named) == started(b):
            what = f"{named.run_id} is the run that is to be compared with it"
            raise UsageError(what, hint="name another one, or none")
        return Reference((named,), "named")
    branches = [branch] if branch is not None else _branches(b)
    with index.open_index(url, write=False) as execute:
        rows = index.indexed_runs(execute, b.about.repository)
        marked = index.marks(execute, b.about.repository)
        before = [row for row in rows if started(row) < started(b)]
        nights = list(_nights(execute, b, before, branches))[::-1]
        scopes = [LABEL + b.about.label, *branches] if b.about.label else branches
        scope = next((s for s in scopes if marked.get((s, PIN), b.run_id) != b.run_id), None)
        pinned = None
        if scope is not None and baseline is None:
            pinned = _pinned(execute, marked[scope, PIN], rows)
    if baseline == index.PREVIOUS and nights:
        return Reference((nights[-1],), "the run before")
    why = _in_words(nights) if nights else _why_none(len(before), branches)
    since: dict[CaseKey, Since] = {}
    if pinned is not None:
        others = [run for run in nights if run.run_id != pinned.run_id]
        # A pinned run may be newer than `b`, which is always the last.
        nights = sorted([*others, pinned], key=started)
        since = {key: started(pinned) for key, own in by_case(pinned.trials).items() if own.judged}
        why = f"pinned for {scope}" if scope else "pinned"
    for key, accepted in accepted_since(marked, branches, rows).items():
        if since.get(key, ("", "")) < accepted <= started(b):
            since[key] = accepted
    return Reference(tuple(nights), why, begins([*nights, b], since), pinned)


def begins(runs: Sequence[RunOutcomes], since: Mapping[CaseKey, Since]) -> dict[CaseKey, str]:
    """By case, the first of `runs`, the oldest first, that began no earlier; none, if all did."""
    return {
        key: run.run_id
        for key, first in since.items()
        if (run := next((run for run in runs if started(run) >= first), None))
    }


def _in_words(nights: Sequence[RunOutcomes]) -> str:
    many = "the last night" if len(nights) == 1 else f"the last {len(nights)} nights"
    on = " and ".join(filter(None, dict.fromkeys(run.about.branch for run in nights[::-1])))
    return f"{many} on {on}" if on else many


def _why_none(runs: int, branches: Sequence[str]) -> str:
    """Why none of the repository's earlier `runs` is a night; nothing, if there is none."""
    on = " and ".join(filter(None, branches)) or "no branch"
    return (
        f"of {runs} earlier runs of this repository none was on {on}, without uncommitted changes, "
        "and with at least half of these cases on the same engine"
        if runs
        else ""
    )


def _branches(b: RunOutcomes) -> list[str]:
    """Whose nights are its past, the own ones first."""
    about = b.about
    if not about.target_branch and about.branch in _DEFAULT_BRANCHES:
        return [about.branch]
    return list(dict.fromkeys([about.target_branch or about.branch, *_DEFAULT_BRANCHES]))


def _nights(
    execute: index.Execute,
    b: RunOutcomes,
    before: Sequence[index.IndexedRun],
    branches: Sequence[str],
) -> Iterator[RunOutcomes]:
    """The newest first: those on the first branch that has any and, if that is its own, on the next
    one that has any before them.
    """
    found = passed_by = 0
    reading = NightSample()
    own = b.about.branch
    for branch in branches:
        begun = found
        for row in reversed(before):
            if row.branch != branch or passed_by == _OLDEST:
                continue
            passed_by += 1
            if not reading.takes(row.run_id, found):
                continue
            run = index.outcomes_of(execute, row.run_id)
            if is_comparable(run, b) and (b.about.dirty or not run.about.dirty):
                found += 1
                yield run
                oldest = row
        if found > begun:
            if branch != own:
                return
            before = before[: before.index(oldest)]


class NightSample:
    """Which nights are read, the newest asked for first."""

    def __init__(self) -> None:
        self._all = True

    def takes(self, run_id: str, newer: int) -> bool:
        """`newer`: how many were asked for before it."""
        mark = crc32(run_id.encode())
        if newer >= NIGHTS and mark % _FROM == 0:
            self._all = False
        return self._all or mark % _EARLIER == 0


def is_comparable(earlier: RunOutcomes, run: RunOutcomes) -> bool:
    """Whether it was asked for the same, and ran one of its suites on the same engine; or ran at
    least half of its cases there.

    A part of a run is a night for the same part alone, and one whose numbers of trials depended on
    their outcomes for others like it.
    """
    if earlier.shard != run.shard or (earlier.until_decided and not run.until_decided):
        return False
    if run.selection_key and earlier.selection_key == run.selection_key:
        own, others = ({(suite, engine) for suite, _, engine in r.cases} for r in (run, earlier))
        return bool(own & others)
    return bool(run.cases) and 2 * len(run.cases & earlier.cases) >= len(run.cases)


def started(run: RunOutcomes | index.IndexedRun) -> Since:
    return run.started_at, run.run_id


# What somebody has pinned and accepted.


def pin(url: str, repository: str, scope: str, run_id: str | None) -> None:
    """For a branch, or :data:`LABEL` with a label; None: no run any more. What was accepted on the
    branch before a run is pinned is forgotten: that run says now what its cases are to do.
    """
    given: dict[tuple[str, str], str | None] = {}
    if run_id is not None:
        with index.open_index(url, write=False) as execute:
            given = {mark: None for mark in index.marks(execute, repository) if mark[0] == scope}
    index.set_marks(url, repository, {**given, (scope, PIN): run_id})


def accept(url: str, run: RunOutcomes, keys: Sequence[CaseKey]) -> None:
    """Let the references of these cases begin anew with `run`, on its branch."""
    given = {(run.about.branch, json.dumps(key)): run.run_id for key in keys}
    index.set_marks(url, run.about.repository, given)


def accepted_since(
    marked: Mapping[tuple[str, str], str], branches: Sequence[str], rows: Sequence[index.IndexedRun]
) -> dict[CaseKey, Since]:
    """By case, the newest run from which on it was accepted on one of `branches`."""
    orders = {row.run_id: started(row) for row in rows}
    found: dict[CaseKey, Since] = {}
    for (scope, subject), run_id in marked.items():
        if subject != PIN and scope in branches and run_id in orders:
            key = CaseKey(*json.loads(subject))
            found[key] = max(found.get(key, ("", "")), orders[run_id])
    return found


def _pinned(execute: index.Execute, run_id: str, rows: Sequence[index.IndexedRun]) -> RunOutcomes:
    if not any(row.run_id == run_id for row in rows):
        hint = "pin another with `skillup baseline set`, or none with `skillup baseline clear`"
        raise UsageError(f"the pinned run {run_id} is not in the index any more", hint=hint)
    return index.outcomes_of(execute, run_id)
