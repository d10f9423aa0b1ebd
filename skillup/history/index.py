"""The index of past runs (an SQLite file, or a PostgreSQL database that machines share); runs by
name (directory, id or its beginning, `last`), and the run that one is compared with.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from skillup.errors import IndexTroubleError, RunDirectoryError, UsageError
from skillup.history.runs import RunOutcomes, read_run
from skillup.store.places import HOME_DIRECTORY, home_directory, is_run, runs_in
from skillup.store.remote import download, is_url

INDEX_VARIABLE = "SKILLUP_INDEX"
NO_INDEX = "none"
LAST = "last"
PREVIOUS = "previous"
_SHOWN = 5
_TIMEOUT_SECONDS = 30  # For another run that is writing, and for a server to answer
_TABLE, _MARKS = "skillup_runs_7", "skillup_marks_6"
"""With the version of what is in them: other versions of skillup have their own beside them."""
_REBUILD = "runs are indexed as they end; `skillup trends --rebuild` indexes older ones"
_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/\s]*)(?::[^@/\s]*)?@)?"
    r"(?P<server>[^@/?\s]*(?:/[^@/?\s]*)?)(?:\?[^@\s]*)?"
)


def index_url(
    given: str | None, environment: Mapping[str, str], workspace_root: Path, *, write: bool
) -> str:
    """What `--index`, else SKILLUP_INDEX names (empty: `none`), else the file beside the runs; its
    directory is made with `write`. Raises RunDirectoryError if that cannot be.
    """
    url = given or environment.get(INDEX_VARIABLE)
    if not url:
        home = home_directory(workspace_root) if write else workspace_root / HOME_DIRECTORY
        return str(home / "index.sqlite")
    return "" if url == NO_INDEX else url


class _Database(NamedTuple):
    """What differs between SQLite and PostgreSQL."""

    name: str  # Its path or URL for messages, without a password
    connect: Callable[[], Any]  # A DB-API connection that begins no transaction by itself
    error: type[Exception]
    placeholder: str
    begin: str
    has_table: str  # A query for a table's name; NULL if it is not there
    hint: str


Execute = Callable[..., list[Any]]
"""Of a statement, with a text for each `?` in it: the rows that it gives."""


@contextmanager
def open_index(url: str, *, write: bool) -> Iterator[Execute]:
    """A transaction, committed at the end if nothing was raised; with `write`, of one at a time.

    Raises IndexTroubleError, also for what the database raises within the block, and for an empty
    `url`, which means that none is kept.
    """
    if not url:
        raise IndexTroubleError("there is no index", hint=f"`{NO_INDEX}` was given: name another")
    database = (_postgresql if "://" in url else _sqlite)(url, write=write)
    try:
        with closing(database.connect()) as connection:  # which rolls back what is not committed

            def execute(sql: str, *values: str) -> list[Any]:
                cursor = connection.cursor()
                cursor.execute(sql.replace("?", database.placeholder), values)
                return cursor.fetchall() if cursor.description else []

            execute(database.begin)
            if write:
                # Times are UTC in ISO 8601, so that they sort as text.
                execute(
                    f"CREATE TABLE IF NOT EXISTS {_TABLE} (run_id TEXT PRIMARY KEY, "
                    "started_at TEXT NOT NULL, path TEXT NOT NULL, repository TEXT NOT NULL, "
                    "branch TEXT NOT NULL, label TEXT NOT NULL, outcomes TEXT NOT NULL)"
                )
                execute(
                    f"CREATE TABLE IF NOT EXISTS {_MARKS} (repository TEXT, scope TEXT, "
                    "subject TEXT, run_id TEXT NOT NULL, PRIMARY KEY (repository, scope, subject))"
                )
            elif execute(database.has_table, _TABLE)[0][0] is None:
                name = database.name
                raise IndexTroubleError(f"no run is in the index {name} yet", hint=_REBUILD)
            yield execute
            execute("COMMIT")
    except database.error as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise IndexTroubleError(
            f"the index {database.name}: {reason}", hint=database.hint
        ) from error


def _sqlite(url: str, *, write: bool) -> _Database:
    path = Path(url).absolute()
    if path.is_dir():
        hint = "give the path of a file that is an index, or is to become one"
        raise IndexTroubleError(f"the index {path} is a directory", hint=hint)
    if not write and not path.exists():
        raise IndexTroubleError(f"there is no index at {path}", hint=_REBUILD)
    return _Database(
        name=str(path),
        connect=lambda: sqlite3.connect(path, timeout=_TIMEOUT_SECONDS, isolation_level=None),
        error=sqlite3.Error,
        placeholder="?",
        begin="BEGIN IMMEDIATE" if write else "BEGIN",  # who began by reading could not wait
        has_table="SELECT max(name) FROM sqlite_master WHERE name = ?",
        hint=f"can {path} be {'written' if write else 'read'}? If it is damaged, move it away: "
        "`skillup trends --rebuild` makes another from the runs that are there",
    )


def _postgresql(url: str, *, write: bool) -> _Database:
    """Through psycopg (the extra `postgresql`). Errors do not show a password."""
    unreadable = IndexTroubleError(
        "the index is neither the path of a file nor the URL of a PostgreSQL database",
        hint="for example postgresql://user@host/database; in a password, @ and / are %40 and %2F",
    )
    parts = _URL.fullmatch(url)
    if parts is None:
        raise unreadable
    name = f"postgresql://{parts['user'] + '@' if parts['user'] else ''}{parts['server']}"
    try:
        import psycopg
    except ImportError as error:
        raise IndexTroubleError(
            f"the index {name}: its driver is not installed ({error})",
            hint="pip install 'skillup-eval[postgresql]'",
        ) from error

    def connect() -> Any:
        try:
            return psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=_TIMEOUT_SECONDS,
                client_encoding="utf8",  # else a database in SQL_ASCII would give bytes for texts
            )
        except psycopg.ProgrammingError:
            raise unreadable from None

    # The lock: for a table that two runs make at once, and a run that two processes index.
    lock = "; SELECT pg_advisory_xact_lock(795247108)" if write else ""
    return _Database(
        name=name,
        connect=connect,
        error=psycopg.Error,
        placeholder="%s",
        begin="BEGIN" + lock,
        has_table="SELECT to_regclass(?)::text",
        hint="is the server there, and are name, password and database right?",
    )


@cache
def _reader() -> TypeAdapter[RunOutcomes]:
    return TypeAdapter(RunOutcomes)


class IndexedRun(NamedTuple):
    """What is known of a run without reading its outcomes."""

    run_id: str
    started_at: str
    path: str
    repository: str
    branch: str
    label: str


_COLUMNS = ", ".join(IndexedRun._fields)


def indexed_runs(execute: Execute, repository: str | None = None) -> list[IndexedRun]:
    """Those of `repository` (None: of all), the oldest first."""
    where, values = ("WHERE repository = ? ", (repository,)) if repository is not None else ("", ())
    sql = f"SELECT {_COLUMNS} FROM {_TABLE} {where}ORDER BY started_at, run_id"  # noqa: S608
    return [IndexedRun(*row) for row in execute(sql, *values)]


def outcomes_of(execute: Execute, run_id: str) -> RunOutcomes:
    """Of a run that is in the index."""
    [[text]] = execute(f"SELECT outcomes FROM {_TABLE} WHERE run_id = ?", run_id)  # noqa: S608
    try:
        return _reader().validate_json(text)
    except ValidationError:
        raise IndexTroubleError(
            f"what the index has of the run {run_id} is damaged",
            hint="`skillup trends --rebuild` enters it again; if the run is gone, move the index "
            "away before that",
        ) from None


def all_runs(
    url: str, repository: str | None = None, branch: str | None = None, newest: int = 0
) -> list[RunOutcomes]:
    """Those of the repository and the branch (None: of all), the oldest first; `newest`: only so
    many. Raises IndexTroubleError.
    """
    with open_index(url, write=False) as execute:
        found = [r for r in indexed_runs(execute, repository) if branch in (None, r.branch)]
        return [outcomes_of(execute, run.run_id) for run in found[-newest:]]


def add_run(url: str, run: RunOutcomes) -> None:
    """One that is there is replaced: it may have been resumed. Raises IndexTroubleError."""
    about, write = run.about, partial(json.dumps, ensure_ascii=False, default=to_jsonable_python)
    # Of many trials: while all of one value is written, it is several times as large.
    data = write(replace(run, trials=()))
    data = data.replace('"trials": []', f'"trials": [{",".join(map(write, run.trials))}]', 1)
    row = (run.run_id, run.started_at, run.path, about.repository, about.branch, about.label, data)
    # Half a character, as of a file's name, is no text to a database.
    texts = [t if t.isascii() else t.encode("utf-8", "replace").decode() for t in row]
    with open_index(url, write=True) as execute:
        execute(f"DELETE FROM {_TABLE} WHERE run_id = ?", run.run_id)  # noqa: S608
        execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)", *texts)  # noqa: S608


def forget_run(url: str, run_id: str) -> None:
    """Take a run out of the index. Raises IndexTroubleError."""
    with open_index(url, write=True) as execute:
        execute(f"DELETE FROM {_TABLE} WHERE run_id = ?", run_id)  # noqa: S608


# Marks: runs that somebody pinned or accepted something from.


def marks(execute: Execute, repository: str) -> dict[tuple[str, str], str]:
    """The marked run by scope (a branch, or ``label:LABEL``) and subject (of a pin it is empty, of
    what was accepted the key of a case, as JSON).
    """
    sql = f"SELECT scope, subject, run_id FROM {_MARKS} WHERE repository = ? ORDER BY 1, 2"  # noqa: S608
    return {(scope, subject): run_id for scope, subject, run_id in execute(sql, repository)}


def set_marks(url: str, repository: str, given: Mapping[tuple[str, str], str | None]) -> None:
    """Each by scope and subject; None takes it away. Raises IndexTroubleError."""
    with open_index(url, write=True) as execute:
        for place, run_id in given.items():
            own = "repository = ? AND scope = ? AND subject = ?"
            execute(f"DELETE FROM {_MARKS} WHERE {own}", repository, *place)  # noqa: S608
            if run_id is not None:
                execute(f"INSERT INTO {_MARKS} VALUES (?, ?, ?, ?)", repository, *place, run_id)  # noqa: S608


def rebuild(url: str, runs_folder: Path) -> Iterator[tuple[Path, RunDirectoryError | None]]:
    """Index every run in `runs_folder`, and those elsewhere that the index knows, anew; each with
    what was wrong, if anything. Those that have gone stay as they are. Raises IndexTroubleError.
    """
    with open_index(url, write=True) as execute:
        paths = execute(f"SELECT path FROM {_TABLE} ORDER BY path")  # noqa: S608
    here = sorted(runs_folder.iterdir()) if runs_folder.is_dir() else []
    for path in filter(is_run, dict.fromkeys([*here, *(Path(path) for (path,) in paths)])):
        error = None
        try:
            add_run(url, read_run(path))
        except RunDirectoryError as problem:
            error = problem
        yield path, error


# Runs by name, and the baseline of one.


def find_run(name: str, url: str, runs_folder: Path, repository: str | None = None) -> RunOutcomes:
    """The run that `name` means: a run directory, else by its id or label what `runs_folder` or the
    index has (which may be older, so a directory that is there is read). With a separator it is a
    path only; `last` and labels are those of `repository` (None: of all). Raises UsageError if
    `name` means none or several, RunDirectoryError if it cannot be read, and IndexTroubleError.
    """
    if not name:
        raise UsageError("the name of a run is empty", hint="give its directory or id, or `last`")
    if is_url(name):
        return replace(read_run(download(name)), path=name)
    folders = runs_in(runs_folder)
    if name == LAST and folders:
        return read_run(runs_folder / folders[-1])
    # os.path: Path.exists raises for a long name.
    if os.sep in name or (name != LAST and os.path.exists(name)):  # noqa: PTH110
        return read_run(Path(name))
    here = {folder for folder in folders if folder.startswith(name)}
    try:
        with open_index(url, write=False) as execute:
            indexed = indexed_runs(execute)[::-1]
            own = [run for run in indexed if repository in (None, run.repository)]
            named = [run.run_id for run in own if name in (run.label, LAST)]
            ids = [run.run_id for run in indexed]
            begin = {run for run in ids if run.startswith(name)}
            chosen = named[0] if named else _only(name, here | begin, ids)
            if chosen not in here:
                indexed_run = outcomes_of(execute, chosen)
                path = Path(indexed_run.path)
                found = read_run(path) if is_run(path) else indexed_run
                # Its directory may hold another run by now.
                return found if found.run_id == chosen else indexed_run
    except IndexTroubleError:
        if not here:
            raise
        chosen = _only(name, here, [])
    return read_run(runs_folder / chosen)


def _only(name: str, found: set[str], newest: Sequence[str]) -> str:
    if len(found) == 1 or name in found:
        return name if name in found else next(iter(found))
    if found:
        some = ", ".join(sorted(found)[:_SHOWN])
        raise UsageError(f"{len(found)} runs begin with {name}", hint=f"give more of it: {some}")
    known = f"the newest ones: {', '.join(newest[:_SHOWN])}"
    rebuild = "`skillup trends --rebuild` indexes the runs that are there"
    raise UsageError(f"there is no run {name}", hint=known if newest else rebuild)
