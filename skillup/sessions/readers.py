"""A session file of either CLI, or a recording of its events, as a stream of entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from skillup.engines.claude_code.transcript import Branches, ClaudeTranscript
from skillup.engines.cli_runner import as_text
from skillup.engines.codex.transcript import ITEMS, CodexExecTranscript, CodexTranscript
from skillup.engines.session_entries import EntryLog, SessionEntry, SessionFormat, SessionSummary
from skillup.engines.session_files import lines_of

_LINES_TO_TRY = 100
_ROLLOUT_ROWS = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})
_STREAM_ROWS = frozenset({"system", "user", "assistant", "result", "stream_event"})
_CLAUDE_ROWS = frozenset({"summary", "file-history-snapshot", "user", "assistant"})


class _Reader(Protocol):
    def feed(self, row: dict[str, Any]) -> None:
        """Take the next row. Never raises."""


def engine_of(format_: SessionFormat) -> str:
    """The engine whose CLI writes this format: its name in profiles."""
    return "claude_code" if format_.startswith("claude") else "codex"


def detect_format(path: Path, limit: int | None = None) -> SessionFormat | None:
    """By the first line that says it, within `limit` bytes; None if none does. Raises OSError."""
    for line, _ in zip(lines_of(path, limit), range(_LINES_TO_TRY), strict=False):
        found = _format_of(line.row) if isinstance(line.row, dict) else None
        if found is not None:
            return found
    return None


def _format_of(row: dict[str, Any]) -> SessionFormat | None:
    kind = as_text(row.get("type"))
    if kind.startswith(("thread.", "turn.", "item.")):
        return "codex_exec"
    if kind in _ROLLOUT_ROWS and isinstance(row.get("payload"), dict):
        return "codex_rollout"
    if "sessionId" in row or "parentUuid" in row or "leafUuid" in row:
        return "claude_session"
    if kind in _STREAM_ROWS and "session_id" in row:
        return "claude_stream"
    if kind in _CLAUDE_ROWS and ("message" in row or kind not in ("user", "assistant")):
        return "claude_session"
    old_meta = not kind and {"id", "timestamp"} <= row.keys()
    return "codex_rollout" if kind in ITEMS or old_meta else None


class SessionTranscript:
    """One reading of a file: iterate once; ``summary`` is complete after the last entry.

    Holds one line at a time. Claude Code's session files are read twice, as only the end tells
    which branch is the conversation; the first time, some 200 bytes of each line are held. With
    `limit`, only the lines within that many first bytes are read, and no branches told.
    """

    def __init__(self, path: Path, format_: SessionFormat, *, limit: int | None = None) -> None:
        self.path = path
        self.format: SessionFormat = format_
        self._limit = limit
        self._log = EntryLog()

    @property
    def summary(self) -> SessionSummary:
        """What is known so far."""
        return self._log.summary

    def __iter__(self) -> Iterator[SessionEntry]:
        reader = self._reader()
        branches = self._branches()
        for line in lines_of(self.path, self._limit):
            self._log.begin_line(
                line.number, left=branches is not None and branches.is_left(line.number)
            )
            if isinstance(line.row, dict):
                reader.feed(line.row)
            elif line.ended:
                self._log.unknown(line.row)
            else:
                self.summary.truncated = True
                self._log.notice("the last line is cut off")
            yield from self._log.take()

    def _reader(self) -> _Reader:
        if self.format == "codex_rollout":
            return CodexTranscript(self._log)
        if self.format == "codex_exec":
            return CodexExecTranscript(self._log)
        return ClaudeTranscript(self._log)

    def _branches(self) -> Branches | None:
        if self.format != "claude_session" or self._limit is not None:
            return None
        branches = Branches()
        for line in lines_of(self.path):
            branches.take(line.number, line.row)
        branches.settle()
        return branches


# The head of a session file: enough to tell sessions apart, without reading them.

HEAD_BYTES = 128 << 10
"""A rollout begins with about 40 kB of instructions before the first message."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """What the first bytes of a session file tell."""

    format: SessionFormat | None
    """None: it is no session, or its head does not say so."""
    summary: SessionSummary
    whole: bool
    """The file is no longer than its head: the count of turns is that of the session.

    Else it is that of the head, branches that were gone back from among them.
    """


def read_head(path: Path, size: int) -> SessionHead:
    """Of a file of `size` bytes. Raises OSError."""
    whole = size <= HEAD_BYTES
    format_ = detect_format(path, HEAD_BYTES)
    if format_ is None:
        return SessionHead(None, SessionSummary(), whole)
    transcript = SessionTranscript(path, format_, limit=None if whole else HEAD_BYTES)
    for _ in transcript:
        pass
    return SessionHead(format_, transcript.summary, whole)
