"""Verdicts of earlier runs, for cases on which the run that is compared with has none."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

from skillup.trends.index.nearness import Kin, Nearness
from skillup.trends.index.reading import CaseInRun, tallies_of_all_runs
from skillup.trends.outcomes import CaseKey, RunOutcomes

_FEW_CASES = 500
"""To be named in a query; of more, all of the suite are read."""


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
