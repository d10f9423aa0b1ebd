"""A session file of an agent as a record: as if skillup had run the conversation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

from skillup.dataclass import frozen, mutable
from skillup.engines.session_files import SessionEntry, SessionSummary
from skillup.errors import UsageError
from skillup.judges.grade import written_turns
from skillup.reports.text import count
from skillup.schema.case import Case
from skillup.schema.record import EngineInfo, Record, TranscriptItem, TurnError, TurnRecord, Usage
from skillup.sessions.index import session_format
from skillup.trial.session import not_sent

_COMMAND = re.compile(r"<command-name>\s*/?([^<]*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL = "<bash-input>"
_INTERRUPTED = "[Request interrupted"


@mutable
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
    used: Counter[str] = field(default_factory=Counter)  # Tokens, by their names in `Usage`

    @property
    def content(self) -> str:
        return "\n\n".join(self.messages)


@frozen
class RecordedSession:
    """A session that was read whole."""

    path: Path
    engine: str  # The adapter whose CLI wrote it
    summary: SessionSummary
    turns: list[SessionTurn]  # Those that were answered, in order
    unanswered: list[SessionTurn]  # Commands that the CLI ran by itself, and messages at the end


def read_session(path: Path) -> RecordedSession:
    """The session in the file. Raises UsageError if it is none, or cannot be read."""
    reader = session_format(path)()
    try:
        turns, unanswered = _turns_of(reader.read(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    lines = [turn.first_line for turn in turns]
    for number in reader.unread:
        if after := bisect_right(lines, number):
            turns[after - 1].unread_lines += 1
    for number, counts in reader.used.values():
        if after := bisect_right(lines, number):
            turns[after - 1].used.update(counts)
    return RecordedSession(path, reader.engine, reader.summary, turns, unanswered)


def _turns_of(entries: Iterable[SessionEntry]) -> tuple[list[SessionTurn], list[SessionTurn]]:
    """Those that were answered, and the others. A message without any text is none."""
    turns: list[SessionTurn] = []
    unanswered: list[SessionTurn] = []
    turn: SessionTurn | None = None
    for entry in entries:
        item, text = entry.item, entry.item.text or ""
        if entry.role == "user" and item.agent is None:
            if not text.strip():
                continue
            command = _COMMAND.search(text)
            is_command = text.lstrip().startswith(_SHELL) or command is not None
            if turn is None or turn.answered or turn.command or is_command:
                turn = SessionTurn(entry.line, command=is_command)
                unanswered.append(turn)
            if command is not None:
                arguments = _ARGUMENTS.search(text)
                text = f"/{command[1]} {arguments[1].strip() if arguments else ''}".rstrip()
            # Sent again after an error: the same message, once.
            if text not in turn.messages[-1:]:
                turn.messages.append(text)
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
                turns.append(turn)
                unanswered.remove(turn)
            turn.response = text if answers else turn.response
            turn.interrupted |= entry.role == "notice" and text.startswith(_INTERRUPTED)
        turn.started = turn.started or entry.timestamp
        turn.ended = entry.timestamp or turn.ended
    return turns, unanswered


def record_of_session(session: RecordedSession, case: Case, suite: str) -> Record:
    """The record that `case` is judged by: turn n of the session is turn n of the case.

    A session has no snapshot of its workspace, so checks of files cannot be evaluated.
    Unanswered messages at the end are turns only if the case has turns for them: as errors. Turns
    beyond those that the case writes down are left out; those that the session lacks are skipped.
    """
    summary = session.summary
    written = session.turns[: written_turns(case)]
    turns = [_turn(number, turn, summary) for number, turn in enumerate(written, start=1)]
    case_turns = case.input.all_turns()
    last = session.turns[-1].first_line if session.turns else 0
    waiting = [t for t in session.unanswered if t.first_line > last and not t.command]
    for turn in waiting[: max(0, len(case_turns) - len(turns))]:
        text = next((item.text for item in reversed(turn.items) if item.text), None) or ""
        what = "the session has no answer to this message"
        unanswered = _turn(len(turns) + 1, turn, summary)
        error = TurnError(kind="protocol", message=what, evidence=text[:500])
        turns.append(unanswered.model_copy(update={"status": "error", "error": error}))
    what = "the session has no message that was answered: there is nothing to judge"
    no_turn = None if turns else TurnError(kind="protocol", message=what)
    for missing in case_turns[len(turns) :] if turns else ():
        text = missing.content or missing.respond or ""
        turns.append(not_sent(len(turns) + 1, text, "the session ends before this turn"))
    started = datetime.fromtimestamp(session.path.stat().st_mtime, UTC)
    return Record(
        run_id="session",
        suite=suite,
        case_id=case.id,
        case=case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        engine=EngineInfo(
            profile=session.engine,
            adapter=session.engine,
            version=summary.version,
            model=summary.model,
            # It was the user's own: their skills, memory and settings were there.
            isolation="shared",
        ),
        started_at=summary.started or started.isoformat(timespec="milliseconds"),
        duration_ms=sum(turn.duration_ms for turn in turns),
        session_id=summary.session_id,
        turns=turns,
        notes=_notes(session, case),
        error=no_turn,
    )


def _notes(session: RecordedSession, case: Case) -> list[str]:
    """What of the session is no turn, and where it and the case do not go together."""
    notes = []
    if case.input.history:
        notes.append("the case's history is not looked for: its turn 1 is the session's first")
    there, written = len(session.turns), written_turns(case)
    if written is not None and there != written:
        what = "turns beyond are not judged" if there > written else "checks of the others fail"
        has, wants = count(there, "turn"), count(written, "turn")
        notes.append(f"the session has {has}, the case {wants}: {what}")
    if unanswered := len(session.unanswered):
        notes.append(f"messages or commands without an answer, which are no turns: {unanswered}")
    if session.summary.truncated:
        notes.append("the last line of the session is cut off")
    if session.summary.unknown_lines:
        notes.append(f"{session.summary.unknown_lines} lines of the session are not understood")
    return notes


def _turn(number: int, turn: SessionTurn, summary: SessionSummary) -> TurnRecord:
    try:
        began, ended = (datetime.fromisoformat(text or "") for text in (turn.started, turn.ended))
        took = round((ended - began).total_seconds() * 1000)
    except (ValueError, TypeError):  # no time, or only one with a zone
        took = 0
    return TurnRecord(
        turn_number=number,
        status="completed",
        source="history",
        content=turn.content,
        response=turn.response,
        transcript=turn.items,
        session_id=summary.session_id,
        workspace=summary.cwd,
        usage=Usage(**turn.used) if turn.used else None,
        unread_lines=turn.unread_lines,
        model=summary.model if turn.answered else None,
        started_at=turn.started,
        duration_ms=max(0, took),
        notes=["the user interrupted the agent"] if turn.interrupted else [],
    )
