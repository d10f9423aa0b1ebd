"""What a run is compared with: a run that was named, one that was pinned, or the nights before it.

A night is any indexed run. Runs of other repositories and branches are none of its past.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from skillup.errors import UsageError
from skillup.frozen import frozen
from skillup.history.index import (
    PREVIOUS,
    Execute,
    IndexedRun,
    find_run,
    indexed_runs,
    marks,
    open_index,
    outcomes_of,
    set_marks,
)
from skillup.history.runs import CaseKey, RunOutcomes

NIGHTS = 60
"""The newest so many are read: more than a case's reference is of."""
_EARLIER = 12
"""Before them every twelfth run is, so that a case that got worse then stays red."""
_OLDEST = 360
"""How many runs of a branch are gone back for that, and where most are of a few cases."""
_DEFAULT_BRANCHES = ("main", "master")
PIN = ""  # The subject of a mark that is a pin
LABEL = "label:"  # Begins the scope of what is marked for a label; no branch is called so


@frozen
class Reference:
    """With what a run is compared."""

    nights: tuple[RunOutcomes, ...]
    """The oldest first; of a named or pinned run it alone."""
    why: str
    """``the last 12 nights on main``, ``pinned for main``, ``named``."""
    accepted: Mapping[CaseKey, str] = field(default_factory=dict)
    """By case the run with which its reference begins anew: of the nights, or the run itself."""

    @property
    def newest(self) -> RunOutcomes:
        return self.nights[-1]


def reference_for(
    b: RunOutcomes,
    url: str,
    runs_folder: Path,
    *,
    baseline: str | None = None,
    branch: str | None = None,
) -> Reference | None:
    """What to compare `b` with; None: it is a first night.

    The run `baseline`, if it is given (`previous`: the last of the nights); else the one pinned
    for the label or branch of `b`; else the newest nights before it, of the same selection, on its
    branch, and on the target or default branch before that had any. Of a pull request they are the
    target's. Those with uncommitted changes only count if `b` has some, too. `branch`: those of
    that branch alone. Raises UsageError, RunDirectoryError and IndexTroubleError.
    """
    if baseline not in (None, PREVIOUS):
        named = find_run(str(baseline), url, runs_folder, b.about.repository)
        if _order(named) == _order(b):
            what = f"{named.run_id} is the run that is to be compared with it"
            raise UsageError(what, hint="name another one, or none")
        return Reference((named,), "named")
    branches = [branch] if branch is not None else _branches(b)
    with open_index(url, write=False) as execute:
        rows = indexed_runs(execute, b.about.repository)
        marked = marks(execute, b.about.repository)
        accepted = _accepted(marked, branches, {row.run_id: row for row in rows})
        scopes = [LABEL + b.about.label, *branches] if b.about.label else branches
        pinned = next((s for s in scopes if marked.get((s, PIN), b.run_id) != b.run_id), None)
        if pinned is not None and baseline is None:
            return _pinned(execute, pinned, marked[pinned, PIN], rows, accepted)
        before = [row for row in rows if (row.started_at, row.run_id) < _order(b)]
        nights = list(_nights(execute, b, before, branches))[::-1]
    if not nights:
        return None
    if baseline == PREVIOUS:
        return Reference((nights[-1],), "the run before")
    begins = {}
    for key, since in accepted.items():
        first = (run.run_id for run in (*nights, b) if _order(run) >= since[:2])
        begins[key] = next(first, b.run_id)
    many = "the last night" if len(nights) == 1 else f"the last {len(nights)} nights"
    on = " and ".join(filter(None, dict.fromkeys(run.about.branch for run in nights[::-1])))
    return Reference(tuple(nights), f"{many} on {on}" if on else many, begins)


def _branches(b: RunOutcomes) -> list[str]:
    """Whose nights are its past, the own ones first."""
    about = b.about
    if not about.target_branch and about.branch in ("", *_DEFAULT_BRANCHES):
        return [about.branch]
    return list(dict.fromkeys([about.target_branch or about.branch, *_DEFAULT_BRANCHES]))


def _nights(
    execute: Execute, b: RunOutcomes, before: Sequence[IndexedRun], branches: Sequence[str]
) -> Iterator[RunOutcomes]:
    """The newest first: those on the first branch that has any and, if that is its own, on the next
    one that has any before them.
    """
    found = passed_by = 0
    own = b.about.branch
    for branch in branches:
        begun = found
        for row in reversed(before):
            if row.branch != branch or passed_by == _OLDEST:
                continue
            passed_by += 1
            if found >= NIGHTS and passed_by % _EARLIER:
                continue
            run = outcomes_of(execute, row.run_id)
            if is_comparable(run, b) and (b.about.dirty or not run.about.dirty):
                found += 1
                yield run
                oldest = row
        if found > begun:
            if branch != own:
                return
            before = before[: before.index(oldest)]


def is_comparable(earlier: RunOutcomes, run: RunOutcomes) -> bool:
    """Asked for the same as `run`, it ran one of its suites on the same engine; or planned all."""
    if run.selection_key and earlier.selection_key == run.selection_key:
        own, others = ({(suite, engine) for suite, _, engine in r.cases} for r in (run, earlier))
        return bool(own & others)
    return bool(run.cases) and run.cases <= earlier.cases


def _order(run: RunOutcomes) -> tuple[str, str]:
    return run.started_at, run.run_id


# What somebody has pinned and accepted.


def pin(url: str, repository: str, scope: str, run_id: str | None) -> None:
    """For a branch, or :data:`LABEL` with a label; None: no run any more."""
    set_marks(url, repository, {(scope, PIN): run_id})


def accept(url: str, run: RunOutcomes, keys: Sequence[CaseKey]) -> None:
    """Let the references of these cases begin anew with `run`, on its branch."""
    given = {(run.about.branch, json.dumps(key)): run.run_id for key in keys}
    set_marks(url, run.about.repository, given)


Since = tuple[str, str]
"""When a run began, and its id: by it runs are ordered."""


def _accepted(
    marked: Mapping[tuple[str, str], str], branches: Sequence[str], rows: Mapping[str, IndexedRun]
) -> dict[CaseKey, Since]:
    """By case, the newest run from which on it was accepted on one of `branches`."""
    found: dict[CaseKey, Since] = {}
    for (scope, subject), run_id in marked.items():
        if subject != PIN and scope in branches and run_id in rows:
            key = CaseKey(*json.loads(subject))
            found[key] = max(found.get(key, ("", "")), (rows[run_id].started_at, run_id))
    return found


def _pinned(
    execute: Execute,
    scope: str,
    run_id: str,
    rows: Sequence[IndexedRun],
    accepted: Mapping[CaseKey, Since],
) -> Reference:
    """The pinned run, with the trials of cases that were accepted later as they were then."""
    if not any(row.run_id == run_id for row in rows):
        hint = "pin another with `skillup baseline set`, or none with `skillup baseline clear`"
        raise UsageError(f"the pinned run {run_id} is not in the index any more", hint=hint)
    run = outcomes_of(execute, run_id)
    later = {key: since[1] for key, since in accepted.items() if since > _order(run)}
    others = [outcomes_of(execute, other) for other in dict.fromkeys(later.values())]
    trials = [trial for trial in run.trials if trial.key not in later]
    for other in others:
        trials += [trial for trial in other.trials if later.get(trial.key) == other.run_id]
    why = f"pinned for {scope}" if scope else "pinned"
    return Reference((replace(run, trials=tuple(trials)),), why)
