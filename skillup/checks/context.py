"""What a check is asked of: the context handed in from above, and the subject it comes down to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole
from skillup.schema.record import FileState, Record, ToolCall, TurnRecord

ReadFile = Callable[[FileState], bytes | None]
"""The bytes of a stored file, found by its hash; None if they were not kept."""


Ask = Callable[[Check, "CheckContext", CheckRole], CheckResult]
"""Evaluates a check that only a judge can evaluate; also told what the check is part of."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The record, and the turn in question (None: the whole conversation)."""

    record: Record
    turn: TurnRecord | None
    read_file: ReadFile
    ask: Ask | None = None
    """For the checks that need a judge (rubric, relevance, …); None: they cannot be evaluated."""
    withheld: str | None = None
    """Why no judge is asked, as what it says would change nothing; None: they are asked."""

    def about(self, turn: TurnRecord | None) -> CheckContext:
        """The same, with another turn in question."""
        return CheckContext(self.record, turn, self.read_file, self.ask, self.withheld)


@dataclass(frozen=True, slots=True)
class CheckSubject:
    """What a check may look at, once it is known that it may look: completed turns, at least one.

    One turn for a check of a turn, all of them for a check of the conversation. The workspace is
    then that of the last.
    """

    record: Record
    turns: tuple[TurnRecord, ...]
    read_file: ReadFile
    case_sensitive: bool
    answered: TurnRecord | None = None
    """The turn whose answer is read; None: the last."""

    @property
    def last(self) -> TurnRecord:
        """The turn whose workspace and process count."""
        return self.turns[-1]

    @property
    def answer(self) -> str:
        """What the agent said: its last message, or that of the turn in question."""
        return (self.answered or self.turns[-1]).response

    @property
    def calls(self) -> list[ToolCall]:
        """Every tool call, in order."""
        if len(self.turns) == 1:
            return self.turns[0].tool_calls
        return [call for turn in self.turns for call in turn.tool_calls]


# What a check function gives back, before name, weight and place are added to it.


@dataclass(frozen=True, slots=True)
class Finding:
    """Passed or not, what was there, and the piece of it that proves it."""

    passed: bool
    found: str
    excerpt: str = ""
    assertable: bool = True
    evaluated: bool = True
    error: str | None = None
    error_kind: Literal["template"] | None = None
    score: float | None = None
    """None: 1 if passed, else 0."""
    children: tuple[CheckResult, ...] = ()


def not_assertable(why: str) -> Finding:
    """There is nothing to look at: this fails, and so does its negation."""
    return Finding(passed=False, found=why, assertable=False)


def broken(why: str, kind: Literal["template"] | None = None) -> Finding:
    """The check itself could not be evaluated: neither it nor its negation passes."""
    return Finding(passed=False, found="", error=why, error_kind=kind)


class CannotEvaluateError(Exception):
    """The check cannot be evaluated; never leaves this package, where it becomes a `broken`."""


# Excerpts and lists for people: short, on one line, harmless to a terminal.

Span = tuple[int, int]
"""Where a piece starts and ends in a text, in characters."""

_LONGEST = 300
_AROUND = 60
_START = 200

# Control characters become their pictures: a response must not steer the reader's terminal.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20)} | {
    0x0A: "⏎",
    0x0D: "",
    0x09: " ",
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), "·"),
}


def one_line(text: str) -> str:
    """`text` with newlines shown as ⏎ and other control characters as pictures."""
    if text.isprintable():
        return text
    return text.translate(_VISIBLE)


def around(text: str, span: Span) -> str:
    """The piece at `span` with some 60 characters on either side; 300 at most."""
    start, end = span
    left = max(0, start - _AROUND)
    right = min(len(text), max(end, start) + _AROUND, left + _LONGEST - 2)
    before = "…" if left else ""
    after = "…" if right < len(text) else ""
    return before + one_line(text[left:right]) + after


def beginning(text: str, longest: int = _START) -> str:
    """The start of `text`."""
    text = text.strip()
    return one_line(text[:longest]) + ("…" if len(text) > longest else "")


def quoted(text: str, longest: int = 80) -> str:
    """`text` in quotes, shortened."""
    return f'"{beginning(text, longest)}"'


def listed(items: Iterable[str], *, nothing: str = "none", longest: int = _LONGEST) -> str:
    """The items with commas between; what does not fit is counted."""
    shown = list(items)
    room = longest
    for count, item in enumerate(shown):
        room -= len(item) + 2
        if room < 0:
            return ", ".join([*shown[:count], f"and {len(shown) - count} more"])
    return ", ".join(shown) or nothing
