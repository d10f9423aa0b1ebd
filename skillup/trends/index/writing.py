"""Putting runs into the index; one that is there is replaced: it may have been resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlalchemy import Connection, delete, select

from skillup.errors import RunDirectoryError
from skillup.store.runs_in_order import is_run
from skillup.trends.index.database import open_index
from skillup.trends.index.tables import runs, selections, trials, until_decided
from skillup.trends.outcomes import RunOutcomes
from skillup.trends.reading import read_run


def add_run(url: str, run: RunOutcomes) -> None:
    """Index `run`, all of it or nothing. Raises IndexTroubleError."""
    with open_index(url, write=True) as connection:
        _replace(connection, run)


def rebuild(url: str, runs_folder: Path) -> Iterator[tuple[Path, RunDirectoryError | None]]:
    """Index every run in `runs_folder`, and those elsewhere that the index knows, anew.

    Yields each directory with what was wrong with it, if anything. Runs whose directories have gone
    stay in the index. Raises IndexTroubleError.
    """
    with open_index(url, write=True) as connection:
        known = [Path(path) for path in connection.execute(select(runs.c.path)).scalars()]
    here = sorted(runs_folder.iterdir()) if runs_folder.is_dir() else []
    for path in dict.fromkeys([*here, *sorted(known)]):
        if not is_run(path):
            continue
        try:
            run = read_run(path)
        except RunDirectoryError as error:
            yield path, error
            continue
        add_run(url, run)
        yield path, None


def _replace(connection: Connection, run: RunOutcomes) -> None:
    connection.execute(delete(trials).where(trials.c.run_id == run.run_id))
    connection.execute(delete(runs).where(runs.c.run_id == run.run_id))
    connection.execute(delete(until_decided).where(until_decided.c.run_id == run.run_id))
    connection.execute(delete(selections).where(selections.c.run_id == run.run_id))
    gates = {suite: dict(own) for suite, own in run.gates.items()}
    connection.execute(
        runs.insert().values(
            run_id=run.run_id,
            started_at=run.started_at,
            path=_storable(run.path),
            finished=run.finished,
            gates=gates,
        )
    )
    if run.until_decided:
        connection.execute(until_decided.insert().values(run_id=run.run_id))
    if run.selection is not None:
        asked = _storable(run.selection.asked)
        row = {"run_id": run.run_id, "asked": asked, "narrowed": run.selection.narrowed}
        connection.execute(selections.insert().values(row))
    rows = list(_rows(run))
    if rows:
        connection.execute(trials.insert(), rows)


def _rows(run: RunOutcomes) -> Iterable[dict[str, object]]:
    for position, trial in enumerate(run.trials):
        yield {
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


def _storable(text: str) -> str:
    """PostgreSQL has no NUL in texts, and no database half a character (from a file's name)."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
