"""Opening the index: SQLite or PostgreSQL through SQLAlchemy, its version checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from skillup.errors import IndexTroubleError
from skillup.trends.index.place import NO_INDEX
from skillup.trends.index.tables import INDEX_VERSION, about, metadata

_PATIENCE_SECONDS = 30
"""To wait for another run that is writing, or for a server to answer."""


@contextmanager
def open_index(url: str, *, write: bool) -> Iterator[Connection]:
    """A connection in one transaction, committed at the end if nothing was raised.

    With `write`, the tables are made if they are not there, and an SQLite file is locked from the
    start, so that writers wait for each other. Raises IndexTroubleError, also for what is raised by
    the database within the block, and for an empty `url`, which means that none is kept.
    """
    if not url:
        raise IndexTroubleError("there is no index", hint=f"`{NO_INDEX}` was said: name another")
    place = _place(url)
    shown = place.database or "" if _is_file(place) else place.render_as_string(hide_password=True)
    if not write and place.database and _is_file(place) and not Path(place.database).exists():
        raise IndexTroubleError(
            f"there is no index at {place.database}",
            hint="runs are indexed as they end; `skillup trends --rebuild` indexes older ones",
        )
    if place.database and _is_file(place) and Path(place.database).is_dir():
        hint = "give the path of a file that is an index, or is to become one"
        raise IndexTroubleError(f"the index {shown} is a directory", hint=hint)
    engine = _engine(place, shown, write=write)
    try:
        with engine.begin() as connection:
            if write and engine.dialect.name == "postgresql":
                # Tables that two runs make at once, and a run that two processes index.
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(795247108)")
            _check_version(connection, shown, write=write)
            yield connection
    except SQLAlchemyError as error:
        raise IndexTroubleError(
            f"the index {shown}: {_reason(error)}", hint=_hint(place, write=write)
        ) from error
    finally:
        engine.dispose()


def _place(url: str) -> URL:
    if "://" not in url:
        return URL.create("sqlite", database=str(Path(url).absolute()))
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        # Not shown as it is: there may be a password in it.
        raise IndexTroubleError(
            "the index is no URL that can be read",
            hint="for example postgresql+psycopg://user@host/database, or the path of a file",
        ) from None


def _is_file(place: URL) -> bool:
    return place.get_backend_name() == "sqlite"


def _engine(place: URL, shown: str, *, write: bool) -> Engine:
    arguments: dict[str, Any] = {}
    if _is_file(place):
        arguments["timeout"] = _PATIENCE_SECONDS
    elif place.drivername.partition("+")[2] in ("", "psycopg", "psycopg2"):
        # Else a database in SQL_ASCII would give bytes for texts.
        arguments |= {"connect_timeout": _PATIENCE_SECONDS, "client_encoding": "utf8"}
    try:
        engine = create_engine(place, connect_args=arguments, poolclass=NullPool)
    except (NoSuchModuleError, ImportError) as error:
        raise IndexTroubleError(
            f"the index {shown}: its driver is not installed ({error})",
            hint="for PostgreSQL: pip install 'skillup-eval[postgresql]', and a URL that begins "
            "with postgresql+psycopg://",
        ) from error
    if _is_file(place):
        _lock_from_the_start(engine, "BEGIN IMMEDIATE" if write else "BEGIN")
    return engine


def _lock_from_the_start(engine: Engine, begin: str) -> None:
    """Python's driver begins when it sees fit; a writer that began by reading cannot wait."""

    @event.listens_for(engine, "connect")
    def _(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql(begin)


def _check_version(connection: Connection, shown: str, *, write: bool) -> None:
    """Raises IndexTroubleError unless the tables are of this version; makes them if need be."""
    if not inspect(connection).has_table(about.name):
        if not write:
            raise IndexTroubleError(
                f"the index {shown} holds nothing yet",
                hint="runs are indexed as they end; `skillup trends --rebuild` indexes older ones",
            )
        metadata.create_all(connection)
        connection.execute(about.insert().values(version=INDEX_VERSION))
        return
    version = connection.execute(select(about.c.version)).scalar()
    if version == INDEX_VERSION:
        if write:
            metadata.create_all(connection)  # a table that came later
        return
    if version is not None and version > INDEX_VERSION:
        raise IndexTroubleError(
            f"the index {shown} has version {version}; this skillup knows {INDEX_VERSION}",
            hint="a newer skillup made it: use that one, or another index with --index",
        )
    raise IndexTroubleError(
        f"the index {shown} has version {version}, which is none",
        hint="name another with --index, and fill it with `skillup trends --rebuild`",
    )


def _reason(error: SQLAlchemyError) -> str:
    original = getattr(error, "orig", None)
    text = str(original if original is not None else error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _hint(place: URL, *, write: bool) -> str:
    if not _is_file(place):
        return "is the server there, and are name, password and database right?"
    doing = "written" if write else "read"
    return (
        f"can {place.database} be {doing}? If it is damaged, move it away: "
        "`skillup trends --rebuild` makes another from the runs that are there"
    )
