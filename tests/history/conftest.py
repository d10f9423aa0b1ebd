"""Indexes: an SQLite file, and a database of a real PostgreSQL server."""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_GUARD_SECONDS = 60


def programs() -> Path | None:
    """The directory of `initdb` and `postgres`; None: they are not installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    package = importlib.util.find_spec("pgserver")
    packaged = (package.submodule_search_locations or []) if package is not None else []
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), Path("/opt/homebrew/bin")]
    places += [Path(place, "pginstall/bin") for place in packaged]
    return next((place for place in places if (place / "initdb").exists()), None)


@contextmanager
def server(bin_directory: Path) -> Iterator[str]:
    """The URL of a new server's database `postgres`; it listens on a socket only.

    PostgreSQL refuses to run as root; then it runs as `nobody`.
    """
    user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    # Not pytest's directory: that is closed to other users, and too long a path for a socket.
    with tempfile.TemporaryDirectory(prefix="skillup-pg-", dir="/tmp") as home:
        account = pwd.getpwnam(user)
        if os.geteuid() == 0:
            os.chown(home, account.pw_uid, account.pw_gid)
        data, programs = Path(home) / "data", bin_directory
        if os.geteuid() == 0 and bin_directory.parent.name == "pginstall":
            # A virtual environment may be closed to `nobody`.
            package = bin_directory.parents[1]
            for folder in (package, package.with_name("pgserver.libs")):
                shutil.copytree(folder, Path(home) / folder.name)
            programs = Path(home, "pgserver/pginstall/bin")

        def run(program: str, *arguments: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [programs / program, "-D", data, *arguments],
                cwd=home,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": home},
                user=account.pw_uid if os.geteuid() == 0 else None,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        made = run("initdb", "--encoding=UTF8", "--auth=trust", "--no-sync", "-U", "skillup")
        assert made.wait(_GUARD_SECONDS) == 0
        postgres = run("postgres", "-k", home, "-c", "listen_addresses=", "-c", "fsync=off")
        try:
            _wait_for(Path(home) / ".s.PGSQL.5432", postgres)
            yield f"postgresql://skillup@/postgres?host={home}"
        finally:
            postgres.terminate()
            postgres.wait(_GUARD_SECONDS)


def _wait_for(socket: Path, postgres: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _GUARD_SECONDS
    # The lock file is complete when the server accepts connections.
    ready = socket.parent / "data" / "postmaster.pid"
    while not (socket.exists() and "ready" in ready.read_text()):
        assert postgres.poll() is None, "the server has ended"
        assert time.monotonic() < give_up, "the server does not start"
        time.sleep(0.05)


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
