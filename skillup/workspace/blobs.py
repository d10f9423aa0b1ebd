"""Contents of files, each stored once under its SHA-256, for all trials of a run."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from skillup.schema.record import FileState

_CHUNK_BYTES = 1 << 20
_TEMPORARY_ENDING = ".tmp"


class BlobStore:
    """A directory of blobs, ``<sha256[:2]>/<sha256>``, made at the first ``put``.

    Safe for any number of threads and processes: a blob appears whole or not at all, and who
    stores the same content twice stores it once. Methods raise OSError where the disk does.
    """

    def __init__(self, directory: Path, mask: Callable[[bytes], bytes] | None = None) -> None:
        """`mask` takes secrets out of what is put; the SHA-256 is that of what is stored."""
        self.directory = directory
        self._mask = mask
        self._set_lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._unsynced: set[Path] = set()
        self.references: dict[Path, FileState | None] = {}
        """What judging needs, as it was before the first trial; None: it could not be read."""

    def put(self, content: bytes | Path) -> str:
        """Stores bytes, or those of a file (read once, in pieces); returns their SHA-256 in hex."""
        if isinstance(content, bytes):
            content = self.masked(content)
            sha = hashlib.sha256(content).hexdigest()
            if not self._has(sha, len(content)):
                with self._new_file() as file:
                    file.write(content)
                    self._place(file, sha)
            return sha
        with content.open("rb") as source:
            return self.put_stream(source)

    def masked(self, content: bytes) -> bytes:
        """The content without secrets, as ``put`` would store it."""
        return content if self._mask is None else self._mask(content)

    def put_stream(self, source: BinaryIO) -> str:
        """As :meth:`put`, for an open file; what was hashed is stored, even if the file changes."""
        if self._mask is not None:
            return self.put(source.read())  # in pieces, a secret could lie across two of them
        piece = source.read(_CHUNK_BYTES)
        if len(piece) < _CHUNK_BYTES:
            return self.put(piece)
        digest = hashlib.sha256()
        with self._new_file() as file:
            while piece:
                digest.update(piece)
                file.write(piece)
                piece = source.read(_CHUNK_BYTES)
            sha = digest.hexdigest()
            if not self._has(sha, file.tell()):
                self._place(file, sha)
        return sha

    def get(self, sha: str) -> bytes | None:
        """The content with this SHA-256; None if it is not here, or no longer what it was."""
        try:
            content = self.path_of(sha).read_bytes()
        except FileNotFoundError:
            return None
        return content if hashlib.sha256(content).hexdigest() == sha else None

    def read_state(self, state: FileState) -> bytes | None:
        """The content of a file as a snapshot saw it; None if it was not kept."""
        return self.get(state.sha256) if state.sha256 is not None and state.kept else None

    def path_of(self, sha: str) -> Path:
        """Where the blob is, or would be."""
        return self.directory / sha[:2] / sha

    def sync(self) -> None:
        """Waits until everything that was put by this object is on the disk."""
        # One at a time: a second caller's blobs may be among those that the first is waiting for.
        with self._sync_lock:
            with self._set_lock:
                waiting = set(self._unsynced)
            for path in {*waiting, *(blob.parent for blob in waiting)}:
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            with self._set_lock:
                self._unsynced -= waiting

    def remove_temporary_files(self) -> None:
        """Removes what writers that were killed have left; nobody may be writing."""
        for leftover in self.directory.glob(f".*{_TEMPORARY_ENDING}"):
            with suppress(OSError):
                leftover.unlink()

    def _has(self, sha: str, size: int) -> bool:
        # A crash of the machine may leave another size, if the blob had not been synced.
        try:
            return self.path_of(sha).stat().st_size == size
        except FileNotFoundError:
            return False

    @contextmanager
    def _new_file(self) -> Iterator[BinaryIO]:
        """A file that nobody else knows; removed at the end unless it was placed."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f".{secrets.token_hex(8)}{_TEMPORARY_ENDING}"
        try:
            with path.open("xb") as file:
                yield file
        finally:
            path.unlink(missing_ok=True)

    def _place(self, file: BinaryIO, sha: str) -> None:
        file.flush()
        path = self.path_of(sha)
        path.parent.mkdir(exist_ok=True)
        Path(file.name).replace(path)
        with self._set_lock:
            self._unsynced.add(path)
