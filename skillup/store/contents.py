"""What a run keeps beside its records: contents of files, raw streams, artifacts."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from pydantic import BaseModel

from skillup.store.database import Database, Unpacked
from skillup.store.files import Mask, pack, to_json, unpack
from skillup.workspace.snapshot import BlobStore

_PART_BYTES = 256 << 10
_PART_SECONDS = 1.0
"""After so long what has come of a stream is stored: somebody may be watching."""
TURN_OF_STREAM = (
    "CASE WHEN name GLOB 'turn-[0-9]*' THEN CAST(substr(name, 6) AS INTEGER) ELSE 0 END"
)
"""In SQL, of `name`: a cast reads the digits that a text begins with."""


class StoredBlobs(BlobStore):
    """Contents in the run's file, each kept once. Safe for any number of threads."""

    def __init__(self, database: Database, mask: Callable[[bytes], bytes] | None = None) -> None:
        super().__init__(mask)
        self._database = database
        self._known: set[bytes] = set()
        self._lock = threading.Lock()

    def _store(self, key: bytes, content: bytes) -> None:
        sql = (  # one that is there may be damaged
            "INSERT INTO blobs VALUES (?, ?) ON CONFLICT (sha256)"
            " DO UPDATE SET data = excluded.data WHERE data != excluded.data"
        )
        with self._lock:  # until it is put: who finds it known may refer to it at once
            if key not in self._known:
                self._known.add(key)
                self._contents[key] = content  # until it is committed
                done = partial(self._contents.pop, key, None)
                self._database.execute(sql, key, Unpacked(content), done=done)

    def _load(self, key: bytes) -> bytes | None:
        waiting = self._contents.get(key)
        if waiting is not None:
            return waiting
        found = self._database.committed_rows("SELECT data FROM blobs WHERE sha256 = ?", key)
        return whole_blob(key, found[0][0]) if found else None


def whole_blob(key: bytes, data: bytes) -> bytes | None:
    """The content that is stored as `data`; None if it is not what it was."""
    with suppress(ValueError):
        content = unpack(data)
        return content if hashlib.sha256(content).digest() == key else None
    return None


