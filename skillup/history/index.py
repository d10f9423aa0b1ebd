"""The index of past runs: an SQLite file that has the outcomes of each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from skillup.errors import IndexTroubleError, RunDirectoryError
from skillup.history.runs import RunOutcomes, read_run
from skillup.store.places import default_index_path
from skillup.store.runs import is_run

INDEX_VARIABLE = "SKILLUP_INDEX"
NO_INDEX = "none"
INDEX_VERSION = 4
_TIMEOUT_SECONDS = 30  # For another run that is writing
_REBUILD = "runs are indexed as they end; `skillup trends --rebuild` indexes older ones"
_TABLE = """CREATE TABLE IF NOT EXISTS skillup_runs (
    run_id TEXT PRIMARY KEY, started_at TEXT NOT NULL, path TEXT NOT NULL,
    outcomes TEXT NOT NULL)"""
# Times are UTC in ISO 8601, so that they sort as text.
_BY_START = "SELECT outcomes FROM skillup_runs ORDER BY started_at, run_id"


def index_url(
    given: str | None, environment: Mapping[str, str], workspace_root: Path, *, write: bool
) -> str:
    """The index that `--index`, else SKILLUP_INDEX names, else the file beside the runs.

    Empty for `none`. With `write`, the directory of the default one is made; raises
    RunDirectoryError if that cannot be.
    """
    url = given or environment.get(INDEX_VARIABLE)
    if not url:
        return str(default_index_path(workspace_root, make=write))
    return "" if url == NO_INDEX else url


@contextmanager
def open_index(url: str, *, write: bool) -> Iterator[sqlite3.Connection]:
    """A transaction, committed at the end if nothing was raised.

    With `write`, the table is made if it is not there, and writers wait for each other.
    Raises IndexTroubleError, also for what the database raises within the block, and for an empty
    `url`, which means that none is kept.
    """
    if not url:
        raise IndexTroubleError("there is no index", hint=f"`{NO_INDEX}` was given: name another")
    path = Path(url).absolute()
    if path.is_dir() or "://" in url:
        hint = "give the path of a file that is an index, or is to become one"
        raise IndexTroubleError("the index is no path of a file", hint=hint)
    if not write and not path.exists():
        raise IndexTroubleError(f"there is no index at {path}", hint=_REBUILD)
    try:
        connection = sqlite3.connect(path, timeout=_TIMEOUT_SECONDS, isolation_level=None)
        with closing(connection):  # which rolls back what is not committed
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            _check_version(connection, path)
            if write:
                connection.execute(_TABLE)
            yield connection
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise IndexTroubleError(
            f"the index {path}: {error}",
            hint=f"can {path} be {'written' if write else 'read'}? If it is damaged, move it away: "
            "`skillup trends --rebuild` makes another from the runs that are there",
        ) from error


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raises IndexTroubleError if there are tables, and they are not of this version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and version != INDEX_VERSION:
        raise IndexTroubleError(
            f"the index {path} has version {version}; this skillup knows {INDEX_VERSION}",
            hint="name another with --index, and fill it with `skillup trends --rebuild`",
        )
    if not tables:
        connection.execute(f"PRAGMA user_version = {INDEX_VERSION}")


# What is in it.


@cache
def _reader() -> TypeAdapter[RunOutcomes]:
    return TypeAdapter(RunOutcomes)


def all_runs(connection: sqlite3.Connection) -> list[RunOutcomes]:
    """The oldest first."""
    return [_reader().validate_json(text) for (text,) in connection.execute(_BY_START)]


def add_run(url: str, run: RunOutcomes) -> None:
    """Index `run`; one that is there is replaced, for it may have been resumed.

    Raises IndexTroubleError.
    """
    data = asdict(replace(run, digests={}))
    row = (run.run_id, run.started_at, run.path, json.dumps(data, ensure_ascii=False))
    # Half a character, as of a file's name, is no text to a database.
    texts = [text.encode("utf-8", "replace").decode() for text in row]
    with open_index(url, write=True) as connection:
        connection.execute("INSERT OR REPLACE INTO skillup_runs VALUES (?, ?, ?, ?)", texts)


def rebuild(url: str, runs_folder: Path) -> Iterator[tuple[Path, RunDirectoryError | None]]:
    """Index every run in `runs_folder`, and those elsewhere that the index knows, anew.

    Yields each directory with what was wrong with it, if anything. Runs whose directories have gone
    stay in the index. Raises IndexTroubleError.
    """
    with open_index(url, write=True) as connection:
        paths = connection.execute("SELECT path FROM skillup_runs ORDER BY path").fetchall()
    here = sorted(runs_folder.iterdir()) if runs_folder.is_dir() else []
    for path in filter(is_run, dict.fromkeys([*here, *(Path(path) for (path,) in paths)])):
        try:
            add_run(url, read_run(path))
        except RunDirectoryError as error:
            yield path, error
        else:
            yield path, None
