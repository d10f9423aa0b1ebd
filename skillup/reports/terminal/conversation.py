"""Conversations on a terminal, block by block: those of `run -v`, and one that `show` prints.

A block is printed at once, so that trials which run at the same time never mix within one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from skillup.checks.context import in_words
from skillup.checks.nearest import near_words
from skillup.dataclass import frozen
from skillup.reports.result import STYLE, Row, error_data, status_of_end, was_evaluated
from skillup.reports.terminal.layout import make_text, print_line
from skillup.reports.text import count, listed, one_line, plain, seconds
from skillup.schema.grade import CheckResult, Grade, TurnGrade
from skillup.schema.record import Record, ToolCall, TranscriptItem, TurnError, TurnRecord
from skillup.trial.request import TrialEvent

_MESSAGE_LINES = 200
_RESULT_LINES = 20
_LINE_CHARACTERS = 500
_MAX_PATHS = 12
_BODY = "default not bold"
_DIM = "dim not bold"
_PARTS = frozenset({"criterion", "aspect", "window"})
_WRITERS = {
    "simulator": "simulated user",
    "follow_up": "user, follow-up",
    "again": "user, sent again",
}
Line = str | tuple[str, str]  # A line's text; a tuple has its style, too
RawFiles = Callable[[int, int], Sequence[str]]
"""The raw streams of a turn, or of its follow-up (from 1; 0: the turn's own message): names."""


class ConversationStream:
    """Prints the conversations of a run; `mask` hides secrets in what it prints."""

    def __init__(
        self, console: Console, mask: Callable[[str], str] = str, *, full: bool = False
    ) -> None:
        """`full`: nothing is shortened."""
        self._console = console
        self._mask = mask
        self._full = full
        self._decider: CheckResult | None = None  # Its details were printed already
        self._turns: dict[str, int] = {}
        self._calls: dict[tuple[str, str], str] = {}

    def add(self, event: TrialEvent, label: str) -> None:
        job = event.job
        if event.kind in ("turn_started", "message_sent"):
            self._turns[job] = event.turn
        head, text, most, style = "", "", _MESSAGE_LINES, "bold"
        if event.kind == "message_sent":
            head, text = _WRITERS.get(event.source, "user"), event.text
        elif event.kind == "item" and event.item is not None:
            head, text, most, style = self._item(job, event.item)
        elif event.kind == "turn_ended" and event.text != "completed":
            head, style = f"the turn ended: {event.text}", "yellow"
        if head:
            turn = self._turns.get(job)
            where = "  ".join(filter(None, (label, f"turn {turn}" if turn else "")))
            lines = text_lines(self._mask(text), None if self._full else most)
            self.block(where, head, lines, style)

    def end(self, job: str, label: str, grade: Grade) -> None:
        for turn in grade.turns:
            head = f"checks of turn {turn.turn_number}"
            self.checks(label, head, turn.deciding_checks(), turn.status)
        self.checks(label, "checks of the conversation", grade.assertions, status_of_end(grade))
        self._turns.pop(job, None)
        self._calls = {key: name for key, name in self._calls.items() if key[0] != job}

    def checks(
        self,
        where: str,
        head: str,
        checks: Iterable[CheckResult],
        status: str,
        details: bool = False,
    ) -> None:
        """If there are any, of a turn or case of this status; with `details`, what those that
        failed expected (in full, also what judges said of those that passed).
        """
        full = details and self._full
        lines: list[Line] = []
        for check in checks:
            lines += _check(check, status, details and check is not self._decider, full)
        if lines:
            self.block(where, head, lines, "dim")

    def block(self, where: str, head: str, lines: Sequence[Line], style: str) -> None:
        shown = make_text(self._mask("  ".join(filter(None, (where, head)))), style=style)
        for line in lines:
            text, own = (line, _BODY) if isinstance(line, str) else line
            shown.append(f"\n    {self._mask(text)}", own)
        print_line(self._console, shown)

    def _item(self, job: str, item: TranscriptItem) -> tuple[str, str, int, str]:
        who = f"sub-agent {one_line(item.agent, 40)}" if item.agent else "agent"
        if item.tool_call is not None:
            name = one_line(item.tool_call.name, 60)
            self._calls[job, item.tool_call.id] = name
            return f"{who} calls {name}", arguments_text(item.tool_call), _RESULT_LINES, "blue"
        if item.tool_result is not None:
            result = item.tool_result
            failed = result.status == "error"
            name = self._calls.get((job, result.call_id), "a tool")
            head = f"{name} {'failed' if failed else 'gave'}"
            return head, result.content, _RESULT_LINES, "red" if failed else "dim"
        if item.question is not None:
            return f"{who} asks", f"{item.text}\n{item.question}", _MESSAGE_LINES, "yellow"
        head, lines, style = {
            "reasoning": (f"{who} thinks", _RESULT_LINES, "dim"),
            "notice": ("notice", _RESULT_LINES, "yellow"),
        }.get(item.type, (who, _MESSAGE_LINES, "cyan"))
        return head, item.text or "", lines, style


def arguments_text(call: ToolCall) -> str:
    """A call's arguments to read: one that stands alone as it is, several by name."""
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in call.arguments.items()
    }
    if len(values) == 1:
        return next(iter(values.values()))
    return "\n".join(f"{name}: {value}" for name, value in values.items())


