"""Finding past runs in the index, and how cases fared in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, Row, case, func, inspect, select

from skillup.trends.index.tables import runs, trials, until_decided
from skillup.trends.outcomes import VERDICTS, CaseKey, RunOutcomes, Status, TrialOutcome
from skillup.trends.tallies import Tally

_FEW_CASES = 500
"""To be named in a query; of more, all of the suite are read."""


class RunHead(NamedTuple):
    """Which run."""

    run_id: str
    started_at: str


def newest_runs(connection: Connection) -> list[RunHead]:
    """All runs, the newest first."""
    chosen = select(runs.c.run_id, runs.c.started_at)
    rows = connection.execute(chosen.order_by(runs.c.started_at.desc(), runs.c.run_id.desc()))
    return [RunHead(*row) for row in rows]


def kinds_of(connection: Connection, run_id: str) -> set[tuple[str, str]]:
    """The suites of the run, each with the engines that it was held on."""
    chosen = select(trials.c.suite, trials.c.engine).where(trials.c.run_id == run_id)
    return {(suite, engine) for suite, engine in connection.execute(chosen.distinct())}


def stored_run(connection: Connection, run_id: str) -> RunOutcomes:
    """The run as it was indexed; `run_id` is one of :func:`newest_runs`."""
    run = connection.execute(select(runs).where(runs.c.run_id == run_id)).one()
    chosen = select(trials).where(trials.c.run_id == run_id).order_by(trials.c.position)
    return RunOutcomes(
        run_id=run.run_id,
        started_at=run.started_at,
        path=run.path,
        finished=run.finished,
        trials=tuple(_trial(row) for row in connection.execute(chosen)),
        gates=run.gates,
        until_decided=_until_decided(connection, run_id),
    )


def _until_decided(connection: Connection, run_id: str) -> bool:
    if not inspect(connection).has_table(until_decided.name):
        return False
    chosen = select(until_decided.c.run_id).where(until_decided.c.run_id == run_id)
    return connection.execute(chosen).first() is not None


def _trial(row: Row[Any]) -> TrialOutcome:
    return TrialOutcome(
        key=CaseKey(row.suite, row.case_id, row.engine, row.variant),
        trial=row.trial,
        status=cast(Status, row.status),
        score=row.score,
        cost_usd=row.cost_usd,
        duration_ms=row.duration_ms,
        reason=row.reason,
    )


class CaseInRun(NamedTuple):
    """One case in one run."""

    run: RunHead
    key: CaseKey
    tally: Tally


def tallies_of_all_runs(
    connection: Connection, suites: Collection[str] = (), cases: Collection[str] = ()
) -> list[CaseInRun]:
    """Every case in every run, of `suites` or of all; the oldest run first, each in its order.
    `cases`: only those with one of these ids, if there are any.

    Summed up by the database: a year of nights has a hundred thousand trials.
    """
    judged = trials.c.status.in_(VERDICTS)

    def count(status: Status) -> Any:
        return func.sum(case((trials.c.status == status, 1), else_=0))

    key = (trials.c.suite, trials.c.case_id, trials.c.engine, trials.c.variant)
    chosen = (
        select(
            runs.c.run_id,
            runs.c.started_at,
            *key,
            *(count(status) for status in ("PASS", "FAIL", "ERROR", "SKIP", "NOT_HELD")),
            func.avg(case((judged, trials.c.score))),
            func.avg(case((judged, trials.c.cost_usd))),
            func.avg(case((judged, trials.c.duration_ms))),
            func.count(case((judged, trials.c.cost_usd))),
        )
        .join(trials, trials.c.run_id == runs.c.run_id)
        .group_by(runs.c.run_id, runs.c.started_at, *key)
        .order_by(runs.c.started_at, runs.c.run_id, func.min(trials.c.position))
    )
    if suites:
        chosen = chosen.where(trials.c.suite.in_(suites))
    if cases:
        chosen = chosen.where(trials.c.case_id.in_(cases))
    found = []
    for run_id, started_at, suite, case_id, engine, variant, *numbers in connection.execute(chosen):
        counts, means, priced = numbers[:5], numbers[5:8], int(numbers[8])
        # PostgreSQL gives means of whole numbers as decimals.
        score, cost, duration = (None if mean is None else float(mean) for mean in means)
        passed, failed, errors, skipped, not_held = (int(count) for count in counts)
        tally = Tally(
            passed, failed, errors, skipped, not_held, score, cost, duration, priced=priced
        )
        found.append(
            CaseInRun(RunHead(run_id, started_at), CaseKey(suite, case_id, engine, variant), tally)
        )
    return found


def earlier_verdicts(
    connection: Connection, run: RunOutcomes, keys: Collection[CaseKey]
) -> dict[CaseKey, CaseInRun]:
    """For each of `keys`, the newest run before `run` that gave it a verdict, if there is one."""
    if not keys:
        return {}
    found: dict[CaseKey, CaseInRun] = {}
    suites, cases = {key.suite for key in keys}, {key.case_id for key in keys}
    few = cases if len(cases) <= _FEW_CASES else ()
    for row in tallies_of_all_runs(connection, suites, few):
        earlier = (row.run.started_at, row.run.run_id) < (run.started_at, run.run_id)
        if row.key in keys and row.tally.judged and earlier:
            found[row.key] = row
    return found
