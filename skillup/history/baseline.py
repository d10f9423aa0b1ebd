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
from skillup.history.runs import CaseKey, RunOutcomes, read_run
from skillup.schema.suite import Gates
from skillup.store.runs import is_run, runs_in

LAST = "last"
PREVIOUS = "previous"
_SHOWN = 5


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
                return _as_it_is_now(index, newest[0])
            chosen = _only(name, {*here, *(run for run in newest if run.startswith(name))}, newest)
            if chosen not in here:
                return _as_it_is_now(index, chosen)
    except IndexTroubleError:
        if not here:
            raise
        chosen = _only(name, here, [])
    return read_run(runs_folder / chosen)


def _as_it_is_now(index: Index, run_id: str) -> RunOutcomes:
    """As its directory says, or the index, where that is not there, or now holds another run."""
    stored = stored_run(index, run_id)
    path = Path(stored.path)
    found = read_run(path) if is_run(path) else stored
    return found if found.run_id == run_id else stored


def _only(name: str, found: set[str], newest: list[str]) -> str:
    if len(found) == 1 or name in found:
        return name if name in found else next(iter(found))
    if found:
        some = ", ".join(sorted(found)[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"give more of it: {some}")
    known = f"the newest ones: {', '.join(newest[:_SHOWN])}"
    rebuild = "`skillup trends --rebuild` indexes the runs that are there"
    raise UsageError(f"there is no run {name}", hint=known if newest else rebuild)


def _can_be_baseline(index: Index, run: RunOutcomes, run_id: str) -> bool:
    """It was asked for the same as `run` and ran one of its suites on the same engine, or it
    planned all of its cases.
    """
    sql = "SELECT selection_key FROM skillup_runs WHERE run_id = ?"
    ((selection_key,),) = index.execute(sql, run_id)
    sql = "SELECT DISTINCT suite, case_id, engine FROM skillup_trials WHERE run_id = ?"
    planned = set(index.execute(sql, run_id))
    if selection_key and selection_key == run.selection_key:
        suites = {(suite, engine) for suite, _, engine in run.cases}
        return any((suite, engine) in suites for suite, _, engine in planned)
    return bool(run.cases) and run.cases <= planned


def run_before(later: RunOutcomes, url: str) -> RunOutcomes:
    """The newest run that began before `later` and was asked for the same, or planned all of it.

    So a run of few cases by day is no baseline of a night: what failed in both would never be news.
    Raises UsageError if there is no such run, RunDirectoryError if it cannot be read, and
    IndexTroubleError.
    """
    with open_index(url, write=False) as index:
        for head in newest_runs(index):
            before = (head.started_at, head.run_id) < (later.started_at, later.run_id)
            if before and _can_be_baseline(index, later, head.run_id):
                return _as_it_is_now(index, head.run_id)
    raise UsageError(
        f"no earlier run in the index was asked for the cases of {later.run_id} on the same "
        "engines, or ran all of them",
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
    earlier = {key: (row.run.run_id, row.tally) for key, row in rows.items()}
    return compare_runs(a, b, confidence, earlier, {run_id for (run_id,) in decided})


def earlier_verdicts(
    index: Index, a: RunOutcomes, b: RunOutcomes, keys: Collection[CaseKey]
) -> dict[CaseKey, CaseInRun]:
    """For each of `keys`, the newest verdict of a run before both `a` and `b`, if there is one.

    Of a run that could be the baseline of `b` by :func:`run_before`, if any has a verdict.
    """
    first = min((run.started_at, run.run_id) for run in (a, b))
    suites = sorted({key.suite for key in keys})
    good: dict[str, bool] = {}
    found: dict[CaseKey, CaseInRun] = {}
    for row in reversed(tallies_of_all_runs(index, suites) if keys else []):
        run_id = row.run.run_id
        if row.key not in keys or not row.tally.judged or (row.run.started_at, run_id) >= first:
            continue
        if run_id not in good:
            good[run_id] = _can_be_baseline(index, b, run_id)
        best = found.get(row.key)
        if best is None or (good[run_id] and not good[best.run.run_id]):
            found[row.key] = row
    return found
