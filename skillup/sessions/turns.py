"""From the entries of a session to turns, as skillup would have recorded them, and their tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from skillup.engines.session_entries import SessionEntry
from skillup.schema.record import TranscriptItem, Usage

_COMMAND = re.compile(r"<command-name>\s*/?([^<]*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL = "<bash-input>"
_INTERRUPTED = "[Request interrupted"


@dataclass(slots=True)
class SessionTurn:
    """One or more messages of the user, and all that was done until the next one."""

    first_line: int
    messages: list[str] = field(default_factory=list)
    command: bool = False  # The message is a command of the CLI, spelt as it is typed
    answered: bool = False
    items: list[TranscriptItem] = field(default_factory=list)
    response: str = ""
    started: str | None = None
    ended: str | None = None
    interrupted: bool = False
    unread_lines: int = 0

    @property
    def content(self) -> str:
        """What the user wrote."""
        return "\n\n".join(self.messages)


@dataclass(slots=True)
class SessionTurns:
    """The turns of a session."""

    turns: list[SessionTurn] = field(default_factory=list)  # Those that were answered, in order
    unanswered: list[SessionTurn] = field(default_factory=list)
    """Commands that the CLI ran by itself, and messages at the end."""


def turns_of(entries: Iterable[SessionEntry]) -> SessionTurns:
    """The turns of the conversation. A message without any text is none: nobody could send it."""
    found = SessionTurns()
    turn: SessionTurn | None = None
    for entry in entries:
        item, text = entry.item, entry.item.text or ""
        if entry.role == "user" and item.agent is None:
            if not text.strip():
                continue
            is_command = text.lstrip().startswith(_SHELL) or _COMMAND.search(text) is not None
            if turn is None or turn.answered or turn.command or is_command:
                turn = SessionTurn(entry.line, command=is_command)
                found.unanswered.append(turn)
            # Sent again after an error: the same message, once.
            if (typed := _as_typed(text)) not in turn.messages[-1:]:
                turn.messages.append(typed)
        elif turn is None:
            continue
        elif entry.role == "user":
            # The message to a sub-agent stands in the call that started it, too.
            turn.items.append(item.model_copy(update={"type": "notice"}))
        else:
            turn.items.append(item)
            answers = item.agent is None and entry.role == "assistant"
            if not turn.answered and (answers or entry.role == "tool_call"):
                turn.answered = True
                found.turns.append(turn)
                found.unanswered.remove(turn)
            turn.response = text if answers else turn.response
            turn.interrupted |= entry.role == "notice" and text.startswith(_INTERRUPTED)
        turn.started = turn.started or entry.timestamp
        turn.ended = entry.timestamp or turn.ended
    return found


def _as_typed(text: str) -> str:
    """``/name arguments`` of what Claude Code writes for a command; else the text itself."""
    name = _COMMAND.search(text)
    if name is None:
        return text
    arguments = _ARGUMENTS.search(text)
    given = arguments[1].strip() if arguments is not None else ""
    return f"/{name[1]} {given}".rstrip()


def usage_of_turns(
    tokens: Iterable[tuple[int, str, dict[str, int]]],
    first_lines: Sequence[int],
    *,
    running_total: bool,
) -> list[Usage | None]:
    """For each turn, by its first line; None where the session has no counts."""
    turns: list[dict[str, dict[str, int]]] = [{} for _ in first_lines]
    for line, key, counts in tokens:
        turn = bisect_right(first_lines, line) - 1
        if turn >= 0:
            turns[turn][key or str(line)] = counts
    usages: list[Usage | None] = []
    before: dict[str, int] = {}
    for of_turn in turns:
        parts = list(of_turn.values())
        if running_total and parts:
            total = parts[0]
            own = {name: count - before.get(name, 0) for name, count in total.items()}
            # After a compaction, or in a thread of another process, it may begin again.
            parts = [total if any(count < 0 for count in own.values()) else own]
            before = total
        names = {name for part in parts for name in part}
        sums = {name: sum(part.get(name, 0) for part in parts) for name in names}
        usages.append(Usage(**sums) if parts else None)
    return usages
