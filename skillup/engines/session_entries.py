"""What a session file of an agent says, line by line, in one form for every format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skillup.engines.cli_runner import Transcript
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ToolCall, ToolResult

Role = Literal["user", "assistant", "tool_call", "tool_result", "reasoning", "notice"]
"""notice: what the CLI says or adds by itself, and what we do not understand."""

SessionFormat = Literal["claude_session", "claude_stream", "codex_rollout", "codex_exec"]
"""The CLI's own session file, or a recording of its stream of JSON events; of either CLI."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]")
_FIRST_WORDS = 200


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One thing that was said or done."""

    line: int
    """From 1."""
    timestamp: str | None
    """As the file has it: ISO 8601, UTC."""
    turn: int
    """Which user message it belongs to, from 1; 0 before the first."""
    role: Role
    text: str = ""
    """Of user, assistant, reasoning and notice; reasoning that is kept secret is empty."""
    tool_call: ToolCall | None = None
    tool_result: ToolResult | None = None
    agent: str | None = None
    """The sub-agent that did it; None: the agent."""
    left: bool = False
    """On a branch that the user went back from: no part of the conversation as it stands."""


@dataclass(slots=True)
class SessionSummary:
    """What is known of a session as a whole; complete when all its lines have been read."""

    session_id: str | None = None
    cwd: str | None = None
    version: str | None = None
    """Of the CLI; of the last line that tells it."""
    model: str | None = None
    """The last one that answered."""
    title: str | None = None
    agent: str | None = None
    """The file is the session of this sub-agent."""
    started: str | None = None
    ended: str | None = None
    turns: int = 0
    first_words: str = ""
    """The beginning of the first user message."""
    unknown_lines: int = 0
    """Lines that we do not understand, in whole or in part."""
    left_entries: int = 0
    truncated: bool = False
    """The last line is cut off: the file is still being written, or its writer was killed."""


class EntryLog:
    """Collects the entries of one line after the other. Nothing it is given makes it raise."""

    def __init__(self) -> None:
        self.summary = SessionSummary()
        self._transcript = Transcript()
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
        if not isinstance(timestamp, str) or _TIME.match(timestamp) is None:
            return
        self._timestamp = timestamp
        self.summary.started = self.summary.started or timestamp
        self.summary.ended = timestamp

    def take(self) -> list[SessionEntry]:
        """The entries since the last time."""
        taken, self._entries = self._entries, []
        return taken

    def open_turn(self) -> None:
        """A turn begins whose user message may follow, or may not be told."""
        self.summary.turns += 1
        self._awaits_user = True

    def user(self, text: str, agent: str | None = None) -> None:
        """Somebody (for a sub-agent: its caller) said something."""
        if agent is None:
            self._next_turn()
        if not self.summary.first_words and not self._left:
            self.summary.first_words = " ".join(text[: 4 * _FIRST_WORDS].split())[:_FIRST_WORDS]
        self._add("user", text, agent=agent)

    def assistant(self, text: str, agent: str | None = None) -> None:
        """The agent said something; nothing if that is empty."""
        if text:
            self._add("assistant", text, agent=agent)

    def reasoning(self, text: str, agent: str | None = None) -> None:
        """The agent thought something."""
        self._add("reasoning", text, agent=agent)

    def notice(self, text: str, agent: str | None = None) -> None:
        """The CLI said something by itself."""
        if text:
            self._add("notice", text, agent=agent)

    def call(
        self,
        call_id: str,
        name: str,
        kind: ToolKind,
        arguments: Mapping[str, Any],
        agent: str | None = None,
    ) -> None:
        """A tool is called."""
        self._transcript.call(call_id, name, kind, arguments)
        call = self._transcript.items.pop().tool_call
        self._add("tool_call", tool_call=call, agent=agent)

    def result(
        self,
        call_id: str,
        status: Literal["success", "error", "unknown"],
        content: str,
        agent: str | None = None,
    ) -> None:
        """A tool has answered; a very long answer is shortened."""
        self._transcript.result(call_id, status, content)
        result = self._transcript.items.pop().tool_result
        self._add("tool_result", tool_result=result, agent=agent)

    def unknown(self, what: Any) -> None:
        """Something that we do not understand: its line is counted, and it is kept in short."""
        self._transcript.unknown_event(what)
        self._add("notice", self._transcript.items.pop().text or "")
        self.summary.unknown_lines += self._line != self._unknown_line
        self._unknown_line = self._line

    def _next_turn(self) -> None:
        if self._left:
            self._left_turn += 1
        elif self._awaits_user:
            self._awaits_user = False
        else:
            self.summary.turns += 1

    def _add(
        self,
        role: Role,
        text: str = "",
        *,
        tool_call: ToolCall | None = None,
        tool_result: ToolResult | None = None,
        agent: str | None = None,
    ) -> None:
        turn = self._left_turn if self._left else self.summary.turns
        self.summary.left_entries += self._left
        self._entries.append(
            SessionEntry(
                self._line,
                self._timestamp,
                turn,
                role,
                text,
                tool_call,
                tool_result,
                agent,
                self._left,
            )
        )
