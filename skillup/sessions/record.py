"""A session file of an agent as a record: as if skillup had held the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
    TranscriptItem,
    TurnError,
    TurnRecord,
    Usage,
)
from skillup.sessions.readers import SessionTranscript
from skillup.sessions.usage import usage_of_turns
from skillup.trial.history import past_of
from skillup.trial.message import not_sent

# From the entries of a session to turns as skillup would have held them. Pure.

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
    messages: list[str] = field(default_factory=list)
    """Empty: the file does not tell them."""
    command: bool = False
    """The message is a command of the CLI, spelt as it is typed."""
    answered: bool = False
    items: list[TranscriptItem] = field(default_factory=list)
    response: str = ""
    started: str | None = None
    ended: str | None = None
    interrupted: bool = False

    @property
    def content(self) -> str:
        """What the agent was told."""
        return "\n\n".join(self.messages)

    @property
    def wordless(self) -> bool:
        """There is a message, and nothing but space in it."""
        return bool(self.messages) and not self.content.strip()


@dataclass(slots=True)
class SessionTurns:
    """What a session comes to."""

    turns: list[SessionTurn] = field(default_factory=list)
    """Those that were answered, in order."""
    unanswered: list[SessionTurn] = field(default_factory=list)
    """Commands that the CLI ran by itself, and messages at the end."""
    before: int = 0
    """Things said or done before the first message."""
    wordless: int = 0
    """Answered messages without any text: no turns, as nobody could send them."""


def turns_of(entries: Iterable[SessionEntry]) -> SessionTurns:
    """The turns of the conversation as it stands: branches that were left are no part of it."""
    found = SessionTurns()
    turn: SessionTurn | None = None
    for entry in entries:
        if entry.left:
            continue
        if entry.turn == 0:
            found.before += entry.role != "notice"
            continue
        is_message = entry.role == "user" and entry.agent is None
        if turn is None or _begins(entry, turn, is_message=is_message):
            _close(turn, found)
            turn = SessionTurn(entry.line)
        if entry.turn not in turn.numbers:
            turn.numbers.append(entry.turn)
        turn.started = turn.started or entry.timestamp
        turn.ended = entry.timestamp or turn.ended
        if is_message:
            _say(turn, entry.text)
        else:
            _do(turn, entry)
    _close(turn, found)
    return found


def _begins(entry: SessionEntry, turn: SessionTurn, *, is_message: bool) -> bool:
    if not is_message:
        return entry.turn not in turn.numbers
    return turn.answered or turn.command or (bool(turn.messages) and _is_command(entry.text))


def _say(turn: SessionTurn, text: str) -> None:
    turn.command = _is_command(text)
    text = _as_typed(text)
    # Tried again after an error: the same message, once.
    if text not in turn.messages[-1:]:
        turn.messages.append(text)


def _do(turn: SessionTurn, entry: SessionEntry) -> None:
    if entry.tool_call is not None:
        turn.answered = True
        item = TranscriptItem(type="tool_call", tool_call=entry.tool_call, agent=entry.agent)
    elif entry.tool_result is not None:
        item = TranscriptItem(type="tool_result", tool_result=entry.tool_result, agent=entry.agent)
    elif entry.role == "assistant":
        if entry.agent is None:
            turn.answered, turn.response = True, entry.text
        item = TranscriptItem(type="message", text=entry.text, agent=entry.agent)
    elif entry.role == "reasoning":
        item = TranscriptItem(type="reasoning", text=entry.text, agent=entry.agent)
    else:
        # What a sub-agent was told stands in the call that started it.
        turn.interrupted = turn.interrupted or entry.text.startswith(_INTERRUPTED)
        item = TranscriptItem(type="notice", text=entry.text, agent=entry.agent)
    turn.items.append(item)


def _close(turn: SessionTurn | None, found: SessionTurns) -> None:
    if turn is not None:
        (found.turns if turn.answered else found.unanswered).append(turn)


def _is_command(text: str) -> bool:
    return text.lstrip().startswith(_SHELL) or _COMMAND.search(text) is not None


def _as_typed(text: str) -> str:
    """``/name arguments`` of what Claude Code writes for a command; else the text itself."""
    name = _COMMAND.search(text)
    if name is None:
        return text
    arguments = _ARGUMENTS.search(text)
    given = arguments[1].strip() if arguments is not None else ""
    return f"/{name[1]} {given}".rstrip()


# Which turns of a session are a history that was put into it, and were never held.

_Said = tuple[str, str]
"""Who said it, and what."""


def seeded_turns(
    found: SessionTurns, history: Sequence[HistoryItem], fillers: Sequence[str] = ()
) -> int | None:
    """How many of the session's turns, from its first on, are the cleaned `history`.

    Whatever user and assistant say is compared, calls of tools are not: each engine writes them in
    its own way. None if the session does not begin with the history.
    """
    sides = ((item.role, item.content) for item in history if item.tool_result is None)
    wanted = _joined(sides, fillers)
    if found.before:  # what an assistant said before any user is in no turn
        wanted = wanted[next((n for n, one in enumerate(wanted) if one[0] == "user"), 0) :]
    for count in range(len(found.turns) + 1):
        said = _joined((one for turn in found.turns[:count] for one in _said_in(turn)), fillers)
        if said == wanted:
            return count
        if len(said) > len(wanted):
            return None
    return None


def _said_in(turn: SessionTurn) -> Iterable[_Said]:
    yield "user", turn.content
    for item in turn.items:
        if item.type == "message" and item.agent is None:
            yield "assistant", item.text or ""


def _joined(said: Iterable[_Said], fillers: Sequence[str]) -> list[_Said]:
    """Each speaker's words in a row as one text; spaces and the fillers of an engine do not count.

    A user's message that was said again is there once, as in the turns of a session.
    """
    joined: list[_Said] = []
    for role, text in said:
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


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A session that was read whole."""

    path: Path
    format: SessionFormat
    summary: SessionSummary
    found: SessionTurns
    usages: tuple[Usage | None, ...]
    """Of each of its turns."""

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
    told = [pair for pair in zip(found.turns, usages, strict=True) if not pair[0].wordless]
    found.wordless = len(found.turns) - len(told)
    found.turns = [turn for turn, _ in told]
    counts = tuple(usage for _, usage in told)
    return RecordedSession(path, format_, transcript.summary, found, counts)


def record_of_session(session: RecordedSession, case: Case, suite: str) -> Record:
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
    session: RecordedSession, case: Case
) -> tuple[RecordedSession, tuple[HistoryItem, ...], tuple[str, ...]]:
    """The session without the case's history, what that is, and a note if it is not there."""
    if not case.input.history:
        return session, (), ()
    history = past_of(case.input, case.vars).items
    count = seeded_turns(session.found, history, session.format.fillers)
    if count is None:
        note = "the case begins with a history that the session does not begin with"
        return session, (), (note,)
    found = session.found
    live = replace(found, turns=found.turns[count:], before=0)
    return replace(session, found=live, usages=session.usages[count:]), history, ()


def notes_of(session: RecordedSession, case: Case) -> list[str]:
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
