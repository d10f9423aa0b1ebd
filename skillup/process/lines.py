"""From chunks of output to lines, in memory bounded by the longest line that may be held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from skillup.process.request import Redact

_TAIL_BYTES = 8 << 10
# A secret cut in two is not recognised; so this much of a cut line's end is never shown.
_SECRET_BYTES = 8 << 10


class Line(NamedTuple):
    """One line without its newline, and whether the rest of it was dropped."""

    text: bytes
    truncated: bool
    complete: bool  # False for a last line that had no newline


class LineSplitter:
    """Splits a stream; holds at most one unfinished line, and of that at most ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []  # joined once per line: appending to bytes would be quadratic
        self._held = 0
        self._overflowed = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that this chunk finishes."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        last = rest.pop()
        self._hold(first)
        lines = [self._take(complete=True)]
        for text in rest:
            if len(text) <= self._max_bytes:
                lines.append(Line(text, False, True))
            else:
                lines.append(Line(text[: self._max_bytes], True, True))
        self._hold(last)
        return lines

    def finish(self) -> list[Line]:
        """The last line, if it had no newline."""
        return [self._take(complete=False)] if self._held or self._overflowed else []

    def _hold(self, part: bytes) -> None:
        room = self._max_bytes - self._held
        if len(part) > room:
            self._overflowed = True
            part = part[:room]
        if part:
            self._parts.append(part)
            self._held += len(part)

    def _take(self, *, complete: bool) -> Line:
        line = Line(b"".join(self._parts), self._overflowed, complete)
        self._parts, self._held, self._overflowed = [], 0, False
        return line


class OutputStream:
    """One output stream of one process: counted, masked, copied to disk, cut into lines.

    Without ``redact`` the copy is of every byte as it comes; with it, of every line when it is
    complete. After ``max_bytes`` the rest is counted and dropped. Raises OSError if the file cannot
    be written. ``keep`` is called with what is written, for callers that want all of it in memory.
    """

    def __init__(
        self,
        *,
        path: Path | None,
        max_bytes: int,
        max_line_bytes: int,
        redact: Redact | None,
        lines_wanted: bool = True,
        keep: Callable[[bytes], object] | None = None,
    ) -> None:
        self.total_bytes = 0
        self.truncated_lines = 0
        self._max_bytes = max_bytes
        self._max_line_bytes = max_line_bytes
        self._redact = redact
        self._lines_wanted = lines_wanted or redact is not None
        self._keep = keep
        self._splitter = LineSplitter(max_line_bytes + (_SECRET_BYTES if redact else 0))
        self._tail = b""
        self._file: BinaryIO | None = path.open("wb") if path else None

    @property
    def over_limit(self) -> bool:
        return self.total_bytes > self._max_bytes

    @property
    def tail(self) -> str:
        """The last of what was written, masked and decoded."""
        return self._tail[-_TAIL_BYTES:].decode(errors="replace")

    def feed(self, chunk: bytes) -> list[bytes]:
        """Takes the next chunk; returns the lines it finishes, masked."""
        room = max(0, self._max_bytes - self.total_bytes)
        self.total_bytes += len(chunk)
        chunk = chunk[:room]
        if not chunk:
            return []
        if self._redact is None:
            self._write(chunk)
            if not self._lines_wanted:
                return []
        return [self._finished(line) for line in self._splitter.feed(chunk)]

    def finish(self) -> list[bytes]:
        """The last line, if it had no newline. Nothing may be fed afterwards."""
        return [self._finished(line) for line in self._splitter.finish()]

    def close(self) -> None:
        """Closes the copy; safe to call again, also if the first call raised OSError."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _finished(self, line: Line) -> bytes:
        text, cut = line.text, line.truncated
        if self._redact is not None:
            text = self._redact(text)
            if cut:
                text = text[: max(0, len(text) - _SECRET_BYTES)]
            cut = cut or len(text) > self._max_line_bytes
            text = text[: self._max_line_bytes]
            self._write(text + b"\n" if line.complete else text)
        self.truncated_lines += cut
        return text

    def _write(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data)
        if self._keep is not None:
            self._keep(data)
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-2 * _TAIL_BYTES :]
