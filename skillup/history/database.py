"""Where the index of past runs is, and one transaction in it: an SQLite file, or PostgreSQL."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from skillup.errors import IndexTroubleError
from skillup.store.places import default_index_path

INDEX_VARIABLE = "SKILLUP_INDEX"
NO_INDEX = "none"
INDEX_VERSION = 2
_TIMEOUT_SECONDS = 30
"""For another run that is writing, and for a server to answer."""

# Times are UTC in ISO 8601, so that they sort as text. Suite, case and number of a trial are no
# key: two suites may have the same name.
_TABLES = (
    "CREATE TABLE skillup_index (version INTEGER PRIMARY KEY)",
    """CREATE TABLE skillup_runs (
        run_id TEXT PRIMARY KEY, started_at TEXT NOT NULL, path TEXT NOT NULL,
        finished BOOLEAN NOT NULL, gates TEXT NOT NULL, until_decided BOOLEAN NOT NULL,
        asked TEXT, narrowed BOOLEAN)""",
    "CREATE INDEX skillup_runs_by_start ON skillup_runs (started_at)",
    """CREATE TABLE skillup_trials (
        run_id TEXT NOT NULL REFERENCES skillup_runs (run_id), position INTEGER NOT NULL,
        suite TEXT NOT NULL, case_id TEXT NOT NULL, engine TEXT NOT NULL, variant TEXT NOT NULL,
        trial INTEGER NOT NULL, status TEXT NOT NULL, score DOUBLE PRECISION NOT NULL,
        cost_usd DOUBLE PRECISION, duration_ms INTEGER NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (run_id, position))""",
    "CREATE INDEX skillup_trials_of_case ON skillup_trials (suite, case_id, engine, variant)",
)
_POSTGRESQL_URL = re.compile(
    r"(?P<scheme>postgres(?:ql)?(?:\+psycopg)?)://(?:(?P<user>[^:@/\s]*)(?::[^@/\s]*)?@)?"
    r"(?P<server>[^@/?\s]*(?:/[^@/?\s]*)?)(?:\?[^@\s]*)?"
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

    def insert(self, table: str, rows: Sequence[Mapping[str, object]]) -> None:
        """All of `rows`, which have the same columns."""
        if rows:
            places = ", ".join([self._placeholder] * len(rows[0]))
            sql = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({places})"  # noqa: S608
            self._connection.cursor().executemany(sql, [tuple(row.values()) for row in rows])


class _Database(NamedTuple):
    """What differs between the two."""

    shown: str
    """Its path or URL, without a password."""
    connect: Callable[[], Any]
    """A connection that begins no transaction by itself."""
    error: type[Exception]
    placeholder: str
    begin: str
    has_tables: str
    """A query for one value, which is NULL if nothing was ever written."""
    hint: str


@contextmanager
def open_index(url: str, *, write: bool) -> Iterator[Index]:
    """A transaction, committed at the end if nothing was raised.

    With `write`, the tables are made if they are not there, and writers wait for each other.
    Raises IndexTroubleError, also for what the database raises within the block, and for an empty
    `url`, which means that none is kept.
    """
    if not url:
        raise IndexTroubleError("there is no index", hint=f"`{NO_INDEX}` was said: name another")
    database = _postgresql(url, write=write) if "://" in url else _sqlite(url, write=write)
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
            f"the index {database.shown}: {reason}", hint=database.hint
        ) from error


def _sqlite(url: str, *, write: bool) -> _Database:
    path = Path(url).absolute()
    if path.is_dir():
        hint = "give the path of a file that is an index, or is to become one"
        raise IndexTroubleError(f"the index {path} is a directory", hint=hint)
    if not write and not path.exists():
        raise IndexTroubleError(f"there is no index at {path}", hint=_REBUILD)
    return _Database(
        shown=str(path),
        connect=lambda: sqlite3.connect(path, timeout=_TIMEOUT_SECONDS, isolation_level=None),
        error=sqlite3.Error,
        placeholder="?",
        begin="BEGIN IMMEDIATE" if write else "BEGIN",  # who began by reading could not wait
        has_tables="SELECT max(name) FROM sqlite_master WHERE name = 'skillup_index'",
        hint=f"can {path} be {'written' if write else 'read'}? If it is damaged, move it away: "
        "`skillup trends --rebuild` makes another from the runs that are there",
    )


def _postgresql(url: str, *, write: bool) -> _Database:
    # Not shown as it is: there may be a password in it.
    unreadable = IndexTroubleError(
        "the index is neither the path of a file nor the URL of a PostgreSQL database",
        hint="for example postgresql://user@host/database; in a password, @ and / are %40 and %2F",
    )
    parts = _POSTGRESQL_URL.fullmatch(url)
    if parts is None:
        raise unreadable
    shown = f"postgresql://{parts['user'] + '@' if parts['user'] else ''}{parts['server']}"
    try:
        import psycopg
    except ImportError as error:
        raise IndexTroubleError(
            f"the index {shown}: its driver is not installed ({error})",
            hint="pip install 'skillup-eval[postgresql]'",
        ) from error

    def connect() -> Any:
        try:
            return psycopg.connect(
                "postgresql" + url[parts.end("scheme") :],
                autocommit=True,
                connect_timeout=_TIMEOUT_SECONDS,
                client_encoding="utf8",  # else a database in SQL_ASCII would give bytes for texts
            )
        except psycopg.ProgrammingError:
            raise unreadable from None

    # The lock: for tables that two runs make at once, and a run that two processes index.
    lock = "; SELECT pg_advisory_xact_lock(795247108)" if write else ""
    return _Database(
        shown=shown,
        connect=connect,
        error=psycopg.Error,
        placeholder="%s",
        begin="BEGIN" + lock,
        has_tables="SELECT to_regclass('skillup_index')::text",
        hint="is the server there, and are name, password and database right?",
    )


_REBUILD = "runs are indexed as they end; `skillup trends --rebuild` indexes older ones"


def _check_version(index: Index, database: _Database, *, write: bool) -> None:
    """Raises IndexTroubleError unless the tables are of this version; makes them if need be."""
    if index.execute(database.has_tables)[0][0] is None:
        if not write:
            raise IndexTroubleError(f"the index {database.shown} holds nothing yet", hint=_REBUILD)
        for statement in _TABLES:
            index.execute(statement)
        index.insert("skillup_index", [{"version": INDEX_VERSION}])
        return
    version = index.execute("SELECT max(version) FROM skillup_index")[0][0]
    if version != INDEX_VERSION:
        raise IndexTroubleError(
            f"the index {database.shown} has version {version}; this skillup knows {INDEX_VERSION}",
            hint="name another with --index, and fill it with `skillup trends --rebuild`"
            + ("" if (version or 0) < INDEX_VERSION else "; a newer skillup made this one"),
        )
