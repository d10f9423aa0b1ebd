"""The journal of a run, one JSON object a line, only ever appended to; and JSON as we write it.

It tells people and tools what happened when. Whether a trial has finished, its record says; that
the record is the run's own, its SHA-256 in the journal.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from skillup.schema.record import ON_DISK
from skillup.store.files import disk_errors, open_regular

Mask = Callable[[str], str]
"""Returns the text with secrets replaced."""

# DEL and C1 controls; separators that some take for line ends; marks of direction. C0 controls are
# escaped by every JSON writer.
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def no_mask(text: str) -> str:
    """The mask where there are no secrets."""
    return text


def to_json(value: BaseModel | Mapping[str, Any], mask: Mask, *, indent: int | None) -> bytes:
    """``value`` as JSON text with a final newline: UTF-8, masked, and valid whatever agents wrote.

    Every text in it, keys too, goes through ``mask``. That is done before quoting, so that a secret
    with a quotation mark or a newline is found, and a secret that looks like a number cannot break
    the syntax. Lone surrogates become U+FFFD, because no JSON reader need accept them; NaN and
    infinities become null. Characters that a terminal would obey or that turn the order of text are
    written as JSON's escapes, which read the same.
    """
    if isinstance(value, BaseModel):
        # Not model_dump_json: it refuses lone surrogates.
        value = value.model_dump(mode="json", by_alias=True, context=ON_DISK)

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            text = mask(value)
            if not text.isascii():
                try:
                    text.encode()
                except UnicodeEncodeError:
                    # By way of UTF-16: a pair of surrogates becomes the character it stands for.
                    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return text
        if isinstance(value, Mapping):
            return {clean(str(key)): clean(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [clean(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    separators = (",", ":") if indent is None else None
    text = json.dumps(clean(value), ensure_ascii=False, indent=indent, separators=separators)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


class Journal:
    """Appends events; safe to use from several threads. One process at a time may append."""

    def __init__(self, path: Path, mask: Mask) -> None:
        """Opens or makes the file; a last line that a crash cut short will cost only itself.

        Raises RunDirectoryError if it cannot be opened.
        """
        self._path = path
        self._mask = mask
        self._lock = threading.Lock()
        with disk_errors("open", path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            size = os.fstat(self._file).st_size
            self._torn = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"

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