def text_lines(text: str, most: int | None) -> list[str]:
    """`text` fit for a terminal: at most so many lines, none too long; None: all of it."""
    lines = plain(text).expandtabs().strip("\n").splitlines()
    if most is None:
        return lines
    shown = [
        line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + "…"
        for line in lines[:most]
    ]
    more = len(lines) - most
    return shown + ([f"… {count(more, 'line')} more"] if more > 0 else [])


def _check(
    check: CheckResult, status: str, details: bool, full: bool, depth: int = 0
) -> Iterator[tuple[str, str]]:
    from skillup.judges.rejudge import is_read

    name, indent, style = one_line(check.name, 160), "  " * depth, _DIM
    fields: list[tuple[str, str]] = []
    if check.passed:
        yield f"{indent}passed   {name}", style
        if full and (is_read(check) or check.kind in _PARTS):
            fields = [("found", check.found), ("there", check.excerpt)]
    elif not was_evaluated(check, status):
        yield f"{indent}not evaluated  {name}", style
        return
    else:
        style = "not dim not bold"
        sentence = in_words(check.name, check.found)
        # What is found may only repeat what is expected.
        brief = not check.error and len(sentence) < len(f"{check.name}: {check.found}")
        if check.error or (details and not brief):
            sentence = name if details else f"{name}: {check.error}"
        if details:
            fields = [("expected", "" if check.expected in check.name else check.expected)]
            fields += [("found", "" if brief else check.found.removeprefix("found "))]
            fields += [("error", check.error or ""), ("there", check.excerpt)]
        if details and (near := check.nearest) is not None:
            caret = " " * cell_len(plain(near.line[: near.at]))
            fields[-1] = ("nearest", f"{near.line}\n{caret}^ {near_words(near)}")
        word, colour = ("unknown", "yellow") if check.unknown else ("FAILED", "red")
        word, colour = ("ERROR", "magenta") if check.error else (word, colour)
        yield f"{indent}{word:<8} {one_line(sentence, 460)}", f"{colour} not dim not bold"
    if fields or (details and check.passed):
        fields += [("note", note) for note in check.notes]
        fields += [("answer", key) for key in check.answers if full]
    for word, text in fields:
        for number, line in enumerate(text_lines(text, _RESULT_LINES)):
            yield f"{indent}         {word if number == 0 else '':<8} {line}", style
    noted = any(child.notes for child in check.children)  # As of a quotation that is not there
    if full or (details and (noted or not check.passed)):
        for child in check.children:
            if not check.error or child.error != check.error:  # which is said already
                yield from _check(child, status, details, full, depth + 1)


@frozen
class ShownTrial:
    job: str
    label: str
    run: str  # Its path, for commands
    record: Record
    grade: Grade | None  # None: it has none yet, or a damaged one
    raw: RawFiles
    earlier: Sequence[Record] = ()
    """Attempts that met an error and were retried."""


