"""From the entries of a session to turns as skillup would have held them. Pure.

A turn here is what was answered: messages in a row that got one answer are one turn, as an agent
would have been sent them. Messages that got none, and commands that the CLI ran by itself, are
none; they are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from skillup.engines.session_entries import SessionEntry
from skillup.schema.record import TranscriptItem

_COMMAND = re.compile(r"<command-name>\s*/?([^<]*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL = "<bash-input>"
_INTERRUPTED = "[Request interrupted"


@dataclass(slots=True)
class SessionTurn:
    """One or more messages of the user, and all that was done until the next one."""

    first_line: int
    numbers: list[int] = field(default_factory=list)
    """The turns of `skillup session show` that it is made of."""
    messages: list[str] = field(default_factory=list)
    """Empty: the file does not tell them."""
    command: bool = False
    """The message is a command of the CLI, spelt as it is typed."""
    answered: bool = False
    items: list[TranscriptItem] = field(default_factory=list)
    response: str = ""
    started: str | None = None
    ended: str | None = None
    interrupted: bool = False

    @property
    def content(self) -> str:
        """What the agent was told."""
        return "\n\n".join(self.messages)

    @property
    def wordless(self) -> bool:
        """There is a message, and nothing but space in it."""
        return bool(self.messages) and not self.content.strip()


@dataclass(slots=True)
class SessionTurns:
    """What a session comes to."""

    turns: list[SessionTurn] = field(default_factory=list)
    """Those that were answered, in order."""
    unanswered: list[SessionTurn] = field(default_factory=list)
    """Commands that the CLI ran by itself, and messages at the end."""
    before: int = 0
    """Things said or done before the first message."""
    wordless: int = 0
    """Answered messages without any text: no turns, as nobody could send them."""


def turns_of(entries: Iterable[SessionEntry]) -> SessionTurns:
    """The turns of the conversation as it stands: branches that were left are no part of it."""
    found = SessionTurns()
    turn: SessionTurn | None = None
    for entry in entries:
        if entry.left:
            continue
        if entry.turn == 0:
            found.before += entry.role != "notice"
            continue
        is_message = entry.role == "user" and entry.agent is None
        if turn is None or _begins(entry, turn, is_message=is_message):
            _close(turn, found)
            turn = SessionTurn(entry.line)
        if entry.turn not in turn.numbers:
            turn.numbers.append(entry.turn)
        turn.started = turn.started or entry.timestamp
        turn.ended = entry.timestamp or turn.ended
        if is_message:
            _say(turn, entry.text)
        else:
            _do(turn, entry)
    _close(turn, found)
    return found


def _begins(entry: SessionEntry, turn: SessionTurn, *, is_message: bool) -> bool:
    if not is_message:
        return entry.turn not in turn.numbers
    return turn.answered or turn.command or (bool(turn.messages) and _is_command(entry.text))


def _say(turn: SessionTurn, text: str) -> None:
    turn.command = _is_command(text)
    text = _as_typed(text)
    # Tried again after an error: the same message, once.
    if text not in turn.messages[-1:]:
        turn.messages.append(text)


def _do(turn: SessionTurn, entry: SessionEntry) -> None:
    if entry.tool_call is not None:
        turn.answered = True
        item = TranscriptItem(type="tool_call", tool_call=entry.tool_call, agent=entry.agent)
    elif entry.tool_result is not None:
        item = TranscriptItem(type="tool_result", tool_result=entry.tool_result, agent=entry.agent)
    elif entry.role == "assistant":
        if entry.agent is None:
            turn.answered, turn.response = True, entry.text
        item = TranscriptItem(type="message", text=entry.text, agent=entry.agent)
    elif entry.role == "reasoning":
        item = TranscriptItem(type="reasoning", text=entry.text, agent=entry.agent)
    else:
        # What a sub-agent was told stands in the call that started it.
        turn.interrupted = turn.interrupted or entry.text.startswith(_INTERRUPTED)
        item = TranscriptItem(type="notice", text=entry.text, agent=entry.agent)
    turn.items.append(item)


def _close(turn: SessionTurn | None, found: SessionTurns) -> None:
    if turn is not None:
        (found.turns if turn.answered else found.unanswered).append(turn)


def _is_command(text: str) -> bool:
    return text.lstrip().startswith(_SHELL) or _COMMAND.search(text) is not None


def _as_typed(text: str) -> str:
    """``/name arguments`` of what Claude Code writes for a command; else the text itself."""
    name = _COMMAND.search(text)
    if name is None:
        return text
    arguments = _ARGUMENTS.search(text)
    given = arguments[1].strip() if arguments is not None else ""
    return f"/{name[1]} {given}".rstrip()