class Stream:
    """One raw stream that is being written, stored part by part."""

    def __init__(
        self, database: Database, attempt: int, name: str, *, is_new: bool = False
    ) -> None:
        """In place of one of this name, unless that cannot be there."""
        self._database, self._about, self._is_new = database, (attempt, name), is_new
        self._waiting = deque[bytes]()  # Until the database's thread takes it
        self._size = self._number = 0
        self._stored = time.monotonic()
        if not name.endswith(".stderr.txt"):
            self._store()  # who watches sees that the turn has begun

    def write(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _PART_BYTES or time.monotonic() - self._stored > _PART_SECONDS:
            self._store()

    def close(self) -> None:
        """Stores the rest; may be called again."""
        if self._waiting or not self._number:
            self._store()

    def _store(self) -> None:
        self._database.put(self._take, self._size)
        self._size, self._stored = 0, time.monotonic()

    def _take(self, connection: sqlite3.Connection) -> None:
        """Stores what has come by now: of an agent that answers at once, all of it."""
        parts = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not self._number and not self._is_new:
            sql = "DELETE FROM streams WHERE attempt = ? AND name = ?"
            connection.execute(sql, self._about)
        if parts or not self._number:
            row = (*self._about, self._number, pack(b"".join(parts)))
            connection.execute("INSERT INTO streams VALUES (?, ?, ?, ?)", row)
            self._number += 1


class Streams:
    """The raw streams of one attempt at a trial: ``turn-01.stdout.jsonl``."""

    def __init__(
        self, database: Database, attempt: int, folder: str = "", *, is_new: bool = False
    ) -> None:
        """`folder`: what the names of its streams begin with. `is_new`: there are none yet."""
        self._database, self._attempt, self._folder = database, attempt, folder
        self._opened: set[str] | None = set() if is_new else None  # None: any may be there

    def below(self, folder: str) -> Streams:
        """Those in a folder of it, such as the simulated user's."""
        return Streams(self._database, self._attempt, f"{self._folder}{folder}/")

    def open(self, name: str) -> Stream:
        """A new stream, in place of one of this name."""
        is_new = self._opened is not None and name not in self._opened
        if self._opened is not None:
            self._opened.add(name)
        return Stream(self._database, self._attempt, self._folder + name, is_new=is_new)

    def set_aside(self, stem: str, as_what: str) -> None:
        """Renames the streams of the message `stem`: ``turn-02.stdout.jsonl`` to
        ``turn-02.refused-1.stdout.jsonl``, with the first number that is free.
        """
        aside = f"{self._folder}{stem}.{as_what}-"
        sql = (
            "UPDATE streams SET name = ?2 || (SELECT count(DISTINCT name) + 1 FROM streams"
            " WHERE attempt = ?1 AND name GLOB ?2 || '*.stdout.jsonl') || substr(name, ?3)"
            " WHERE attempt = ?1 AND name IN (?4, ?5, ?6)"
        )
        whole = f"{self._folder}{stem}"
        names = (f"{whole}.{ending}" for ending in ("stdout.jsonl", "stderr.txt", "http.jsonl"))
        self._database.execute(sql, self._attempt, aside, len(whole) + 1, *names)

    def remove_from(self, turn: int) -> None:
        """Removes all streams of `turn` and later ones, which a process was ended in."""
        sql = f"DELETE FROM streams WHERE attempt = ? AND {TURN_OF_STREAM} >= ?"  # noqa: S608 - ours
        self._database.execute(sql, self._attempt, turn)

    def copy_from(self, other: Streams) -> None:
        """Has the streams of `other`, too: shared turns are part of each conversation."""
        self._opened = None
        if other._attempt != self._attempt:
            sql = (
                "INSERT OR REPLACE INTO streams SELECT ?, name, part, data FROM streams"
                " WHERE attempt = ?"
            )
            self._database.execute(sql, self._attempt, other._attempt)


def keep_artifact(
    database: Database, blobs: BlobStore, attempt: int, path: str, content: bytes
) -> None:
    """Keeps a file of the workspace, masked, in place of an older one of this path."""
    # What in it is no text becomes a backslash, x and two digits.
    name = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    about = attempt, name, bytes.fromhex(blobs.put(content))
    database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", *about)


class StoredAnswers:
    """What models answered to the judges of a run, so that it can be judged offline."""

    def __init__(self, database: Database, mask: Mask) -> None:
        self._database, self._mask = database, mask

    def read(self, key: str) -> bytes | None:
        """The JSON that was kept under `key`; None: nothing, or it is damaged."""
        data = self._database.value("SELECT json FROM answers WHERE key = ?", key)
        with suppress(ValueError):
            return unpack(data) if data is not None else None
        return None

    def all(self) -> Iterator[tuple[str, bytes]]:
        """Keys and JSON; damaged ones are left out."""
        for key, data in self._database.each("SELECT key, json FROM answers ORDER BY key"):
            with suppress(ValueError):
                yield key, unpack(data)

    def write(self, key: str, answer: BaseModel) -> None:
        """Keeps it, in place of an older one; secrets masked."""
        self.keep(key, to_json(answer, self._mask, indent=None))

    def keep(self, key: str, data: bytes) -> None:
        """Keeps JSON as it is."""
        self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, Unpacked(data))


def stream_of(database: Database, attempt: int, name: str) -> Iterator[bytes]:
    """The parts of a stored stream. Raises ValueError for a damaged one."""
    sql = "SELECT data FROM streams WHERE attempt = ? AND name = ? ORDER BY part"
    for (data,) in database.each(sql, attempt, name, many=1):
        yield unpack(data)