class TrialPrinter(ConversationStream):
    def __init__(self, trial: ShownTrial, console: Console, *, full: bool = False) -> None:
        """Unless `full`, results are cut to 20 lines and messages to 200."""
        super().__init__(console, full=full)
        self._trial = trial
        self._errors: set[tuple[str, str]] = set()

    def print(self) -> None:
        record, grade = self._trial.record, self._trial.grade
        self._head()
        for earlier in self._trial.earlier:
            error = earlier.first_error()
            why = f": {error.kind}: {one_line(error.message, 1000)}" if error is not None else ""
            self._line(f"  attempt {earlier.attempt} was retried{why}", "yellow")
        system = (record.case.get("input") or {}).get("system")
        if isinstance(system, str):
            self._text("system prompt", system, "bold")
        user = grade.simulator if grade is not None else None
        if user is not None and user.persona is not None:
            self._line(f"  the simulated user is {user.persona}", "dim")
        for item in record.history:
            who = {"user": "user", "assistant": "agent", "tool": "a tool gave"}[item.role]
            text = item.tool_result.content if item.tool_result is not None else item.content
            self._text(f"history  {who}", text, "bold" if item.role == "user" else "cyan")
            for call in item.tool_calls:
                name = one_line(call.name or call.kind, 60)
                self._text(f"history  agent calls {name}", arguments_text(call) or "-", "blue")
        grades = {turn.turn_number: turn for turn in grade.turns} if grade is not None else {}
        for turn in record.turns:
            self._turn(turn, grades.get(turn.turn_number))
        self._error("", record.error, self._trial.raw(1, 0))
        if grade is not None:
            head = "checks of the conversation"
            self.checks("", head, grade.assertions, status_of_end(grade), details=True)
        if record.simulated_end is not None:
            end = record.simulated_end
            self._text(f"the simulated user ended it: {end.stop}", end.reason or "-", "dim")
        for warning in grade.warnings if grade is not None else ():
            self._text("warning", warning, "yellow")
        self._error("", grade.error if grade is not None else None, ())
        for note in record.notes:
            self._text("note", note, "yellow")
        files = f"skillup export {quote(self._trial.run)} --format files --out DIR"
        self._line(f"all of it, raw streams too: {files}", "dim")

    def _head(self) -> None:
        record, grade = self._trial.record, self._trial.grade
        status = grade.status if grade is not None else "no grade"
        style = STYLE.get(status, "yellow")
        ran = sum(turn.status != "skipped" for turn in record.turns)
        about = [count(ran, "turn"), seconds(record.duration_ms)]
        about += [f"attempt {record.attempt}"] if record.attempt > 1 else []
        if grade is not None and grade.status in ("PASS", "FAIL"):
            about.append(f"score {grade.score:.2f}")
        label = (f"  {self._trial.label}", "bold default")
        line = make_text((status, style), label, ("  " + ", ".join(about), "dim"))
        self._console.print(line, soft_wrap=True)
        if grade is None:
            self._line("  it has no grade that can be read: see `skillup judge`", style)
        elif grade.status != "PASS":
            self._line(f"  {one_line(grade.reason, 1000)}", style)
            named = {f"{f.where}{f.name}": f.check for f in reversed(Row(grade).failures)}
            said = (c for name, c in named.items() if grade.reason.startswith(name))
            self._decider = next(said, None) if grade.status == "FAIL" else None
            details = _check(self._decider, "", True, self._full) if self._decider else ()
            for text, _ in list(details)[1:]:
                if (text.split(maxsplit=1) or [""])[-1] not in grade.reason:
                    self._line(text.removeprefix("       "), "default")
        if record.skipped and (grade is None or record.skipped not in grade.reason):
            self._line(f"  {one_line(record.skipped, 1000)}", "yellow")

    def _turn(self, turn: TurnRecord, grade: TurnGrade | None) -> None:
        number, where = turn.turn_number, f"turn {turn.turn_number}"
        if turn.status == "skipped":
            why = turn.reason.removeprefix("not sent: ") or turn.content
            self._text(f"{where}  not sent", why, "yellow")
            return
        levels = [("checks", grade.checks)] if grade is not None else []
        if grade is not None:
            levels += [(f"checks of the {level.label}", level.checks) for level in grade.follow_ups]
        for place, message in enumerate(turn.executed()):
            self._message(number, message)
            self._error(where, message.error, self._trial.raw(number, place))
            for head, checks in levels[place : place + 1]:
                self.checks(where, head, checks, message.status, details=True)
        whole = self._trial.grade
        if turn.status == "failed" and (whole is None or turn.reason not in whole.reason):
            self._text(f"{where}  failed", turn.reason, "red")
        self._error(where, grade.error if grade is not None else None, ())

    def _message(self, number: int, message: TurnRecord) -> None:
        job, where = self._trial.job, f"turn {number}"
        self._console.print()
        sent = TrialEvent(job, "message_sent", number, text=message.content, source=message.source)
        self.add(sent, "")
        for item in message.transcript:
            self.add(TrialEvent(job, "item", number, item=item), "")
        if not any(i.type == "message" and not i.agent for i in message.transcript):
            self._text(f"{where}  agent", message.response, "cyan")
        for note in message.notes:
            self._text(f"{where}  note", note, "yellow")
        changes = message.changes
        if changes is not None:
            lists = {"new": changes.added, "changed": changes.modified, "gone": changes.deleted}
            lines = [
                f"{word}: {listed([one_line(p, 200) for p in paths[:_MAX_PATHS]], len(paths))}"
                for word, paths in lists.items()
                if paths
            ]
            self._text(f"{where}  files", "\n".join(lines), "dim")

    def _error(
        self, where: str, error: TurnError | Mapping[str, Any] | None, raw: Sequence[str]
    ) -> None:
        """Once: the error of a turn is the trial's, too."""
        data = error_data(error)
        if data is None or (data["kind"], data["message"]) in self._errors:
            return
        self._errors.add((data["kind"], data["message"]))
        grade, lines = self._trial.grade, list[Line]()
        # What the head says already is not said again.
        if grade is None or one_line(data["message"], 1000) not in grade.reason:
            lines += [(line, "not bold") for line in text_lines(data["message"], None)]
        evidence = text_lines(data["evidence"], None)
        more = 0 if self._full else max(0, len(evidence) - _RESULT_LINES)
        lines += [(f"… {count(more, 'line')} before", "not bold dim")] * bool(more)
        lines += [(line, "not bold dim") for line in evidence[more:]]
        if data["advice"]:
            lines.append(f"what to do: {data['advice']}")
        lines += [f"raw stream: {plain(name)}" for name in raw]
        self.block(where, f"error: {data['kind']}", lines, "bold magenta")

    def _text(self, head: str, text: str | None, style: str) -> None:
        if text:
            self.block("", head, text_lines(text, None), style)

    def _line(self, text: str, style: str) -> None:
        print_line(self._console, text, style=style)
