"""Finding past runs in the index, and how cases fared in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, Row, case, func, inspect, select

from skillup.trends.index.tables import runs, trials, until_decided
from skillup.trends.index.tables import selections as selections_table
from skillup.trends.outcomes import VERDICTS, CaseKey, RunOutcomes, Status, TrialOutcome
from skillup.trends.selection import Selection
from skillup.trends.tallies import Tally


class RunHead(NamedTuple):
    """Which run."""

    run_id: str
    started_at: str


def newest_runs(connection: Connection) -> list[RunHead]:
    """All runs, the newest first."""
    return [head for head, _ in places(connection)]


def places(connection: Connection) -> list[tuple[RunHead, str]]:
    """All runs with their directories, the newest first."""
    chosen = select(runs.c.run_id, runs.c.started_at, runs.c.path)
    rows = connection.execute(chosen.order_by(runs.c.started_at.desc(), runs.c.run_id.desc()))
    return [(RunHead(run_id, started_at), path) for run_id, started_at, path in rows]


def planned_in(connection: Connection, run_id: str) -> set[tuple[str, str, str]]:
    """The cases that the run planned: suite, id and engine; whatever became of them."""
    columns = (trials.c.suite, trials.c.case_id, trials.c.engine)
    chosen = select(*columns).where(trials.c.run_id == run_id).distinct()
    return {(suite, case_id, engine) for suite, case_id, engine in connection.execute(chosen)}


def selections(connection: Connection) -> dict[str, Selection]:
    """By id, what the runs of the index were asked to choose, where it is known."""
    if not inspect(connection).has_table(selections_table.name):
        return {}
    rows = connection.execute(select(selections_table))
    return {run_id: Selection(asked, narrowed) for run_id, asked, narrowed in rows}


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
        until_decided=run_id in held_until_decided(connection),
        selection=selections(connection).get(run_id),
    )


def held_until_decided(connection: Connection) -> set[str]:
    """Ids of the runs in which how often a case was held depended on how it did."""
    if not inspect(connection).has_table(until_decided.name):
        return set()
    return set(connection.execute(select(until_decided.c.run_id)).scalars())


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
