"""What the index is asked and told: past runs, how cases fared in them, and new ones."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from skillup.errors import RunDirectoryError
from skillup.history.database import Index, open_index
from skillup.history.outcomes import CaseKey, RunOutcomes, RunSelection, TrialOutcome
from skillup.history.reading import read_run
from skillup.history.tallies import CaseTally
from skillup.store.runs import is_run


class RunHead(NamedTuple):
    """Which run."""

    run_id: str
    started_at: str


class CaseInRun(NamedTuple):
    """One case in one run."""

    run: RunHead
    key: CaseKey
    tally: CaseTally


def newest_runs(index: Index) -> list[RunHead]:
    """All runs, the newest first."""
    return [head for head, _ in places(index)]


def places(index: Index) -> list[tuple[RunHead, str]]:
    """All runs with their directories, the newest first."""
    rows = index.execute(
        "SELECT run_id, started_at, path FROM skillup_runs ORDER BY started_at DESC, run_id DESC"
    )
    return [(RunHead(run_id, started_at), path) for run_id, started_at, path in rows]


def planned_in(index: Index, run_id: str) -> set[tuple[str, str, str]]:
    """The cases that the run planned: suite, id and engine; whatever became of them."""
    sql = "SELECT DISTINCT suite, case_id, engine FROM skillup_trials WHERE run_id = ?"
    return {(suite, case_id, engine) for suite, case_id, engine in index.execute(sql, run_id)}


def selections(index: Index) -> dict[str, RunSelection]:
    """By id, what the runs of the index were asked to choose, where it is known."""
    sql = "SELECT run_id, asked, narrowed FROM skillup_runs WHERE asked IS NOT NULL"
    return {run: RunSelection(asked, bool(narrowed)) for run, asked, narrowed in index.execute(sql)}


def until_decided_runs(index: Index) -> set[str]:
    """Ids of the runs in which how often a case was run depended on how it did."""
    return {run for (run,) in index.execute("SELECT run_id FROM skillup_runs WHERE until_decided")}


def stored_run(index: Index, run_id: str) -> RunOutcomes:
    """The run as it was indexed; `run_id` is one of :func:`newest_runs`."""
    ((started_at, path, finished, gates, until_decided, asked, narrowed),) = index.execute(
        "SELECT started_at, path, finished, gates, until_decided, asked, narrowed "
        "FROM skillup_runs WHERE run_id = ?",
        run_id,
    )
    trials = index.execute(
        "SELECT suite, case_id, engine, variant, trial, status, score, cost_usd, duration_ms, "
        "reason FROM skillup_trials WHERE run_id = ? ORDER BY position",
        run_id,
    )
    return RunOutcomes(
        run_id=run_id,
        started_at=started_at,
        path=path,
        finished=bool(finished),
        trials=tuple(TrialOutcome(CaseKey(*row[:4]), *row[4:]) for row in trials),
        gates=json.loads(gates),
        until_decided=bool(until_decided),
        selection=None if asked is None else RunSelection(asked, bool(narrowed)),
    )


def tallies_of_all_runs(
    index: Index, suites: Collection[str] = (), cases: Collection[str] = ()
) -> list[CaseInRun]:
    """Every case in every run, of `suites` or of all; the oldest run first, each in its order.
    `cases`: only those with one of these ids, if there are any.

    Summed up by the database: a year of nights has a hundred thousand trials.
    """

    def chosen(column: str, values: Collection[str]) -> str:
        return f" AND {column} IN ({', '.join('?' * len(values))})" if values else ""

    counts = ", ".join(
        f"sum(CASE WHEN status = '{status}' THEN 1 ELSE 0 END)"
        for status in ("PASS", "FAIL", "ERROR", "SKIP", "NOT_HELD")
    )
    judged = "CASE WHEN status IN ('PASS', 'FAIL') THEN"
    key = "run_id, started_at, suite, case_id, engine, variant"
    rows = index.execute(
        f"SELECT {key}, {counts}, avg({judged} score END), avg({judged} cost_usd END), "  # noqa: S608
        f"avg({judged} duration_ms END), count({judged} cost_usd END) "
        "FROM skillup_runs JOIN skillup_trials USING (run_id) "
        f"WHERE 1 = 1{chosen('suite', suites)}{chosen('case_id', cases)} "
        f"GROUP BY {key} ORDER BY started_at, run_id, min(position)",
        *suites,
        *cases,
    )
    found = []
    for run_id, started_at, suite, case_id, engine, variant, *numbers in rows:
        # PostgreSQL gives means of whole numbers as decimals.
        score, cost, duration = (None if mean is None else float(mean) for mean in numbers[5:8])
        passed, failed, errors, skipped, not_run = numbers[:5]
        tally = CaseTally(
            passed, failed, errors, skipped, not_run, score, cost, duration, priced=numbers[8]
        )
        found.append(
            CaseInRun(RunHead(run_id, started_at), CaseKey(suite, case_id, engine, variant), tally)
        )
    return found


def add_run(url: str, run: RunOutcomes) -> None:
    """Index `run`, all of it or nothing; one that is there is replaced, for it may have been
    resumed. Raises IndexTroubleError.
    """
    row = {
        "run_id": run.run_id,
        "started_at": run.started_at,
        "path": _storable(run.path),
        "finished": run.finished,
        "gates": json.dumps({suite: dict(own) for suite, own in run.gates.items()}),
        "until_decided": run.until_decided,
        "asked": None if run.selection is None else _storable(run.selection.asked),
        "narrowed": None if run.selection is None else run.selection.narrowed,
    }
    trials = [
        {
            "run_id": run.run_id,
            "position": position,
            **{name: _storable(text) for name, text in trial.key._asdict().items()},
            "trial": trial.trial,
            "status": trial.status,
            "score": trial.score,
            "cost_usd": trial.cost_usd,
            "duration_ms": trial.duration_ms,
            "reason": _storable(trial.reason),
        }
        for position, trial in enumerate(run.trials)
    ]
    with open_index(url, write=True) as index:
        index.execute("DELETE FROM skillup_trials WHERE run_id = ?", run.run_id)
        index.execute("DELETE FROM skillup_runs WHERE run_id = ?", run.run_id)
        index.insert("skillup_runs", [row])
        index.insert("skillup_trials", trials)


def rebuild(url: str, runs_folder: Path) -> Iterator[tuple[Path, RunDirectoryError | None]]:
    """Index every run in `runs_folder`, and those elsewhere that the index knows, anew.

    Yields each directory with what was wrong with it, if anything. Runs whose directories have gone
    stay in the index. Raises IndexTroubleError.
    """
    with open_index(url, write=True) as index:
        known = sorted(Path(path) for _, path in places(index))
    here = sorted(runs_folder.iterdir()) if runs_folder.is_dir() else []
    for path in dict.fromkeys([*here, *known]):
        if not is_run(path):
            continue
        try:
            run = read_run(path)
        except RunDirectoryError as error:
            yield path, error
            continue
        add_run(url, run)
        yield path, None


def _storable(text: str) -> str:
    """PostgreSQL has no NUL in texts, and no database half a character (from a file's name)."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
