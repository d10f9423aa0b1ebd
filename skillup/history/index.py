"""The index of past runs: an SQLite file, or a PostgreSQL database that machines share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from skillup.errors import IndexTroubleError, RunDirectoryError
from skillup.history.postgresql import Database, postgresql
from skillup.history.runs import CaseKey, CaseTally, RunOutcomes, TrialOutcome, by_case, read_run
from skillup.store.places import default_index_path
from skillup.store.runs import is_run

INDEX_VARIABLE = "SKILLUP_INDEX"
NO_INDEX = "none"
INDEX_VERSION = 3
_TIMEOUT_SECONDS = 30  # For another run that is writing, and for a server to answer
_REBUILD = "runs are indexed as they end; `skillup trends --rebuild` indexes older ones"

# Times are UTC in ISO 8601, so that they sort as text. Suite, case and number of a trial are no
# key: two suites may have the same name.
_TABLES = (
    "CREATE TABLE skillup_index (version INTEGER PRIMARY KEY)",
    """CREATE TABLE skillup_runs (
        run_id TEXT PRIMARY KEY, started_at TEXT NOT NULL, path TEXT NOT NULL,
        finished BOOLEAN NOT NULL, gates TEXT NOT NULL, until_decided BOOLEAN NOT NULL,
        selection_key TEXT NOT NULL)""",
    "CREATE INDEX skillup_runs_by_start ON skillup_runs (started_at)",
    """CREATE TABLE skillup_trials (
        run_id TEXT NOT NULL REFERENCES skillup_runs (run_id), position INTEGER NOT NULL,
        suite TEXT NOT NULL, case_id TEXT NOT NULL, engine TEXT NOT NULL, variant TEXT NOT NULL,
        trial INTEGER NOT NULL, status TEXT NOT NULL, score DOUBLE PRECISION NOT NULL,
        cost_usd DOUBLE PRECISION, duration_ms INTEGER NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (run_id, position))""",
    "CREATE INDEX skillup_trials_of_case ON skillup_trials (suite, case_id, engine, variant)",
)


def index_url(
    given: str | None, environment: Mapping[str, str], workspace_root: Path, *, write: bool
) -> str:
    """The index that `--index`, else SKILLUP_INDEX names, else the file beside the runs.

    A path or the URL of a PostgreSQL database; empty for `none`. With `write`, the directory of
    the default one is made; raises RunDirectoryError if that cannot be.
    """
    url = given or environment.get(INDEX_VARIABLE)
    if not url:
        return str(default_index_path(workspace_root, make=write))
    return "" if url == NO_INDEX else url


class Index:
    """One transaction in an index; its SQL is what SQLite and PostgreSQL have in common."""

    def __init__(self, connection: Any, placeholder: str) -> None:
        self._connection = connection
        self._placeholder = placeholder

    def execute(self, sql: str, *values: object) -> list[Any]:
        """The rows that the statement gives; `?` in it stands for each of `values`."""
        cursor = self._connection.cursor()
        cursor.execute(sql.replace("?", self._placeholder), values)
        return cursor.fetchall() if cursor.description else []

    def insert(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """All of `rows`, each with a value for every column."""
        if rows:
            places = ", ".join([self._placeholder] * len(rows[0]))
            sql = f"INSERT INTO {table} VALUES ({places})"  # noqa: S608
            self._connection.cursor().executemany(sql, rows)


@contextmanager
def open_index(url: str, *, write: bool) -> Iterator[Index]:
    """A transaction, committed at the end if nothing was raised.

    With `write`, the tables are made if they are not there, and writers wait for each other.
    Raises IndexTroubleError, also for what the database raises within the block, and for an empty
    `url`, which means that none is kept.
    """
    if not url:
        raise IndexTroubleError("there is no index", hint=f"`{NO_INDEX}` was given: name another")
    if "://" in url:
        database = postgresql(url, write=write, timeout_seconds=_TIMEOUT_SECONDS)
    else:
        database = _sqlite(url, write=write)
    try:
        with closing(database.connect()) as connection:  # which rolls back what is not committed
            index = Index(connection, database.placeholder)
            index.execute(database.begin)
            _check_version(index, database, write=write)
            yield index
            index.execute("COMMIT")
    except database.error as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise IndexTroubleError(
            f"the index {database.name}: {reason}", hint=database.hint
        ) from error


def _sqlite(url: str, *, write: bool) -> Database:
    path = Path(url).absolute()
    if path.is_dir():
        hint = "give the path of a file that is an index, or is to become one"
        raise IndexTroubleError(f"the index {path} is a directory", hint=hint)
    if not write and not path.exists():
        raise IndexTroubleError(f"there is no index at {path}", hint=_REBUILD)
    return Database(
        name=str(path),
        connect=lambda: sqlite3.connect(path, timeout=_TIMEOUT_SECONDS, isolation_level=None),
        error=sqlite3.Error,
        placeholder="?",
        begin="BEGIN IMMEDIATE" if write else "BEGIN",  # who began by reading could not wait
        has_tables="SELECT max(name) FROM sqlite_master WHERE name = 'skillup_index'",
        hint=f"can {path} be {'written' if write else 'read'}? If it is damaged, move it away: "
        "`skillup trends --rebuild` makes another from the runs that are there",
    )


def _check_version(index: Index, database: Database, *, write: bool) -> None:
    """Raises IndexTroubleError unless the tables are of this version; makes them if need be."""
    if index.execute(database.has_tables)[0][0] is None:
        if not write:
            raise IndexTroubleError(f"the index {database.name} holds nothing yet", hint=_REBUILD)
        for statement in _TABLES:
            index.execute(statement)
        index.insert("skillup_index", [[INDEX_VERSION]])
        return
    version = index.execute("SELECT max(version) FROM skillup_index")[0][0]
    if version != INDEX_VERSION:
        raise IndexTroubleError(
            f"the index {database.name} has version {version}; this skillup knows {INDEX_VERSION}",
            hint="name another with --index, and fill it with `skillup trends --rebuild`",
        )


# What is in it.


class RunHead(NamedTuple):
    run_id: str
    started_at: str


class CaseInRun(NamedTuple):
    run: RunHead
    key: CaseKey
    tally: CaseTally


def newest_runs(index: Index) -> list[RunHead]:
    sql = "SELECT run_id, started_at FROM skillup_runs ORDER BY started_at DESC, run_id DESC"
    return [RunHead(*row) for row in index.execute(sql)]


def stored_run(index: Index, run_id: str) -> RunOutcomes:
    """The run as it was indexed; `run_id` is one of :func:`newest_runs`."""
    ((started_at, path, finished, gates, until_decided, selection_key),) = index.execute(
        "SELECT started_at, path, finished, gates, until_decided, selection_key "
        "FROM skillup_runs WHERE run_id = ?",
        run_id,
    )
    return RunOutcomes(
        run_id=run_id,
        started_at=started_at,
        path=path,
        finished=bool(finished),
        trials=tuple(trial for _, trial in _trials(index, "WHERE run_id = ?", [run_id])),
        gates=json.loads(gates),
        until_decided=bool(until_decided),
        selection_key=selection_key,
    )


def _trials(
    index: Index, condition: str, values: Collection[str]
) -> Iterator[tuple[RunHead, TrialOutcome]]:
    """The oldest run first, each in its order."""
    rows = index.execute(
        "SELECT run_id, started_at, suite, case_id, engine, variant, trial, status, score, "  # noqa: S608
        "cost_usd, duration_ms, reason FROM skillup_runs JOIN skillup_trials USING (run_id) "
        f"{condition} ORDER BY started_at, run_id, position",
        *values,
    )
    return ((RunHead(*row[:2]), TrialOutcome(CaseKey(*row[2:6]), *row[6:])) for row in rows)


def tallies_of_all_runs(index: Index, suites: Collection[str] = ()) -> list[CaseInRun]:
    """Every case in every run, of `suites` or of all; the oldest run first, each in its order."""
    chosen = f"WHERE suite IN ({', '.join('?' * len(suites))})" if suites else ""
    return [
        CaseInRun(run, key, own)
        for run, rows in groupby(_trials(index, chosen, suites), itemgetter(0))
        for key, own in by_case(trial for _, trial in rows).items()
    ]


def add_run(url: str, run: RunOutcomes) -> None:
    """Index `run`, all of it or nothing; one that is there is replaced, for it may have been
    resumed. Raises IndexTroubleError.
    """
    gates = json.dumps({suite: dict(own) for suite, own in run.gates.items()})
    selection = _storable(run.selection_key)
    row = [run.run_id, run.started_at, _storable(run.path), run.finished, gates]
    trials = [
        (
            *(run.run_id, position, *map(_storable, trial.key), trial.trial, trial.status),
            *(trial.score, trial.cost_usd, trial.duration_ms, _storable(trial.reason)),
        )
        for position, trial in enumerate(run.trials)
    ]
    with open_index(url, write=True) as index:
        index.execute("DELETE FROM skillup_trials WHERE run_id = ?", run.run_id)
        index.execute("DELETE FROM skillup_runs WHERE run_id = ?", run.run_id)
        index.insert("skillup_runs", [[*row, run.until_decided, selection]])
        index.insert("skillup_trials", trials)


def rebuild(url: str, runs_folder: Path) -> Iterator[tuple[Path, RunDirectoryError | None]]:
    """Index every run in `runs_folder`, and those elsewhere that the index knows, anew.

    Yields each directory with what was wrong with it, if anything. Runs whose directories have gone
    stay in the index. Raises IndexTroubleError.
    """
    with open_index(url, write=True) as index:
        known = sorted(Path(path) for (path,) in index.execute("SELECT path FROM skillup_runs"))
    here = sorted(runs_folder.iterdir()) if runs_folder.is_dir() else []
    for path in filter(is_run, dict.fromkeys([*here, *known])):
        try:
            add_run(url, read_run(path))
        except RunDirectoryError as error:
            yield path, error
        else:
            yield path, None


def _storable(text: str) -> str:
    """PostgreSQL has no NUL in texts, and no database half a character (from a file's name)."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
