"""The journal of a run: one JSON object a line, only ever appended to.

It tells people and tools what happened when. Whether a trial has finished, its record says; that
the record is the run's own, its SHA-256 in the journal.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillup.store.errors_of_disk import disk_errors
from skillup.store.json_text import Mask, to_json
from skillup.store.regular import open_regular


class Journal:
    """Appends events; safe to use from several threads. One process at a time may append."""

    def __init__(self, path: Path, mask: Mask) -> None:
        """Opens or makes the file, and repairs a last line that was cut short by a crash.

        Raises RunDirectoryError if it cannot be opened.
        """
        self._path = path
        self._mask = mask
        self._lock = threading.Lock()
        with disk_errors("open", path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._torn = not _ends_with_newline(self._file)

    def append(self, event: str, *, durable: bool = False, **fields: Any) -> None:
        """Adds ``{"time": now, "event": event, **fields}``.

        ``durable`` waits until it is on the disk. Raises RunDirectoryError if the line cannot be
        written; the next one then starts on a line of its own all the same.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = to_json({"time": now, "event": event, **fields}, self._mask, indent=None)
        with self._lock, disk_errors("append to", self._path):
            if self._torn:
                line = b"\n" + line
            self._torn = True
            while line:
                line = line[os.write(self._file, line) :]
            self._torn = False
            if durable:
                os.fsync(self._file)

    def close(self) -> None:
        """Ends writing; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The events in order, read as they are wanted; nothing if there is no journal.

    Lines that are no JSON object are what a crash cut short; they are left out.
    """
    if not path.exists():
        return
    with open_regular(path) as file:
        for line in file:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event


def _ends_with_newline(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
