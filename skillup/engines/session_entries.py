"""What a session file of an agent says, line by line, in one form for every format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from skillup.engines.events import Transcript
from skillup.engines.session_files import SessionLine
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem

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
    text: str = ""
    """Of user, assistant, reasoning and notice; reasoning that is kept secret is empty."""
    tool_call: ToolCall | None = None
    tool_result: ToolResult | None = None
    agent: str | None = None  # The sub-agent that did it; None: the agent
    left: bool = False
    """On a branch that the user went back from: no part of the conversation as it stands."""


@dataclass(slots=True)
class SessionSummary:
    """What is known of a session as a whole; complete when all its lines have been read."""

    session_id: str | None = None
    cwd: str | None = None
    version: str | None = None  # Of the CLI, in the last line that has it
    model: str | None = None  # The last one that answered
    title: str | None = None
    agent: str | None = None  # The file is the session of this sub-agent
    started: str | None = None
    ended: str | None = None
    turns: int = 0
    first_words: str = ""  # The beginning of the first user message
    unknown_lines: int = 0  # Lines that we do not understand, in whole or in part
    left_entries: int = 0
    truncated: bool = False
    """The last line is cut off: the file is still being written, or its writer was killed."""


class EntryLog(Transcript):
    """Collects the entries of one line after the other. Nothing it is given makes it raise."""

    def __init__(self) -> None:
        super().__init__()
        self.summary = SessionSummary()
        self._entries: list[SessionEntry] = []
        self._line = 0
        self._timestamp: str | None = None
        self._left = False
        self._left_turn = 0
        self._awaits_user = False
        self._unknown_line = 0

    def begin_line(self, number: int, *, left: bool = False) -> None:
        """What follows is of this line; `left`: of a branch that is no part of the conversation."""
        self._line, self._timestamp, self._left = number, None, left
        if not left:
            self._left_turn = self.summary.turns

    def time(self, timestamp: Any) -> None:
        """When the line was written."""
        if isinstance(timestamp, str) and _TIME.match(timestamp) is not None:
            self._timestamp = self.summary.ended = timestamp
            self.summary.started = self.summary.started or timestamp

    def take(self) -> list[SessionEntry]:
        """The entries since the last time."""
        taken, self._entries = self._entries, []
        return taken

    def open_turn(self) -> None:
        """A turn begins whose user message may follow, or may be missing."""
        self.summary.turns += 1
        self._awaits_user = True

    def user(self, text: str, agent: str | None = None) -> None:
        """A message of the user; for a sub-agent, of its caller."""
        if agent is None and self._left:
            self._left_turn += 1
        elif agent is None:
            self.summary.turns += not self._awaits_user
            self._awaits_user = False
        if not self.summary.first_words and not self._left:
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
        turn = self._left_turn if self._left else self.summary.turns
        self.summary.left_entries += self._left
        at = (self._line, self._timestamp, turn, role)
        entry = SessionEntry(
            *at, item.text or "", item.tool_call, item.tool_result, item.agent, self._left
        )
        self._entries.append(entry)


class RowReader(Protocol):
    """Reads the rows of one file; never raises."""

    def feed(self, row: dict[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """A form in which a CLI writes sessions: its own files, or a recording of its events."""

    name: str
    engine: str  # The adapter's name
    matches: Callable[[dict[str, Any]], bool]  # Whether a row can only be of this format
    reader: Callable[[EntryLog], RowReader]
    tokens: Callable[[dict[str, Any]], tuple[str, dict[str, int]] | None]
    """Of a row with counts: what they are of ("": of the row), and they by the names of `Usage`."""
    running_total: bool = False  # The tokens are those of the session so far
    revision: Callable[[dict[str, Any]], str | None] = lambda _: None
    """The repository's state in a row: ``branch main, commit 3f2a…``."""
    left_lines: Callable[[Iterable[SessionLine]], Collection[int]] | None = None
    """The numbers of the lines that are on branches gone back from; None: there are no branches."""
    fillers: tuple[str, ...] = ()  # What skillup adds to a seeded history as the CLI needs it


@runtime_checkable
class SessionLibrary(Protocol):
    """An engine whose users have sessions of their own, which skillup can read."""

    name: str
    label: str  # The agent's name, for people
    formats: Sequence[SessionFormat]  # Of the session files, and of recordings of the events

    def session_directory(self, environment: Mapping[str, str]) -> Path:
        """Where the CLI keeps the user's sessions; it need not be there."""
        ...

    def session_id_of(self, file: Path, directory: Path) -> str | None:
        """The id of the session in a file below; None if it is none."""
        ...
