"""A session file of an agent as a record: as if skillup had run the conversation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from skillup.engines.session_entries import SessionEntry, SessionFormat, SessionSummary
from skillup.errors import UsageError
from skillup.judges.grade import written_turns
from skillup.schema.case import Case
from skillup.schema.record import (
    EngineInfo,
    HistoryItem,
    Record,
    TurnError,
    TurnRecord,
    Usage,
)
from skillup.sessions.readers import SessionTranscript
from skillup.sessions.turns import (
    SessionTurn,
    SessionTurns,
    seeded_turns,
    turns_of,
    usage_of_turns,
)
from skillup.trial.history import past_of
from skillup.trial.session import not_sent


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A session that was read whole."""

    path: Path
    format: SessionFormat
    summary: SessionSummary
    found: SessionTurns
    usages: tuple[Usage | None, ...]  # Of each of its turns

    @property
    def engine(self) -> str:
        """The adapter whose CLI wrote it."""
        return self.format.engine


def read_session(path: Path, format_: SessionFormat) -> RecordedSession:
    """The session in the file. Raises UsageError if the file cannot be read."""
    transcript = SessionTranscript(path, format_)
    counted: set[int] = set()

    def standing() -> Iterator[SessionEntry]:
        for entry in transcript:
            if not entry.left:
                counted.add(entry.line)
            yield entry

    try:
        found = turns_of(standing())
        lines = [turn.first_line for turn in found.turns]
        usages = usage_of_turns(path, format_, lines, frozenset(counted))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    # Only now: what their answers took belongs to no other turn.
    kept = [pair for pair in zip(found.turns, usages, strict=True) if not pair[0].wordless]
    found.wordless = len(found.turns) - len(kept)
    found.turns = [turn for turn, _ in kept]
    counts = tuple(usage for _, usage in kept)
    return RecordedSession(path, format_, transcript.summary, found, counts)


def record_of_session(session: RecordedSession, case: Case, suite: str) -> Record:
    """The record that `case` is judged by: turn n of the session is turn n of the case.

    If the session begins with the case's own history, the turns after that are counted. A session
    has no snapshot of its workspace, so checks of files cannot be evaluated. Messages at the end
    that got no answer are turns only if the case has turns for them: as errors. What the session
    has beyond the turns that the case writes down is left out; turns that it lacks are skipped.
    """
    notes: list[str] = []
    history: tuple[HistoryItem, ...] = ()
    if case.input.history:
        history = past_of(case.input, case.vars).items
        count = seeded_turns(session.found, history, session.format.fillers)
        if count is None:
            history = ()
            notes.append("the case begins with a history that the session does not begin with")
        else:
            live = replace(session.found, turns=session.found.turns[count:], before=0)
            session = replace(session, found=live, usages=session.usages[count:])
    summary, found = session.summary, session.found
    pairs = list(zip(found.turns, session.usages, strict=True))[: written_turns(case)]
    turns = [
        _turn(number, turn, usage, summary) for number, (turn, usage) in enumerate(pairs, start=1)
    ]
    asked = case.input.all_turns()
    last = found.turns[-1].first_line if found.turns else 0
    waiting = [t for t in found.unanswered if t.first_line > last and not t.command]
    for turn in waiting[: max(0, len(asked) - len(turns))]:
        text = next((item.text for item in reversed(turn.items) if item.text), None) or ""
        what = "the session has no answer to this message"
        unanswered = _turn(len(turns) + 1, turn, None, summary)
        error = TurnError(kind="protocol", message=what, evidence=text[:500])
        turns.append(unanswered.model_copy(update={"status": "error", "error": error}))
    no_turn: TurnError | None = None
    if not turns:
        what = "the session has no message that was answered: there is nothing to judge"
        no_turn = TurnError(kind="protocol", message=what)
    else:
        for number, missing in enumerate(asked[len(turns) :], start=len(turns) + 1):
            text = missing.content or missing.respond or ""
            turns.append(not_sent(number, text, "the session ends before this turn"))
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
        history=list(history),
        turns=turns,
        notes=[*notes, *_notes(session, case)],
        error=no_turn,
    )


def _notes(session: RecordedSession, case: Case) -> list[str]:
    """What of the session is no turn, and where it and the case do not go together."""
    found, notes = session.found, []
    there, written = len(found.turns), written_turns(case)
    if written is not None and there != written:
        what = "turns beyond are not judged" if there > written else "checks of the others fail"
        has, wants = (f"{n} turn{'' if n == 1 else 's'}" for n in (there, written))
        notes.append(f"the session has {has}, the case {wants}: {what}")
    if count := len(found.unanswered):
        s = "s" if count > 1 else ""
        what = f"{count} message{s} or command{s} without an answer of the agent: no turn"
        notes.append(what)
    if found.wordless:
        messages = "a message" if found.wordless == 1 else f"{found.wordless} messages"
        notes.append(f"{messages} without text, and what was answered to that: no turn")
    if found.before:
        notes.append("what was said or done before the first message is left out")
    if session.summary.truncated:
        notes.append("the last line of the session is cut off")
    if session.summary.unknown_lines:
        notes.append(f"{session.summary.unknown_lines} lines of the session are not understood")
    return notes


def _turn(
    number: int, turn: SessionTurn, usage: Usage | None, summary: SessionSummary
) -> TurnRecord:
    notes = ["the user interrupted the agent"] if turn.interrupted else []
    if turn.answered and turn.numbers != [number]:
        which = ", ".join(map(str, turn.numbers))
        notes.append(f"turn {which} of `skillup session show`")
    times = []
    for text in (turn.started, turn.ended):
        try:
            time = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
            times.append(time if time.tzinfo else time.replace(tzinfo=UTC))
        except ValueError:
            times = []
            break
    took = round((times[1] - times[0]).total_seconds() * 1000) if times else 0
    return TurnRecord(
        turn_number=number,
        status="completed",
        source="history",
        content=turn.content,
        response=turn.response,
        transcript=turn.items,
        session_id=summary.session_id,
        workspace=summary.cwd,
        usage=usage,
        model=summary.model if turn.answered else None,
        started_at=turn.started,
        duration_ms=max(0, took),
        notes=notes,
    )
