"""Runs by name (directory, id or its beginning, `last`), and the run that one is compared with."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from skillup.errors import IndexTroubleError, UsageError
from skillup.history.comparison import Comparison, cases_without_verdict, compare_runs
from skillup.history.gates import confidence_of
from skillup.history.index import all_runs, open_index
from skillup.history.runs import CaseKey, CaseTally, RunOutcomes, by_case, read_run
from skillup.schema.suite import Gates
from skillup.store.places import is_run, runs_in

LAST = "last"
PREVIOUS = "previous"
_SHOWN = 5


def find_run(name: str, url: str, runs_folder: Path) -> RunOutcomes:
    """The run that `name` means: a run directory, else what `runs_folder` or the index has.

    Where a run's directory is there, it is read: the index may be older. Raises UsageError if
    `name` means none or several, RunDirectoryError if it cannot be read, and IndexTroubleError.
    """
    if not name:
        raise UsageError("the name of a run is empty", hint="give its directory or id, or `last`")
    folders = runs_in(runs_folder)
    if name == LAST and folders:
        return read_run(runs_folder / folders[-1])
    if name != LAST and os.path.exists(name):  # noqa: PTH110 - Path.exists raises for a long name
        return read_run(Path(name))
    here = {folder for folder in folders if folder.startswith(name)}
    try:
        indexed = {run.run_id: run for run in _newest_first(url)}
    except IndexTroubleError:
        if not here:
            raise
        indexed = {}
    if name == LAST and indexed:
        return _as_it_is_now(next(iter(indexed.values())))
    chosen = _only(name, here | {run for run in indexed if run.startswith(name)}, [*indexed])
    return read_run(runs_folder / chosen) if chosen in here else _as_it_is_now(indexed[chosen])


def _newest_first(url: str) -> list[RunOutcomes]:
    with open_index(url, write=False) as reading:
        return all_runs(reading)[::-1]


def _as_it_is_now(indexed: RunOutcomes) -> RunOutcomes:
    """As its directory says; as it was indexed, if that is not there, or now holds another run."""
    path = Path(indexed.path)
    found = read_run(path) if is_run(path) else indexed
    return found if found.run_id == indexed.run_id else indexed


def _only(name: str, found: set[str], newest: Sequence[str]) -> str:
    if len(found) == 1 or name in found:
        return name if name in found else next(iter(found))
    if found:
        some = ", ".join(sorted(found)[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"give more of it: {some}")
    known = f"the newest ones: {', '.join(newest[:_SHOWN])}"
    rebuild = "`skillup trends --rebuild` indexes the runs that are there"
    raise UsageError(f"there is no run {name}", hint=known if newest else rebuild)


def _can_be_baseline(earlier: RunOutcomes, run: RunOutcomes) -> bool:
    """Asked for the same as `run`, it ran one of its suites on the same engine; or planned all."""
    if run.selection_key and earlier.selection_key == run.selection_key:
        own, others = ({(suite, engine) for suite, _, engine in r.cases} for r in (run, earlier))
        return bool(own & others)
    return bool(run.cases) and run.cases <= earlier.cases


def _order(run: RunOutcomes) -> tuple[str, str]:
    return run.started_at, run.run_id


def run_before(later: RunOutcomes, url: str) -> RunOutcomes:
    """The newest run that began before `later` and was asked for the same, or planned all of it.

    So a run of few cases by day is no baseline of a night. Raises UsageError if there is no such
    run, RunDirectoryError if it cannot be read, and IndexTroubleError.
    """
    for run in _newest_first(url):
        if _order(run) < _order(later) and _can_be_baseline(run, later):
            return _as_it_is_now(run)
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
    confidence, missing = confidence_of(gates), cases_without_verdict(a, b)
    try:  # two directories can be compared without an index
        runs = _newest_first(url) if missing and url else []
    except IndexTroubleError:
        runs = []
    return compare_runs(a, b, confidence, earlier_verdicts(runs, a, b, missing))


def earlier_verdicts(
    newest_first: Sequence[RunOutcomes], a: RunOutcomes, b: RunOutcomes, keys: Collection[CaseKey]
) -> dict[CaseKey, tuple[RunOutcomes, CaseTally]]:
    """For each of `keys`, the newest verdict of a run before both, first of baselines of `b`."""
    before = [run for run in newest_first if _order(run) < min(_order(a), _order(b))]
    found: dict[CaseKey, tuple[RunOutcomes, CaseTally]] = {}
    for run in sorted(before, key=lambda run: not _can_be_baseline(run, b)):
        for key, own in by_case(run.trials).items():
            if key in keys and own.judged:
                found.setdefault(key, (run, own))
    return found
