"""`skillup run -v`: the conversations as they are held, block by block, each with its trial's name.

A block (a message, a call, what a tool gave) is printed at once, so that trials which run at the
same time take turns and never mix within one. All text is an agent's or a user's: made plain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from skillup.checks.describe import beside_found, in_words
from skillup.judges.rejudge.changes import is_read
from skillup.reports.terminal.layout import folded
from skillup.reports.text import one_line, plain
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import ToolCall, TranscriptItem
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from rich.console import Console

_MESSAGE_LINES = 200
_RESULT_LINES = 20
_LINE_CHARACTERS = 500
_BODY = "default not bold"
_PARTS = frozenset({"criterion", "aspect", "window"})
_UNMET = "red not dim not bold"
Line = tuple[str, str]
"""A line's text, and its style."""
_WRITERS = {
    "simulator": "simulated user",
    "follow_up": "user, follow-up",
    "again": "user, sent again",
}


class ConversationStream:
    """Prints the conversations of a run; `mask` hides secrets in what it prints."""

    def __init__(
        self,
        console: Console,
        mask: Callable[[str], str] = str,
        *,
        full: bool = False,
    ) -> None:
        """`full`: nothing is shortened."""
        self._console = console
        self._mask = mask
        self._full = full
        self._turns: dict[str, int] = {}
        self._calls: dict[tuple[str, str], str] = {}

    def hear(self, event: TrialEvent, label: str) -> None:
        """Something happens in the trial that `label` names."""
        if event.kind == "turn_started":
            self._turns[event.job] = event.turn
        elif event.kind == "message_sent":
            self._turns[event.job] = event.turn
            many = f" (of {event.shared_by} trials)" if event.shared_by > 1 else ""
            writer = _WRITERS.get(event.source, "user") + many
            self._block(event.job, label, writer, event.text, _MESSAGE_LINES, "bold")
        elif event.kind == "item" and event.item is not None:
            self._item(event.job, label, event.item)
        elif event.kind == "turn_ended" and event.text != "completed":
            self._block(event.job, label, f"the turn ended: {event.text}", "", 0, "yellow")

    def end(self, job: str, label: str, grade: Grade) -> None:
        """The trial has ended: its checks, turn by turn."""
        for turn in grade.turns:
            self.checks(label, f"checks of turn {turn.turn_number}", turn.deciding_checks())
        self.checks(label, "checks of the conversation", grade.assertions)
        self._turns.pop(job, None)
        self._calls = {key: name for key, name in self._calls.items() if key[0] != job}

    def checks(
        self, label: str, head: str, checks: Sequence[CheckResult], *, details: bool = False
    ) -> None:
        """A block of checks, if there are any; with `details`, what those not met expected.

        In full, with details, what judges said of those that are met, too.
        """
        full = details and self._full
        lines = [line for check in checks for line in _check(check, details, full)]
        if lines:
            self.block(label, head, lines, "dim")

    def _item(self, job: str, label: str, item: TranscriptItem) -> None:
        who = f"sub-agent {one_line(item.agent, 40)}" if item.agent else "agent"
        if item.type == "message":
            self._block(job, label, who, item.text or "", _MESSAGE_LINES, "cyan")
        elif item.type == "reasoning":
            self._block(job, label, f"{who} thinks", item.text or "", _RESULT_LINES, "dim")
        elif item.type == "notice":
            self._block(job, label, "notice", item.text or "", _RESULT_LINES, "yellow")
        elif item.tool_call is not None:
            call = item.tool_call
            name = one_line(call.name, 60)
            self._calls[job, call.id] = name
            head = f"{who} calls {name}"
            self._block(job, label, head, arguments_text(call), _RESULT_LINES, "blue")
        elif item.tool_result is not None:
            result = item.tool_result
            name = self._calls.get((job, result.call_id), "a tool")
            said = f"{name} failed" if result.status == "error" else f"{name} gave"
            if not result.content.strip():
                said += ", without a word" if result.status == "error" else " nothing"
            style = "red" if result.status == "error" else "dim"
            self._block(job, label, said, result.content, _RESULT_LINES, style)

    def _block(self, job: str, label: str, who: str, text: str, most: int, style: str) -> None:
        turn = self._turns.get(job)
        where = "  ".join(filter(None, (label, f"turn {turn}" if turn else "")))
        lines = text_lines(self._mask(text), None if self._full else most)
        self.block(where, who, [(line, _BODY) for line in lines], style)

    def block(self, where: str, who: str, lines: Sequence[Line], style: str) -> None:
        """A head, and lines below it, each with its style."""
        from rich.text import Text

        head = "  ".join(filter(None, (where, who)))
        parts = [Text(self._mask(head))]
        for line, its_style in lines:
            parts += folded(self._console, Text("    " + self._mask(line), style=its_style))
        block = Text("\n", style=style).join(parts)
        self._console.print(block, soft_wrap=True)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments to read: one that stands alone as it is, several by name."""
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in call.arguments.items()
    }
    if len(values) == 1:
        return next(iter(values.values()))
    return "\n".join(f"{name}:{_beside_or_below(value)}" for name, value in values.items())


def _beside_or_below(value: str) -> str:
    """What has several lines stands below its name: else one would take them for names, too."""
    lines = value.splitlines()
    return f" {value}" if len(lines) < 2 else "".join(f"\n    {line}" for line in lines)


def text_lines(text: str, most: int | None) -> list[str]:
    """`text` fit for a terminal: at most so many lines, none too long; None: all of it."""
    lines = plain(text).expandtabs().strip("\n").splitlines()
    if most is None:
        return lines
    lines = [
        line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + "…"
        for line in lines
    ]
    if len(lines) > most:
        left_out = len(lines) - most
        lines[most:] = [f"… {left_out} {'line' if left_out == 1 else 'lines'} more"]
    return lines


def _check(check: CheckResult, details: bool, full: bool, depth: int = 0) -> Iterator[Line]:
    name = one_line(check.name, 160)
    indent = "  " * depth
    if check.passed:
        yield f"{indent}met      {name}", "dim not bold"
        if full:
            yield from _met(check, indent, depth)
        return
    if not check.evaluated:
        yield f"{indent}not asked {name}", "dim not bold"
        return
    if not details:
        told = f"{name}: {check.error}" if check.error else in_words(check.name, check.found)
        yield f"{indent}NOT MET  {one_line(told, 460)}", _UNMET
        return
    yield f"{indent}NOT MET  {name}", _UNMET
    told_of = (
        ("expected", check.expected),
        ("found", beside_found(check.found)),
        ("error", check.error or ""),
        ("there", check.excerpt),
        *(("note", note) for note in check.notes),
    )
    for word, text in told_of:
        lines = text_lines(text, _RESULT_LINES)
        for number, line in enumerate(lines):
            yield f"{indent}         {word if number == 0 else '':<8} {line}", "not dim not bold"
    for child in check.children:
        yield from _check(child, details, full, depth + 1)


def _met(check: CheckResult, indent: str, depth: int) -> Iterator[Line]:
    """What a judge said of a check that is met, and of its parts."""
    if is_read(check) or check.kind in _PARTS:
        told = [("found", check.found), ("there", check.excerpt)]
        for word, text in [*told, *(("note", note) for note in check.notes)]:
            for number, line in enumerate(text_lines(text, _RESULT_LINES)):
                yield f"{indent}         {word if number == 0 else '':<8} {line}", "dim not bold"
    for child in check.children:
        yield from _check(child, True, True, depth + 1)
