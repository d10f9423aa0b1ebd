"""What a session file of an agent says, line by line, in one form for every CLI."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from skillup.engines.events import Transcript
from skillup.engines.session_files import SessionLine
from skillup.schema.record import TranscriptItem

Role = Literal["user", "assistant", "tool_call", "tool_result", "reasoning", "notice"]
"""notice: what the CLI says or adds by itself, and what we do not understand."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]")
_FIRST_WORDS = 200


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One message, call, result, thought or notice."""

    line: int  # From 1
    timestamp: str | None  # As the file has it: ISO 8601, UTC
    turn: int  # Which user message it belongs to, from 1; 0 before the first
    role: Role
    item: TranscriptItem


@dataclass(slots=True)
class SessionSummary:
    """What is known of a session as a whole; complete when all its lines have been read."""

    session_id: str | None = None
    cwd: str | None = None
    version: str | None = None  # Of the CLI, in the last line that has it
    model: str | None = None  # The last one that answered
    title: str | None = None
    started: str | None = None
    ended: str | None = None
    turns: int = 0
    first_words: str = ""  # The beginning of the first user message
    unknown_lines: int = 0  # Lines that we do not understand, in whole or in part
    truncated: bool = False
    """The last line is cut off: the file is still being written, or its writer was killed."""


class EntryLog(Transcript):
    """Collects the entries of one line after the other. Nothing it is given makes it raise."""

    def __init__(self) -> None:
        super().__init__()
        self.summary = SessionSummary()
        self.entries: list[SessionEntry] = []
        self._line = 0
        self._timestamp: str | None = None
        self._unknown_line = 0

    def begin_line(self, number: int) -> None:
        """What follows is of this line; the entries of those before are dropped."""
        self._line, self._timestamp, self.entries = number, None, []

    def time(self, timestamp: Any) -> None:
        """When the line was written."""
        if isinstance(timestamp, str) and _TIME.match(timestamp) is not None:
            self._timestamp = self.summary.ended = timestamp
            self.summary.started = self.summary.started or timestamp

    def user(self, text: str, agent: str | None = None) -> None:
        """A message of the user; for a sub-agent, of its caller."""
        self.summary.turns += agent is None
        if not self.summary.first_words:
            self.summary.first_words = " ".join(text[: 4 * _FIRST_WORDS].split())[:_FIRST_WORDS]
        self._enter("user", TranscriptItem(type="message", text=text, agent=agent))

    def reasoning(self, text: str, agent: str | None = None) -> None:
        """Entered though it is empty: it may be kept secret."""
        self.add(TranscriptItem(type="reasoning", text=text, agent=agent))

    def notice(self, text: str, agent: str | None = None) -> None:
        if text:
            self.add(TranscriptItem(type="notice", text=text, agent=agent))

    def unknown(self, event: Any) -> None:
        super().unknown(event)
        self.summary.unknown_lines += self._line != self._unknown_line
        self._unknown_line = self._line

    def add(self, item: TranscriptItem) -> None:
        self._enter("assistant" if item.type == "message" else item.type, item)

    def _enter(self, role: Role, item: TranscriptItem) -> None:
        at = self._line, self._timestamp, self.summary.turns
        self.entries.append(SessionEntry(*at, role, item))


class RowReader(Protocol):
    """Reads the rows of one file; never raises."""

    def feed(self, row: dict[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """How a CLI keeps the sessions of its users."""

    engine: str  # The adapter's name
    label: str  # The agent's name, for people
    directory: Callable[[Mapping[str, str]], Path]
    """Where, for a user with this environment; it need not be there."""
    session_id: Callable[[Path, Path], str | None]
    """Of the session in a file below a directory; None if it is none."""
    matches: Callable[[dict[str, Any]], bool]  # Whether a row can only be of this format
    reader: Callable[[EntryLog], RowReader]
    tokens: Callable[[dict[str, Any]], tuple[str, dict[str, int]] | None]
    """Of a row with counts: what they are of ("": of the row), and they by the names of `Usage`."""
    running_total: bool = False  # The tokens are those of the session so far
    left_lines: Callable[[Iterable[SessionLine]], Collection[int]] | None = None
    """The numbers of the lines that are on branches gone back from; None: there are no branches."""
