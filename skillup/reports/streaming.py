"""`skillup run -v`: the conversations as they are held, block by block, each with its trial's name.

A block (a message, a call, what a tool gave) is printed at once, so that trials which run at the
same time take turns and never mix within one. All text is an agent's or a user's: made plain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from skillup.reports.text import one_line, plain
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import ToolCall, TranscriptItem
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from rich.console import Console

_MESSAGE_LINES = 200
_RESULT_LINES = 20
_LINE_CHARACTERS = 500
_WRITERS = {
    "simulator": "simulated user",
    "follow_up": "user, follow-up",
    "again": "user, sent again",
}


class ConversationStream:
    """Prints the conversations of a run; `mask` hides secrets in what it prints."""

    def __init__(self, console: Console, mask: Callable[[str], str] = str) -> None:
        self._console = console
        self._mask = mask
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
            lines = list(_checks(turn.deciding_checks()))
            if lines:
                self._print(f"{label}  checks of turn {turn.turn_number}", lines, "dim")
        lines = list(_checks(grade.assertions))
        if lines:
            self._print(f"{label}  checks of the conversation", lines, "dim")
        self._turns.pop(job, None)
        self._calls = {key: name for key, name in self._calls.items() if key[0] != job}

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
            style = "red" if result.status == "error" else "dim"
            self._block(job, label, said, result.content, _RESULT_LINES, style)

    def _block(self, job: str, label: str, who: str, text: str, most: int, style: str) -> None:
        turn = self._turns.get(job)
        where = f"{label}  turn {turn}" if turn else label
        self._print(f"{where}  {who}", _lines(self._mask(text), most), style)

    def _print(self, head: str, lines: Sequence[str], style: str) -> None:
        from rich.text import Text

        block = Text(self._mask(head), style=style)
        for line in lines:
            block.append("\n    " + self._mask(line), style="default not bold")
        self._console.print(block, soft_wrap=True)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments to read: one that stands alone as it is, several by name."""
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in call.arguments.items()
    }
    if len(values) == 1:
        return next(iter(values.values()))
    return "\n".join(f"{name}: {value}" for name, value in values.items())


def _lines(text: str, most: int) -> list[str]:
    lines = [
        line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + "…"
        for line in plain(text).expandtabs().strip("\n").splitlines()
    ]
    if len(lines) > most:
        left_out = len(lines) - most
        lines[most:] = [f"… {left_out} {'line' if left_out == 1 else 'lines'} more"]
    return lines


def _checks(checks: Sequence[CheckResult]) -> Iterator[str]:
    for check in checks:
        mark = "met    " if check.passed else "NOT MET"
        found = "" if check.passed else f": {one_line(check.error or check.found, 300)}"
        yield f"{mark}  {one_line(check.name, 160)}{found}"
