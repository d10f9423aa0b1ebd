"""Runs by name (directory, id or its beginning, `last`), and the run that one is compared with."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from skillup.errors import IndexTroubleError, UsageError
from skillup.history.comparison import Comparison, compare_runs, unanswered
from skillup.history.gates import confidence_of
from skillup.history.index import (
    CaseInRun,
    Index,
    newest_runs,
    open_index,
    stored_run,
    tallies_of_all_runs,
)
from skillup.history.runs import CaseKey, CaseTally, RunOutcomes, read_run, run_info
from skillup.schema.suite import Gates
from skillup.store.runs import is_run, runs_in

LAST = "last"
PREVIOUS = "previous"
_SHOWN = 5
_HINT = "`skillup trends --rebuild` indexes the runs that are there"


def find_run(name: str, url: str, runs_folder: Path) -> RunOutcomes:
    """The run that `name` means: a run directory, else what `runs_folder` or the index has.

    The index is a copy, which a run that was resumed or killed is ahead of: where a run's directory
    is there, the directory is read. Raises UsageError if `name` means none or several,
    RunDirectoryError if it cannot be read, and IndexTroubleError.
    """
    if not name:
        raise UsageError("the name of a run is empty", hint="give its directory or id, or `last`")
    folders = runs_in(runs_folder)
    if name == LAST and folders:
        return read_run(runs_folder / folders[-1])
    if name != LAST and os.path.exists(name):  # noqa: PTH110 - Path.exists raises for a long name
        return read_run(Path(name))
    here = {folder for folder in folders if folder.startswith(name)}
    if name == PREVIOUS and not here:
        raise UsageError(
            f"`{PREVIOUS}` is the run before B, so it cannot be B",
            hint=f"`skillup compare {PREVIOUS} RUN`: give B's directory or id, or `{LAST}`",
        )
    try:
        with open_index(url, write=False) as index:
            newest = [head.run_id for head in newest_runs(index)]
            if name == LAST and newest:
                return as_it_is_now(index, newest[0])
            chosen = _only(name, {*here, *(run for run in newest if run.startswith(name))}, newest)
            if chosen not in here:
                return as_it_is_now(index, chosen)
    except IndexTroubleError:
        if not here:
            raise
        chosen = _only(name, here, [])
    return read_run(runs_folder / chosen)


def as_it_is_now(index: Index, run_id: str) -> RunOutcomes:
    """As its directory says, or the index, where that is not there, or now holds another run."""
    stored = stored_run(index, run_id)
    path = Path(stored.path)
    return read_run(path) if is_run(path) and run_info(path).get("run_id") == run_id else stored


def _only(name: str, found: set[str], newest: list[str]) -> str:
    if len(found) == 1 or name in found:
        return name if name in found else next(iter(found))
    if found:
        some = ", ".join(sorted(found)[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"say more of it: {some}")
    known = f"the newest ones: {', '.join(newest[:_SHOWN])}" if newest else _HINT
    raise UsageError(f"there is no run {name}", hint=known)


class _Candidates:
    """How well earlier runs serve as baseline of a run: 1, or the share of its cases planned."""

    def __init__(self, index: Index, run: RunOutcomes) -> None:
        self._index, self._run = index, run
        sql = "SELECT run_id FROM skillup_runs WHERE selection_key <> '' AND selection_key = ?"
        self._same = {run_id for (run_id,) in index.execute(sql, run.selection_key)}
        self._shares: dict[str, float] = {}

    def share(self, run_id: str) -> float:
        """1: it was asked for the same cases and engines, or planned all that the run planned.

        0: it ran none of the suites on the same engine.
        """
        if run_id not in self._shares:
            sql = "SELECT DISTINCT suite, case_id, engine FROM skillup_trials WHERE run_id = ?"
            planned, wanted = set(self._index.execute(sql, run_id)), self._run.cases
            share = len(planned & wanted) / len(wanted) if wanted else 0.0
            suites = {(suite, engine) for suite, _, engine in wanted}
            same = run_id in self._same and any((s, e) in suites for s, _, e in planned)
            self._shares[run_id] = 1.0 if same else share
        return self._shares[run_id]


def run_before(later: RunOutcomes, url: str) -> RunOutcomes:
    """The newest run that began before `later` and was asked for the same cases and engines, or
    planned all of its cases; else the one that planned most of them, and at least half.

    So a run of few cases by day is no baseline of a night: what failed in both would never be news.
    Raises UsageError if there is no such run, RunDirectoryError if it cannot be read, and
    IndexTroubleError.
    """
    with open_index(url, write=False) as index:
        candidates, best, least = _Candidates(index, later), "", 0.5 - 1e-9
        for head in newest_runs(index):
            if (head.started_at, head.run_id) >= (later.started_at, later.run_id):
                continue
            if (share := candidates.share(head.run_id)) > least:
                best, least = head.run_id, share
            if least >= 1:
                break
        if best:
            return as_it_is_now(index, best)
    raise UsageError(
        f"no earlier run in the index was asked for the cases of {later.run_id}, or half of them, "
        "on the same engines",
        hint="name a run, or index older ones with `skillup trends --rebuild`",
    )


def compare_with_index(
    a: RunOutcomes, b: RunOutcomes, gates: Mapping[str, Gates], url: str
) -> Comparison:
    """`a` and `b`, as sure as `gates` ask; for cases without a verdict in `a` (not planned, not
    run, skipped), the index at `url`, if there is one, has that of a run before both.
    """
    confidence, missing = confidence_of(gates), unanswered(a, b)
    if not missing or not url:
        return compare_runs(a, b, confidence)
    try:
        with open_index(url, write=False) as index:
            rows = earlier_verdicts(index, a, b, missing)
            decided = index.execute("SELECT run_id FROM skillup_runs WHERE until_decided")
    except IndexTroubleError:  # two directories can be compared without an index
        return compare_runs(a, b, confidence)
    earlier: dict[CaseKey, tuple[str, CaseTally]] = {
        key: (row.run.run_id, row.tally) for key, row in rows.items()
    }
    return compare_runs(a, b, confidence, earlier, {run_id for (run_id,) in decided})


def earlier_verdicts(
    index: Index, a: RunOutcomes, b: RunOutcomes, keys: Collection[CaseKey]
) -> dict[CaseKey, CaseInRun]:
    """For each of `keys`, the verdict of a run before both `a` and `b`, if there is one.

    Of the newest run that could be the baseline of `b` by :func:`run_before`; else of the one that
    planned most of it.
    """
    if not keys:
        return {}
    first = min((run.started_at, run.run_id) for run in (a, b))
    candidates = _Candidates(index, b)
    found: dict[CaseKey, CaseInRun] = {}
    for row in reversed(tallies_of_all_runs(index, sorted({key.suite for key in keys}))):
        earlier = (row.run.started_at, row.run.run_id) < first
        if row.key not in keys or not row.tally.judged or not earlier:
            continue
        best = found.get(row.key)
        share = candidates.share(row.run.run_id)
        if share and (best is None or share > candidates.share(best.run.run_id)):
            found[row.key] = row
    return found
