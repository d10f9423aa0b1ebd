"""Contents of files, each stored once under its SHA-256, for all trials of a run."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_CHUNK_BYTES = 1 << 20


class BlobStore:
    """A directory of blobs, ``<sha256[:2]>/<sha256>``, made at the first ``put``.

    Safe for any number of threads and processes: a blob appears whole or not at all, and who
    stores the same content twice stores it once. Methods raise OSError where the disk does.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        self._unsynced: set[Path] = set()

    def put(self, content: bytes | Path) -> str:
        """Stores bytes, or those of a file (read once, in pieces); returns their SHA-256 in hex."""
        if isinstance(content, bytes):
            sha = hashlib.sha256(content).hexdigest()
            if not self._has(sha, len(content)):
                temporary = self._temporary()
                with self._writing(temporary) as file:
                    file.write(content)
                self._place(temporary, sha)
            return sha
        with content.open("rb") as source:
            return self.put_stream(source)

    def put_stream(self, source: BinaryIO) -> str:
        """As :meth:`put`, for an open file; what is stored is what was hashed, even if it changes."""
        digest = hashlib.sha256()
        first = source.read(_CHUNK_BYTES)
        if len(first) < _CHUNK_BYTES:
            return self.put(first)
        temporary = self._temporary()
        try:
            with self._writing(temporary) as file:
                piece = first
                while piece:
                    digest.update(piece)
                    file.write(piece)
                    piece = source.read(_CHUNK_BYTES)
                size = file.tell()
            sha = digest.hexdigest()
            if self._has(sha, size):
                temporary.unlink()
            else:
                self._place(temporary, sha)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        return sha

    def get(self, sha: str) -> bytes | None:
        """The content with this SHA-256; None if it is not here, or no longer what it was."""
        try:
            content = self.path_of(sha).read_bytes()
        except FileNotFoundError:
            return None
        return content if hashlib.sha256(content).hexdigest() == sha else None

    def path_of(self, sha: str) -> Path:
        """Where the blob is, or would be."""
        return self.directory / sha[:2] / sha

    def sync(self) -> None:
        """Waits until everything that was put by this object is on the disk."""
        with self._lock:
            waiting, self._unsynced = self._unsynced, set()
        try:
            for path in {*waiting, *(p.parent for p in waiting)}:
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        except OSError:
            with self._lock:
                self._unsynced |= waiting
            raise

    def _has(self, sha: str, size: int) -> bool:
        # A size that differs is what a crash of the machine may leave of a blob that was not synced.
        try:
            return self.path_of(sha).stat().st_size == size
        except FileNotFoundError:
            return False

    def _temporary(self) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        return self.directory / f".{secrets.token_hex(8)}.tmp"

    def _writing(self, temporary: Path) -> BinaryIO:
        return temporary.open("xb")

    def _place(self, temporary: Path, sha: str) -> None:
        path = self.path_of(sha)
        path.parent.mkdir(exist_ok=True)
        temporary.replace(path)
        with self._lock:
            self._unsynced.add(path)
