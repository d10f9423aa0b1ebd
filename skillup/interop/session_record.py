"""A session file of an agent as a record: as if skillup had held the conversation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from skillup.engines.session_entries import SessionEntry, SessionFormat, SessionSummary
from skillup.engines.session_transcript import SessionTranscript, engine_of
from skillup.errors import UsageError
from skillup.interop.session_past import seeded_turns
from skillup.interop.session_turns import SessionTurn, SessionTurns, turns_of
from skillup.interop.session_usage import usage_of_turns
from skillup.judges.written import written_turns
from skillup.schema.case import Case
from skillup.schema.record import EngineInfo, HistoryItem, Record, TurnError, TurnRecord, Usage
from skillup.trial.history import past_of
from skillup.trial.message import not_sent


@dataclass(frozen=True, slots=True)
class HeldSession:
    """A session that was read whole."""

    path: Path
    engine: str
    """The adapter whose CLI wrote it."""
    summary: SessionSummary
    found: SessionTurns
    usages: tuple[Usage | None, ...]
    """Of each of its turns."""


def read_session(path: Path, format_: SessionFormat) -> HeldSession:
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
    told = [pair for pair in zip(found.turns, usages, strict=True) if not pair[0].wordless]
    found.wordless = len(found.turns) - len(told)
    found.turns = [turn for turn, _ in told]
    counts = tuple(usage for _, usage in told)
    return HeldSession(path, engine_of(format_), transcript.summary, found, counts)


def record_of_session(session: HeldSession, case: Case, suite: str) -> Record:
    """The record that `case` is judged by: turn n of the session is turn n of the case.

    If the session begins with the case's own history, the turns after that are counted. A session
    has no snapshot of its workspace, so checks of files cannot be evaluated. Messages at the end
    that got no answer are turns only if the case has turns for them: as errors. What the session
    has beyond the turns that the case writes down is left out; turns that it lacks are skipped.
    """
    session, history, told = _live_part(session, case)
    summary, found = session.summary, session.found
    turns = [
        _turn(number, turn, usage, summary)
        for number, (turn, usage) in enumerate(
            zip(found.turns, session.usages, strict=True), start=1
        )
    ][: written_turns(case)]
    wanted = len(case.input.all_turns())
    last = found.turns[-1].first_line if found.turns else 0
    waiting = [t for t in found.unanswered if t.first_line > last and not t.command]
    for turn in waiting[: max(0, wanted - len(turns))]:
        turns.append(_unanswered(len(turns) + 1, turn, summary))
    error = None
    if not turns:
        message = "the session has no message that was answered: there is nothing to judge"
        error = TurnError(kind="protocol", message=message)
    else:
        turns.extend(_missing(case, len(turns)))
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
        started_at=summary.started or _changed(session.path),
        duration_ms=sum(turn.duration_ms for turn in turns),
        session_id=summary.session_id,
        history=list(history),
        turns=turns,
        notes=[*told, *notes_of(session, case)],
        error=error,
    )


def _live_part(
    session: HeldSession, case: Case
) -> tuple[HeldSession, tuple[HistoryItem, ...], tuple[str, ...]]:
    """The session without the case's history, what that is, and a note if it is not there."""
    if not case.input.history:
        return session, (), ()
    history = past_of(case.input, case.vars).items
    count = seeded_turns(session.found, history)
    if count is None:
        note = "the case begins with a history that the session does not begin with"
        return session, (), (note,)
    found = session.found
    live = replace(found, turns=found.turns[count:], before=0)
    return replace(session, found=live, usages=session.usages[count:]), history, ()


def notes_of(session: HeldSession, case: Case) -> list[str]:
    """What of the session is no turn, and where it and the case do not go together."""
    found, notes = session.found, []
    held, wanted = len(found.turns), written_turns(case)
    if wanted is not None and held != wanted:
        what = "turns beyond are not judged" if held > wanted else "checks of the others fail"
        notes.append(f"the session has {_turns(held)}, the case {_turns(wanted)}: {what}")
    if found.unanswered:
        count = len(found.unanswered)
        notes.append(
            f"{count} message{'s' if count > 1 else ''} or command{'s' if count > 1 else ''} "
            "without an answer of the agent: no turn"
        )
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


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


def _turn(
    number: int, turn: SessionTurn, usage: Usage | None, summary: SessionSummary
) -> TurnRecord:
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
        model=summary.model,
        started_at=turn.started,
        duration_ms=_milliseconds(turn.started, turn.ended),
        notes=_remarks(number, turn),
    )


def _remarks(number: int, turn: SessionTurn) -> list[str]:
    notes = ["the user interrupted the agent"] if turn.interrupted else []
    if turn.numbers != [number]:
        which = ", ".join(map(str, turn.numbers))
        notes.append(f"turn {which} of `skillup session show`")
    return notes


def _unanswered(number: int, turn: SessionTurn, summary: SessionSummary) -> TurnRecord:
    said = next((item.text for item in reversed(turn.items) if item.text), None) or ""
    return TurnRecord(
        turn_number=number,
        status="error",
        source="history",
        content=turn.content,
        transcript=turn.items,
        session_id=summary.session_id,
        started_at=turn.started,
        error=TurnError(
            kind="protocol",
            message="the session has no answer to this message",
            evidence=said[:500],
        ),
    )


def _missing(case: Case, held: int) -> Iterator[TurnRecord]:
    """Those of the case's turns that come after the session's last."""
    for number, turn in enumerate(case.input.all_turns()[held:], start=held + 1):
        said = turn.content or turn.respond or ""
        yield not_sent(number, said, "the session ends before this turn")


def _milliseconds(start: str | None, end: str | None) -> int:
    times = []
    for text in (start, end):
        try:
            time = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
        except ValueError:
            return 0
        times.append(time if time.tzinfo else time.replace(tzinfo=UTC))
    return max(0, round((times[1] - times[0]).total_seconds() * 1000))


def _changed(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="milliseconds")
