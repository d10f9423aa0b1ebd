"""From the entries of a session to turns, as skillup would have recorded them, and their tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillup.engines.session_entries import SessionEntry, SessionFormat
from skillup.engines.session_files import lines_of
from skillup.schema.record import HistoryItem, TranscriptItem, Usage

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
    messages: list[str] = field(default_factory=list)  # Empty: they are not in the file
    command: bool = False  # The message is a command of the CLI, spelt as it is typed
    answered: bool = False
    items: list[TranscriptItem] = field(default_factory=list)
    response: str = ""
    started: str | None = None
    ended: str | None = None
    interrupted: bool = False

    @property
    def content(self) -> str:
        """What the user wrote."""
        return "\n\n".join(self.messages)

    @property
    def wordless(self) -> bool:
        """There is a message, and nothing but space in it."""
        return bool(self.messages) and not self.content.strip()


@dataclass(slots=True)
class SessionTurns:
    """The turns of a session."""

    turns: list[SessionTurn] = field(default_factory=list)  # Those that were answered, in order
    unanswered: list[SessionTurn] = field(default_factory=list)
    """Commands that the CLI ran by itself, and messages at the end."""
    before: int = 0  # Entries before the first message
    wordless: int = 0  # Answered messages without any text: no turns, as nobody could send them


def turns_of(entries: Iterable[SessionEntry]) -> SessionTurns:
    """The turns of the conversation as it stands: branches that were left are no part of it."""
    found = SessionTurns()
    turn: SessionTurn | None = None
    everything: list[SessionTurn] = []
    for entry in entries:
        if entry.left:
            continue
        if entry.turn == 0:
            found.before += entry.role != "notice"
            continue
        is_message = entry.role == "user" and entry.agent is None
        is_command = is_message and (
            entry.text.lstrip().startswith(_SHELL) or _COMMAND.search(entry.text) is not None
        )
        begins = turn is None or (not is_message and entry.turn not in turn.numbers)
        if turn is not None and is_message:
            begins = turn.answered or turn.command or (bool(turn.messages) and is_command)
        if turn is None or begins:
            turn = SessionTurn(entry.line)
            everything.append(turn)
        if entry.turn not in turn.numbers:
            turn.numbers.append(entry.turn)
        turn.started = turn.started or entry.timestamp
        turn.ended = entry.timestamp or turn.ended
        if is_message:
            turn.command = is_command
            text = _as_typed(entry.text)
            # Sent again after an error: the same message, once.
            if text not in turn.messages[-1:]:
                turn.messages.append(text)
        else:
            turn.items.append(_item(entry, turn))
    for each in everything:
        (found.turns if each.answered else found.unanswered).append(each)
    return found


def _item(entry: SessionEntry, turn: SessionTurn) -> TranscriptItem:
    """The entry for the transcript; the turn is marked as answered or interrupted by it."""
    agent = entry.agent
    if entry.tool_call is not None:
        turn.answered = True
        return TranscriptItem(type="tool_call", tool_call=entry.tool_call, agent=agent)
    if entry.tool_result is not None:
        return TranscriptItem(type="tool_result", tool_result=entry.tool_result, agent=agent)
    if entry.role == "assistant":
        if agent is None:
            turn.answered, turn.response = True, entry.text
        return TranscriptItem(type="message", text=entry.text, agent=agent)
    if entry.role == "reasoning":
        return TranscriptItem(type="reasoning", text=entry.text, agent=agent)
    # The message to a sub-agent stands in the call that started it.
    turn.interrupted = turn.interrupted or entry.text.startswith(_INTERRUPTED)
    return TranscriptItem(type="notice", text=entry.text, agent=agent)


def _as_typed(text: str) -> str:
    """``/name arguments`` of what Claude Code writes for a command; else the text itself."""
    name = _COMMAND.search(text)
    if name is None:
        return text
    arguments = _ARGUMENTS.search(text)
    given = arguments[1].strip() if arguments is not None else ""
    return f"/{name[1]} {given}".rstrip()


def seeded_turns(
    found: SessionTurns, history: Sequence[HistoryItem], fillers: Sequence[str] = ()
) -> int | None:
    """How many of the session's turns, from its first on, are the cleaned `history`.

    The words of user and assistant are compared, calls of tools are not: each engine writes them
    in its own way. None if the session does not begin with the history.
    """
    sides = ((item.role, item.content) for item in history if item.tool_result is None)
    expected = _joined(sides, fillers)
    if found.before:  # what an assistant said before any user is in no turn
        expected = expected[next((n for n, one in enumerate(expected) if one[0] == "user"), 0) :]
    for count in range(len(found.turns) + 1):
        actual = _joined(_words_of(found.turns[:count]), fillers)
        if actual == expected:
            return count
        if len(actual) > len(expected):
            return None
    return None


def _words_of(turns: Sequence[SessionTurn]) -> Iterator[tuple[str, str]]:
    for turn in turns:
        yield "user", turn.content
        for item in turn.items:
            if item.type == "message" and item.agent is None:
                yield "assistant", item.text or ""


def _joined(pairs: Iterable[tuple[str, str]], fillers: Sequence[str]) -> list[tuple[str, str]]:
    """Each speaker's words in a row as one text; spaces and the fillers of an engine do not count.

    A user's message that was sent again is there once, as in the turns of a session.
    """
    joined: list[tuple[str, str]] = []
    for role, text in pairs:
        words = " ".join(text.split())
        if not words or words in fillers:
            continue
        if joined and joined[-1][0] == role:
            before = joined[-1][1]
            if not (role == "user" and before.endswith(words)):
                joined[-1] = (role, f"{before} {words}")
        else:
            joined.append((role, words))
    return joined


def usage_of_turns(
    path: Path, format_: SessionFormat, first_lines: Sequence[int], counted: frozenset[int]
) -> list[Usage | None]:
    """For each turn, by its first line; None where the file has no counts.

    Where a session has branches, only the rows in `counted` count. Raises OSError.
    """
    turns: list[dict[str, dict[str, int]]] = [{} for _ in first_lines]
    for line in lines_of(path) if first_lines else ():
        found = format_.tokens(line.row) if isinstance(line.row, dict) else None
        turn = bisect_right(first_lines, line.number) - 1
        if found and turn >= 0 and (format_.left_lines is None or line.number in counted):
            key, counts = found
            turns[turn][key or str(line.number)] = counts
    usages: list[Usage | None] = []
    before: dict[str, int] = {}
    for of_turn in turns:
        parts = list(of_turn.values())
        if format_.running_total and parts:
            total = parts[0]
            own = {name: count - before.get(name, 0) for name, count in total.items()}
            # After a compaction, or in a thread of another process, it may begin again.
            parts = [total if any(count < 0 for count in own.values()) else own]
            before = total
        names = {name for part in parts for name in part}
        sums = {name: sum(part.get(name, 0) for part in parts) for name in names}
        usages.append(Usage(**sums) if parts else None)
    return usages
