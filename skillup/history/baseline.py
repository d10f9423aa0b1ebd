"""The earlier run that a run is compared with, and what stands in for verdicts it has not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from skillup.errors import IndexTroubleError, UsageError
from skillup.history.comparison import Comparison, compare_runs, unanswered
from skillup.history.database import Index, open_index
from skillup.history.gates import confidence_of
from skillup.history.outcomes import CaseKey, RunOutcomes
from skillup.history.queries import (
    CaseInRun,
    newest_runs,
    planned_in,
    selections,
    tallies_of_all_runs,
    until_decided_runs,
)
from skillup.history.run_lookup import as_it_is_now
from skillup.history.tallies import CaseTally
from skillup.schema.suite import Gates

_FEW_CASES = 500
"""To be named in a query; of more, all of the suite are read."""


class Similarity(NamedTuple):
    """How near an earlier run comes to a run in what it planned; the greater, the nearer."""

    same_kind: bool
    """It was asked for the same, or planned all that the run planned."""
    unnarrowed: bool
    """False: it left out cases by `-k`, `--tag` and the like, which the run did not."""
    shared: int
    """Cases of the run, on its engines, that it planned, too; of the same kind: all count as equal,
    for a case that came or went yesterday must not make last month's night the nearer one."""


class SimilarRuns:
    """The runs of an index, by their similarity to one run. Without the skill or with it is one."""

    def __init__(self, index: Index, run: RunOutcomes) -> None:
        self._index = index
        self._selection = run.selection
        self._planned = {(t.key.suite, t.key.case_id, t.key.engine) for t in run.trials}
        self._kinds = {(suite, engine) for suite, _, engine in self._planned}
        self._selections = selections(index)
        self.known: dict[str, Similarity | None] = {}
        """Of the runs that were asked for, by id."""

    def similarity(self, run_id: str) -> Similarity | None:
        """That of the run `run_id`; None: it held none of the suites on the same engine."""
        if run_id not in self.known:
            self.known[run_id] = self._find(run_id)
        return self.known[run_id]

    def _find(self, run_id: str) -> Similarity | None:
        planned = planned_in(self._index, run_id)
        if self._kinds.isdisjoint((suite, engine) for suite, _, engine in planned):
            return None
        own, selection = self._selection, self._selections.get(run_id)
        alike = own is not None and selection is not None and own.asked == selection.asked
        if alike or planned >= self._planned:
            return Similarity(True, True, len(self._planned))
        narrowed = selection is not None and selection.narrowed
        whole = own is None or not own.narrowed
        return Similarity(False, not (narrowed and whole), len(planned & self._planned))


def run_before(later: RunOutcomes, url: str) -> RunOutcomes:
    """The newest run that began before `later` and was asked for the same, or planned all of its
    cases on the same engines; else the one that planned most of them.

    A run of chosen cases (`-k` and the like) is none that a whole one is compared with: what failed
    in both would be no news to any night. Raises UsageError if there is no such run,
    RunDirectoryError if it cannot be read, and IndexTroubleError.
    """
    with open_index(url, write=False) as index:
        similar = SimilarRuns(index, later)
        best: tuple[Similarity, str] | None = None
        for head in newest_runs(index):
            if (head.started_at, head.run_id) >= (later.started_at, later.run_id):
                continue
            near = similar.similarity(head.run_id)
            if near is not None and near.unnarrowed and (best is None or near > best[0]):
                best = (near, head.run_id)
            if best is not None and best[0].same_kind:
                break
        if best is not None:
            return as_it_is_now(index, best[1])
    less = any(near is not None for near in similar.known.values())
    raise UsageError(
        f"no earlier run in the index held a suite of {later.run_id} on the same engine"
        + (": only chosen cases of it (-k, --tag and the like)" if less else ""),
        hint="name a run, or index older ones with `skillup trends --rebuild`",
    )


def compare_with_index(
    a: RunOutcomes, b: RunOutcomes, gates: Mapping[str, Gates], url: str
) -> Comparison:
    """`a` and `b`, as sure as `gates` ask; the index at `url` answers what `a` does not."""
    return compare_runs(a, b, confidence_of(gates), *_fallback_verdicts(a, b, url))


def _fallback_verdicts(
    a: RunOutcomes, b: RunOutcomes, url: str
) -> tuple[dict[CaseKey, tuple[str, CaseTally]], set[str]]:
    """For cases that `a` did not get to, skipped, or did not plan and `b` did: the id and the
    verdicts of a run before both; and which runs were held `--until-decided`.

    Two directories can be compared without an index; then there are none.
    """
    missing = unanswered(a, b)
    if not missing or not url:
        return {}, set()
    try:
        with open_index(url, write=False) as index:
            found = earlier_verdicts(index, a, b, missing)
            decided = until_decided_runs(index)
    except IndexTroubleError:
        return {}, set()
    return {key: (row.run.run_id, row.tally) for key, row in found.items()}, decided


def earlier_verdicts(
    index: Index, a: RunOutcomes, b: RunOutcomes, keys: Collection[CaseKey]
) -> dict[CaseKey, CaseInRun]:
    """For each of `keys`, the verdict of a run before both `a` and `b`, if there is one.

    Of runs that planned what `b` did the newest; else of those that planned most of it. So a
    failure that somebody saw in a run of a few cases is no less new to the next night.
    """
    if not keys:
        return {}
    first = min((run.started_at, run.run_id) for run in (a, b))
    similar = SimilarRuns(index, b)
    found: dict[CaseKey, tuple[Similarity, CaseInRun]] = {}
    suites, cases = {key.suite for key in keys}, {key.case_id for key in keys}
    few = cases if len(cases) <= _FEW_CASES else ()
    for row in reversed(tallies_of_all_runs(index, suites, few)):
        earlier = (row.run.started_at, row.run.run_id) < first
        best = found.get(row.key)
        if row.key not in keys or not row.tally.judged or not earlier:
            continue
        if best is not None and best[0].same_kind:
            continue
        near = similar.similarity(row.run.run_id)
        if near is not None and (best is None or near > best[0]):
            found[row.key] = (near, row)
    return {key: row for key, (_, row) in found.items()}
