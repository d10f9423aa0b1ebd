"""A trial that has ended, to read in a terminal: its conversation, turn by turn, and its checks.

The blocks are those of `run -v`. All text is an agent's or a user's: made plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.reports.html.advice import ADVICE
from skillup.reports.phrases import attempt_words
from skillup.reports.terminal.run_progress import STYLE
from skillup.reports.terminal.streaming import (
    ConversationStream,
    Line,
    arguments_text,
    text_lines,
)
from skillup.reports.text import one_line, plain, seconds
from skillup.schema.grade import Grade
from skillup.schema.record import HistoryItem, Record, TurnError, TurnRecord, WorkspaceChanges
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from rich.console import Console

RawFiles = Callable[[int, int], Sequence[Path]]
"""The raw streams of a turn, or of its follow-up (from 1; 0: the turn's own message)."""
_EVIDENCE_LINES = 20
_PATHS = 12


@dataclass(frozen=True, slots=True)
class ShownTrial:
    """A trial that has ended."""

    job: str
    label: str
    directory: Path
    record: Record
    grade: Grade | None
    """None: it has none yet, or a damaged one."""
    raw: RawFiles
    earlier: Sequence[tuple[Path, Record]] = ()
    """Attempts that met an error and were tried again, and the files that hold them."""


def print_trial(trial: ShownTrial, console: Console, *, full: bool = False) -> None:
    """All of the trial; unless `full`, results are cut to 20 lines and messages to 200."""
    _Reading(trial, console, full).print()


class _Reading:
    def __init__(self, trial: ShownTrial, console: Console, full: bool) -> None:
        self._trial = trial
        self._stream = ConversationStream(console, full=full)
        self._console = console
        self._told: set[tuple[str, str]] = set()

    def print(self) -> None:
        record, grade = self._trial.record, self._trial.grade
        self._head()
        self._attempts()
        system = (record.case.get("input") or {}).get("system")
        if isinstance(system, str) and system:
            self._block("system prompt", system, "bold")
        for item in record.history:
            self._past(item)
        for turn in record.turns:
            self._turn(turn)
        if grade is not None:
            self._stream.checks("", "checks of the conversation", grade.assertions, details=True)
        end = record.simulated_end
        if end is not None:
            self._block(f"the simulated user ended it: {end.stop}", end.reason, "dim")
        for error in (record.error, _error_of(grade)):
            if error is not None:
                self._error("", error, self._trial.raw(1, 0) if record.error else ())
        for note in record.notes:
            self._block("note", note, "yellow")
        self._line(f"all of it: {self._trial.directory}", "dim")

    def _head(self) -> None:
        from rich.text import Text

        record, grade = self._trial.record, self._trial.grade
        status = grade.status if grade is not None else "no grade"
        line = Text(status, style=STYLE.get(status, "yellow"))
        line.append(f"  {self._trial.label}", style="bold default")
        held = sum(turn.status != "skipped" for turn in record.turns)
        about = [f"{held} turn{'s' if held != 1 else ''}", seconds(record.duration_ms)]
        if record.attempt > 1:
            about.append(attempt_words(record.attempt))
        if grade is not None and grade.status in ("PASS", "FAIL"):
            about.append(f"score {grade.score:.2f}")
        line.append("  " + ", ".join(about), style="not bold dim default")
        self._console.print(line, soft_wrap=True)
        if grade is not None and grade.status != "PASS":
            self._line(f"  {one_line(grade.reason, 1000)}", STYLE[grade.status])
        elif grade is None:
            self._line("  it has no grade that can be read: see `skillup judge`", "yellow")
        if record.skipped and (grade is None or record.skipped not in grade.reason):
            self._line(f"  {one_line(record.skipped, 1000)}", "yellow")

    def _attempts(self) -> None:
        for path, record in self._trial.earlier:
            error = record.first_error()
            failed = [turn.reason for turn in record.turns if turn.status == "failed"]
            why = f"failed: {failed[0]}" if failed else "was given up"
            if error is not None:
                why = f"met an error: {error.kind}: {error.message}"
            head = f"attempt {record.attempt} {one_line(why, 1000)}"
            self._line(f"  {head}", "yellow")
            self._line(f"    it is in {path}, its raw streams in raw.attempt-* beside it", "dim")

    def _past(self, item: HistoryItem) -> None:
        who = {"user": "user", "assistant": "agent", "tool": "a tool gave"}[item.role]
        text = item.tool_result.content if item.tool_result is not None else item.content
        if text:
            self._block(f"history  {who}", text, "bold" if item.role == "user" else "cyan")
        for call in item.tool_calls:
            name = one_line(call.name or call.kind, 60)
            self._block(f"history  agent calls {name}", arguments_text(call), "blue")

    def _turn(self, turn: TurnRecord) -> None:
        number = turn.turn_number
        where = f"turn {number}"
        grades = self._trial.grade.turns if self._trial.grade is not None else []
        graded = next((one for one in grades if one.turn_number == number), None)
        if turn.status == "skipped":
            why = turn.reason.removeprefix("not sent: ") or turn.content
            self._block(f"{where}  not sent", why, "yellow")
            return
        for place, message in enumerate(turn.executed()):
            self._message(number, message)
            if message.error is not None:
                self._error(where, message.error, self._trial.raw(number, place))
            if graded is None:
                continue
            if place == 0:
                self._stream.checks(where, "checks", graded.checks, details=True)
            elif place <= len(graded.follow_ups):
                follow_up = graded.follow_ups[place - 1]
                head = f"checks of the {follow_up.label}"
                self._stream.checks(where, head, follow_up.checks, details=True)
        if turn.status == "failed":
            self._block(f"{where}  failed", turn.reason, "red")
        if graded is not None and graded.error is not None:
            self._error(where, TurnError.model_validate(graded.error), ())

    def _message(self, number: int, message: TurnRecord) -> None:
        job = self._trial.job
        self._console.print()
        self._stream.hear(
            TrialEvent(job, "message_sent", number, text=message.content, source=message.source), ""
        )
        for item in message.transcript:
            self._stream.hear(TrialEvent(job, "item", number, item=item), "")
        said = any(i.type == "message" and not i.agent for i in message.transcript)
        if message.response and not said:
            self._block(f"turn {number}  agent", message.response, "cyan")
        for note in message.notes:
            self._block(f"turn {number}  note", note, "yellow")
        if message.changes is not None:
            changed = "\n".join(_changed(message.changes))
            if changed:
                self._block(f"turn {number}  files", changed, "dim")

    def _error(self, where: str, error: TurnError, raw: Sequence[Path]) -> None:
        """Once: the error of a turn is the trial's, too."""
        if (error.kind, error.message) in self._told:
            return
        self._told.add((error.kind, error.message))
        lines: list[Line] = [(line, "not bold") for line in text_lines(error.message, None)]
        lines += [(line, "not bold dim") for line in text_lines(error.evidence, _EVIDENCE_LINES)]
        advice = ADVICE.get(error.kind)
        if advice:
            lines.append((f"what to do: {advice}", "not bold default"))
        lines += [(f"raw: {plain(str(path))}", "not bold default") for path in raw]
        self._stream.block(where, f"error: {error.kind}", lines, "bold magenta")

    def _block(self, head: str, text: str, style: str) -> None:
        lines = [(line, "default not bold") for line in text_lines(text, None)]
        self._stream.block("", plain(head), lines, style)

    def _line(self, text: str, style: str) -> None:
        from rich.text import Text

        from skillup.reports.terminal.layout import print_folded

        print_folded(self._console, Text(plain(text), style=style))


def _error_of(grade: Grade | None) -> TurnError | None:
    if grade is None or grade.error is None:
        return None
    return TurnError.model_validate(grade.error)


def _changed(changes: WorkspaceChanges) -> Iterator[str]:
    told = (("new", changes.added), ("changed", changes.modified), ("gone", changes.deleted))
    for word, paths in told:
        if paths:
            more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
            yield f"{word}: {', '.join(one_line(path, 200) for path in paths[:_PATHS])}{more}"
