"""A session file of a CLI as a stream of entries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from skillup.engines.registry import session_formats
from skillup.engines.session_entries import EntryLog, SessionEntry, SessionFormat, SessionSummary
from skillup.engines.session_files import lines_of

_LINES_TO_TRY = 100

HEAD_BYTES = 128 << 10
"""A rollout begins with about 40 kB of instructions before the first message."""


def detect_format(path: Path, limit: int | None = None) -> SessionFormat | None:
    """By the first line that says it, within `limit` bytes; None if none does. Raises OSError."""
    for line in islice(lines_of(path, limit), _LINES_TO_TRY):
        if isinstance(line.row, dict):
            for format_ in session_formats().values():
                if format_.matches(line.row):
                    return format_
    return None


class SessionTranscript:
    """One reading of a file: iterate once; ``summary`` is complete after the last entry.

    Holds one line at a time. Of a session with branches there is only the conversation as it
    stands: its file is read twice, as only the end tells which that is. With `limit`, only the
    lines within that many first bytes are read, and no branches told.
    """

    def __init__(self, path: Path, format_: SessionFormat, *, limit: int | None = None) -> None:
        self.path = path
        self.format = format_
        self.tokens: list[tuple[int, str, dict[str, int]]] = []
        """The number of a line with counts, what they are of, and they."""
        self.unread: list[int] = []
        """The numbers of lines that are cut, no JSON, or too deep: a call may be in them."""
        self._limit = limit
        self._log = EntryLog()

    @property
    def summary(self) -> SessionSummary:
        """What is known so far."""
        return self._log.summary

    def __iter__(self) -> Iterator[SessionEntry]:
        reader, find_left = self.format.reader(self._log), self.format.left_lines
        left = find_left(lines_of(self.path)) if find_left and self._limit is None else ()
        for line in lines_of(self.path, self._limit):
            if line.number in left:
                continue
            self._log.begin_line(line.number)
            if isinstance(line.row, dict):
                reader.feed(line.row)
                if found := self.format.tokens(line.row):
                    self.tokens.append((line.number, *found))
            elif line.ended:
                self.unread.append(line.number)
                self._log.unknown(line.row)
            else:
                self.unread.append(line.number)
                self.summary.truncated = True
                self._log.notice("the last line is cut off")
            yield from self._log.entries


class SessionHead(NamedTuple):
    """What the first bytes of a session file tell: enough to tell sessions apart."""

    summary: SessionSummary
    whole: bool
    """The file is no longer than its head; else turns are counted in the head alone, branches too.
    """


def read_head(path: Path, size: int) -> SessionHead | None:
    """Of a file of `size` bytes; None if it is no session, or does not say so. Raises OSError."""
    whole = size <= HEAD_BYTES
    format_ = detect_format(path, HEAD_BYTES)
    if format_ is None:
        return None
    transcript = SessionTranscript(path, format_, limit=None if whole else HEAD_BYTES)
    for _ in transcript:
        pass
    return SessionHead(transcript.summary, whole)
