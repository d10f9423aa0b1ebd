"""What an index needs of its database; PostgreSQL through psycopg (the extra `postgresql`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from skillup.errors import IndexTroubleError

_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/\s]*)(?::[^@/\s]*)?@)?"
    r"(?P<server>[^@/?\s]*(?:/[^@/?\s]*)?)(?:\?[^@\s]*)?"
)


class Database(NamedTuple):
    """What differs between SQLite and PostgreSQL."""

    name: str  # Its path or URL for messages, without a password
    connect: Callable[[], Any]  # A DB-API connection that begins no transaction by itself
    error: type[Exception]
    placeholder: str
    begin: str
    has_table: str  # A query for a table's name; NULL if it is not there
    hint: str


def postgresql(url: str, *, write: bool, timeout_seconds: int) -> Database:
    """The database at `url`. Raises IndexTroubleError, which does not show a password."""
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
                connect_timeout=timeout_seconds,
                client_encoding="utf8",  # else a database in SQL_ASCII would give bytes for texts
            )
        except psycopg.ProgrammingError:
            raise unreadable from None

    # The lock: for a table that two runs make at once, and a run that two processes index.
    lock = "; SELECT pg_advisory_xact_lock(795247108)" if write else ""
    return Database(
        name=name,
        connect=connect,
        error=psycopg.Error,
        placeholder="%s",
        begin="BEGIN" + lock,
        has_table="SELECT to_regclass(?)::text",
        hint="is the server there, and are name, password and database right?",
    )
