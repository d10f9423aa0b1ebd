"""Contents of files, each stored once under its SHA-256, for all trials of a run."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from skillup.schema.record import FileState

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

    def put(self, content: bytes) -> str:
        """Stores the content; returns the SHA-256 of what is stored, in hex."""
        content = self.masked(content)
        sha = hashlib.sha256(content).hexdigest()
        path = self.path_of(sha)
        # A crash of the machine may leave another size, if the blob had not been synced.
        if path.is_file() and path.stat().st_size == len(content):
            return sha
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.directory / f".{secrets.token_hex(8)}{_TEMPORARY_ENDING}"
        try:
            temporary.write_bytes(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        with self._set_lock:
            self._unsynced.add(path)
        return sha

    def masked(self, content: bytes) -> bytes:
        """The content without secrets, as ``put`` would store it."""
        return content if self._mask is None else self._mask(content)

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
