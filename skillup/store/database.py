"""The file of a run, `run.sqlite`: its tables, and the thread that commits what is written.

Whoever writes does not wait for the disk: a thread executes and commits what has come meanwhile, so
many trials share one sync. :meth:`Database.committed` waits until what was written is on the disk.
Readers open the file read-only while the run goes on. SQLite's file format:
https://sqlite.org/fileformat2.html
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from skillup.dataclass import frozen
from skillup.errors import ExitCode, RunDirectoryError
from skillup.store.files import REFUSALS, disk_errors, file_system, pack, refusal, sync_directory

if TYPE_CHECKING:
    import asyncio

APPLICATION_ID = 0x534B5550  # "SKUP", for file(1) and for us
VERSION = 2  # `user_version`: of the tables in `tables.sql`, and of what is in them
NEW_FILE = ".run.sqlite.new"
"""A run's file that is being made; one that is left is nobody's."""

_BUSY_SECONDS = 30.0
_MOST_WAITING_BYTES = 64 << 20
_PAUSE_SECONDS = 0.25  # So long what nobody waits for may remain uncommitted
_GROUP_SECONDS = 0.05
"""From one commit to the next where only tasks of an event loop wait: they have others beside."""
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afpfs", "webdav", "lustre"}
)
"""File systems without the shared memory that a write-ahead log needs."""

Statement = Callable[[sqlite3.Connection], object]


@frozen
class Unpacked:
    """A value that :meth:`Database.execute` is to compress."""

    data: bytes


def create(path: Path, first: Statement) -> None:
    """Makes the file with what `first` writes, whole or not at all. Raises RunDirectoryError."""
    new = path.with_name(NEW_FILE)
    tables = Path(__file__).with_name("tables.sql").read_text("utf-8")
    if sqlite3.sqlite_version_info < (3, 37):
        tables = tables.replace(") STRICT;", ");")
    with disk_errors("make", path):
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")  # nobody needs a part of it
            connection.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID};"
                f" PRAGMA user_version = {VERSION}; {tables}"
            )
            first(connection)
            connection.execute("COMMIT")
        new.replace(path)
        sync_directory(path.parent)


def copy_database(path: Path, copy: Path) -> None:
    """Copies what is committed to one file, while others write, too. Raises RunDirectoryError."""
    with disk_errors("copy", path), closing(_connect(path, "ro")) as source:
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # no log beside it


class Database:
    """One run's file, for reading, or as long as it is `writable` for writing, too, by one process
    at a time, of which a thread commits.

    Safe for any number of threads. Whatever SQLite refuses is a RunDirectoryError: where a write
    fails, at the next call.
    """

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        """Opens the file. Raises RunDirectoryError."""
        self.path, self.writable = path, writable
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._room = threading.Condition()
        """Has all that follows."""
        self._closed = False
        self._waiting: list[Statement] = []
        self._waiting_bytes = 0
        self._put = self._committed = 0
        self._done: list[Callable[[], object]] = []
        self._loops: dict[asyncio.AbstractEventLoop, asyncio.Event] = {}
        """Of tasks that wait for the next commit; each loop is woken once for all of its own."""
        self._awaited, self._urgent = threading.Event(), threading.Event()
        with disk_errors("open", path), ExitStack() as opened:
            if writable:
                self._connection = opened.enter_context(closing(_connect(path, "rw")))
                # Readers would wait for a rollback journal's writer, but where there is no shared
                # memory a write-ahead log would lose data.
                mode = "DELETE" if file_system(path) in _NETWORK else "WAL"
                self._connection.execute(f"PRAGMA journal_mode = {mode}")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute("PRAGMA foreign_keys = ON")
                self._seen = self._of_others()
            self._reader = opened.enter_context(closing(_connect(path, "ro")))
            opened.pop_all()
        weakref.finalize(self, self._reader.close)  # for those who only read and go
        if writable:
            self._thread = threading.Thread(target=self._write, name="skillup-writer", daemon=True)
            self._thread.start()

    def put(
        self, statement: Statement, size: int = 0, done: Callable[[], object] | None = None
    ) -> None:
        """Has `statement` executed after all that came before it; it writes `size` bytes.

        `done` is called, in the thread, once it is committed or has failed.
        """
        if not self.writable:
            raise RuntimeError(f"{self.path} is open for reading only; open it with writable=True")
        self._raise_failure()
        with self._room:
            if size:
                self._room.wait_for(lambda: self._waiting_bytes < _MOST_WAITING_BYTES)
            if self._closed:
                raise RuntimeError(f"{self.path} is closed")
            self._put += 1
            self._waiting.append(statement)
            self._waiting_bytes += size
            if done is not None:
                self._done.append(done)
            if self._waiting_bytes > _MOST_WAITING_BYTES // 8:
                self._hurry()

    def execute(self, sql: str, *parameters: Any, done: Callable[[], object] | None = None) -> None:
        """Like :meth:`put`, of one statement; what is :class:`Unpacked` is packed in the thread."""

        def statement(connection: sqlite3.Connection) -> None:
            # Lists: done many times for each trial, and quicker than generators.
            packed = [pack(v.data) if type(v) is Unpacked else v for v in parameters]
            connection.execute(sql, packed)

        size = sum([len(v.data) for v in parameters if type(v) is Unpacked])
        self.put(statement, size, done)

    async def committed(self) -> None:
        """Waits until all that was put so far is on the disk."""
        import asyncio  # those who only read do without

        loop, done = asyncio.get_running_loop(), None
        with self._room:
            if self.writable and not self._closed:
                done = self._loops.setdefault(loop, asyncio.Event())
                self._awaited.set()
        if done is not None:
            await done.wait()
        self._raise_failure()

    def sync(self) -> None:
        """Like :meth:`committed`, for those who may block."""
        with self._room:
            put = self._put
            self._hurry()
            self._room.wait_for(lambda: self._committed >= put)
        self._raise_failure()

    def _hurry(self) -> None:
        self._urgent.set()
        self._awaited.set()

    def _raise_failure(self) -> None:
        if isinstance(self._failure, REFUSALS):
            raise refusal("write", self.path, self._failure) from self._failure
        if self._failure is not None:
            raise self._failure

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """What a query finds; what was put before is committed first."""
        if self._put > self._committed:
            self.sync()
        return self.committed_rows(sql, *parameters)

    def committed_rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """What a query finds, at once; what was put before may not be there yet."""
        with self._lock, disk_errors("read", self.path):
            return self._reader.execute(sql, parameters).fetchall()

    def each(self, sql: str, *parameters: Any, many: int = 100) -> Iterator[tuple[Any, ...]]:
        """Like :meth:`rows`, `many` at a time in memory, from a connection of its own."""
        if self._put > self._committed:
            self.sync()
        with disk_errors("read", self.path), closing(_connect(self.path, "ro")) as connection:
            cursor = connection.execute(sql, parameters)
            while found := cursor.fetchmany(many):
                yield from found

    def value(self, sql: str, *parameters: Any) -> Any:
        """The first column of the first row; None if there is none."""
        found = self.rows(sql, *parameters)
        return found[0][0] if found else None

    def check_unchanged(self) -> None:
        """Closes, and raises RunDirectoryError, if another program wrote while the run went on."""
        if self.rows("SELECT 1 FROM run WHERE name = 'changed'"):
            self.close()
            raise _changed(self.path)

    def close(self) -> None:
        """Commits what waits, and lets go of the file; may be called again.

        Raises RunDirectoryError if something could not be written.
        """
        with self._lock:  # a query that is under way would crash the process
            self._reader.close()  # before: who closes last clears the log away
        if not self.writable:
            return
        with self._room:
            self._closed = True  # nobody comes after it, and waits for ever
        self._hurry()
        self._thread.join()
        self.writable = False
        with suppress(sqlite3.Error):  # else all stays in the log while somebody reads
            self._connection.execute("PRAGMA busy_timeout = 1000")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            # Those who read it from now on then leave no files beside it.
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()
        self._raise_failure()

    def _write(self) -> None:
        """In the thread: commits what has come meanwhile, until the file is closed."""
        ended, last = False, 0.0
        while not ended:
            self._awaited.wait(_PAUSE_SECONDS)
            self._urgent.wait(max(0.0, last + _GROUP_SECONDS - time.monotonic()))
            with self._room:
                self._awaited.clear()
                self._urgent.clear()
                ended = self._closed
                put, size, waiting = self._put, self._waiting_bytes, self._waiting
                done, loops = self._done, self._loops
                self._waiting, self._done, self._loops = [], [], {}
            if put > self._committed and self._failure is None:
                self._commit(waiting)
                last = time.monotonic()
            with self._room:
                self._committed = put
                self._waiting_bytes -= size
                self._room.notify_all()
            for call in done:
                call()
            for loop, event in loops.items():
                with suppress(RuntimeError):  # an event loop that is closed waits no more
                    loop.call_soon_threadsafe(event.set)

    def _commit(self, statements: list[Statement]) -> None:
        """In one transaction. What fails takes all of it back; whoever comes next gets it."""
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            if self._of_others() != self._seen:
                execute("INSERT OR REPLACE INTO run VALUES ('changed', x'')")
                execute("COMMIT")
                raise _changed(self.path)
            for statement in statements:
                statement(self._connection)
            execute("COMMIT")
        except Exception as failure:  # noqa: BLE001 - raised where something is put or awaited
            self._failure = failure
            with suppress(sqlite3.Error):
                execute("ROLLBACK")

    def _of_others(self) -> tuple[int, int]:
        """Differs when another program has changed the file, or put another in its place."""
        # Commits of this connection do not count: https://sqlite.org/pragma.html
        version = int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        try:
            return version, self.path.stat().st_ino
        except OSError:
            return version, 0


def _changed(path: Path) -> RunDirectoryError:
    changed = RunDirectoryError(
        f"{path} was changed by another program while the run went on",
        hint="no verdict of this run can be trusted: start it anew, and see that agents cannot "
        "write there",
    )
    changed.exit_code = ExitCode.ERROR
    return changed


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file://{quote(os.fsencode(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA cache_size = -256")  # KiB; what is read again is little
        connection.execute("SELECT count(*) FROM sqlite_master")
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if found != APPLICATION_ID or version != VERSION:
            what = f"version {version}" if found == APPLICATION_ID else "no run of skillup"
            what = f"{path} is {what}; this skillup reads version {VERSION}"
            raise RunDirectoryError(what, hint="use the version of skillup that made the run")
    except BaseException as error:
        connection.close()
        if mode != "ro" or getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
            raise
        # Of a writer that was killed: who may write takes back what it had not committed.
        _connect(path, "rw").close()
        return _connect(path, mode)
    return connection
