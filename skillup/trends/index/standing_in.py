"""Verdicts of earlier runs, for cases on which the run that is compared with has none."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection

from skillup.errors import IndexTroubleError
from skillup.schema.gates import Gates
from skillup.trends.comparison import Comparison, compare_runs, unanswered
from skillup.trends.gates import confidence_of
from skillup.trends.index.database import open_index
from skillup.trends.index.nearness import Kin, Nearness
from skillup.trends.index.reading import CaseInRun, held_until_decided, tallies_of_all_runs
from skillup.trends.outcomes import CaseKey, RunOutcomes
from skillup.trends.tallies import Tally

_FEW_CASES = 500
"""To be named in a query; of more, all of the suite are read."""


def compare_with_index(
    a: RunOutcomes, b: RunOutcomes, gates: Mapping[str, Gates], url: str
) -> Comparison:
    """`a` and `b`, as sure as `gates` ask; the index at `url` answers what `a` does not."""
    return compare_runs(a, b, confidence_of(gates), *_standing_in(a, b, url))


def _standing_in(
    a: RunOutcomes, b: RunOutcomes, url: str
) -> tuple[dict[CaseKey, tuple[str, Tally]], set[str]]:
    """For cases that `a` did not get to, skipped, or did not plan and `b` did: the id and the
    verdicts of a run before both; and which runs were held `--until-decided`.

    Two directories can be compared without an index; then nothing stands in.
    """
    missing = unanswered(a, b)
    if not missing or not url:
        return {}, set()
    try:
        with open_index(url, write=False) as connection:
            found = earlier_verdicts(connection, a, b, missing)
            decided = held_until_decided(connection)
    except IndexTroubleError:
        return {}, set()
    return {key: (row.run.run_id, row.tally) for key, row in found.items()}, decided


def earlier_verdicts(
    connection: Connection, a: RunOutcomes, b: RunOutcomes, keys: Collection[CaseKey]
) -> dict[CaseKey, CaseInRun]:
    """For each of `keys`, the verdict of a run before both `a` and `b`, if there is one.

    Of runs that planned what `b` did the newest; else of those that planned most of it. So a
    failure that somebody saw in a run of a few cases is no less new to the next night.
    """
    if not keys:
        return {}
    first = min((run.started_at, run.run_id) for run in (a, b))
    kin = Kin(connection, b)
    found: dict[CaseKey, tuple[Nearness, CaseInRun]] = {}
    suites, cases = {key.suite for key in keys}, {key.case_id for key in keys}
    few = cases if len(cases) <= _FEW_CASES else ()
    for row in reversed(tallies_of_all_runs(connection, suites, few)):
        earlier = (row.run.started_at, row.run.run_id) < first
        best = found.get(row.key)
        if row.key not in keys or not row.tally.judged or not earlier:
            continue
        if best is not None and best[0].same_kind:
            continue
        near = kin.nearness(row.run.run_id)
        if near is not None and (best is None or near > best[0]):
            found[row.key] = (near, row)
    return {key: row for key, (_, row) in found.items()}
