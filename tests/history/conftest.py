"""An empty index: an SQLite file, and a database of a real PostgreSQL where one is installed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgresql import programs, server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server's own database."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed (no initdb)")
    pytest.importorskip("psycopg", reason="the driver of PostgreSQL (psycopg) is not installed")
    with server(found) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an index that nobody has written."""
    if request.param == "sqlite":
        return str(tmp_path / "index.sqlite")
    import psycopg

    url: str = request.getfixturevalue("postgresql")
    name = f"index_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return url.replace("/postgres?", f"/{name}?")
