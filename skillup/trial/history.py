"""What was said before the first turn: cleaned, numbered, and mined for variables.

A dataset's history is exactly what it is, less what no session can hold (design §6): messages are
sorted, those from the message under test on are cut off, empty ones and repeated answers dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillup.checks.capture import capture
from skillup.checks.context import CannotEvaluateError, beginning, plain
from skillup.checks.text import Searcher
from skillup.engines.base import CreatedSession, Engine, HistorySeeder, SessionResumer, TrialContext
from skillup.schema import templates
from skillup.schema.case import HistoryMessage, Input, Pairs, Reconstruct, Turn
from skillup.schema.patterns import kept_group
from skillup.schema.record import (
    HistoryItem,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnError,
    TurnRecord,
)

if TYPE_CHECKING:
    import regex


# Putting the past into the agent's session, so that its first live turn goes on from there.


async def place_history(
    engine: Engine, items: Sequence[HistoryItem], context: TrialContext
) -> CreatedSession:
    """A session of this trial's that holds `items`; the error says why there is none."""
    if not isinstance(engine, HistorySeeder) or not isinstance(engine, SessionResumer):
        what = f"{engine.name} cannot be given a history; use another engine with --engine"
        return CreatedSession(None, error=TurnError(kind="unsupported", message=what))
    problem = engine.seeding_problem(context.version)
    if problem is not None:
        return CreatedSession(None, error=TurnError(kind="unsupported", message=problem))
    return await engine.seed(items, context)


def unanswered_problem(turns: Sequence[Turn], unanswered: Sequence[str]) -> TurnError | None:
    """Why the past's unanswered messages have no place in the conversation; None: they have."""
    if not unanswered or not turns or turns[0].respond is None:
        return None
    what = "the history ends with a message of the user's, and the simulated user writes the next"
    what += ": leave the last one out, or give turn 1 a `content`"
    return TurnError(kind="unsupported", message=what)


def with_unanswered(turns: Sequence[Turn], unanswered: Sequence[str]) -> list[Turn]:
    """`turns`, the first with the past's unanswered messages before its own.

    They are what the dataset says, not templates. A conversation that a simulated user leads has no
    turns yet: there they are the first.
    """
    past = "\n\n".join(map(templates.escape, unanswered))
    if not past:
        return list(turns)
    if not turns:
        return [Turn(content=past)]
    if turns[0].content is None:
        return list(turns)
    update = {"content": f"{past}\n\n{as_template(turns[0])}", "literal": False}
    return [turns[0].model_copy(update=update), *turns[1:]]


def as_template(turn: Turn) -> str:
    """The turn's message, as a template even where it is none."""
    content = turn.content or ""
    return templates.escape(content) if turn.literal else content


# Rebuilding variables from a history, as the live conversation would have filled them.


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The values by variable; a miss says what was not found, and what to do."""

    values: dict[str, str] = field(default_factory=dict)
    miss: str | None = None


def rebuild(rule: Reconstruct, messages: Sequence[HistoryMessage]) -> Rebuilt:
    """Apply one rule to the cleaned history."""
    if rule.pairs is not None:
        return _paired(rule.pairs, messages)
    assert rule.capture is not None
    wanted = [m for m in messages if rule.role in ("any", m.role) and m.role != "tool"]
    if rule.take == "last":
        wanted.reverse()
    elif rule.take == "last_message":
        wanted = wanted[-1:]
    name, pattern = rule.capture.variable, rule.capture.pattern or ""
    search = Searcher()
    for message in wanted:
        try:
            match = search.search(pattern, plain(message.content))
            value = match[kept_group(pattern)] if match is not None else None
        except (CannotEvaluateError, ValueError) as trouble:
            # A default stands for what was not said, not for a rule that cannot be used.
            return Rebuilt(miss=f"capture `{name}`: {trouble}")
        if value is not None and value.strip():
            return Rebuilt({name: value})
    if rule.capture.default is not None:
        return Rebuilt({name: rule.capture.default})
    whose = "no message" if rule.role == "any" else f"no message of the {rule.role}"
    text = f"capture `{name}`: {whose} of the history has /{rule.capture.pattern}/"
    return Rebuilt(miss=f"{text}; correct it, or give it a `default`")


@dataclass(slots=True, eq=False)
class _Question:
    text: str
    answer: str | None = None


def _paired(rule: Pairs, messages: Sequence[HistoryMessage]) -> Rebuilt:
    """The nth question that was asked for the first time belongs to the nth field.

    A question that is asked again, in the same words, is the same one: the later answer counts.
    """
    try:
        asked, pending = _questions(rule.marker, messages)
    except CannotEvaluateError as trouble:
        return Rebuilt(miss=f"`pairs`: {trouble}")
    values: dict[str, str] = {}
    for name, question in zip(rule.fields, asked, strict=False):
        if question.answer is not None:
            values[name] = question.answer
    if rule.pending is not None:
        values[rule.pending] = "" if pending is None else pending.text
    if rule.pending_field is not None:
        place = len(rule.fields) if pending is None else asked.index(pending)
        values[rule.pending_field] = rule.fields[place] if place < len(rule.fields) else ""
    missing = [name for name in rule.fields if name not in values]
    if missing and rule.default is None:
        heard = ", ".join(f'"{beginning(question.text)}"' for question in asked) or "none"
        text = f"`{missing[0]}` was not answered in the history (questions found: {heard})"
        return Rebuilt(values, f"{text}; correct the `marker`, or give a `default`")
    return Rebuilt({**dict.fromkeys(missing, rule.default or ""), **values})


def _questions(
    marker: str, messages: Sequence[HistoryMessage]
) -> tuple[list[_Question], _Question | None]:
    """In the order in which they were first asked, and the one that is still open."""
    search = Searcher()
    asked: list[_Question] = []
    waiting: _Question | None = None
    for message in messages:
        if message.role == "user":
            if waiting is not None and message.content.strip():
                said = message.content.strip()
                waiting.answer = said if waiting.answer is None else f"{waiting.answer}\n\n{said}"
            continue
        if message.role != "assistant":
            continue
        match = search.search(marker, plain(message.content))
        if match is None:
            if waiting is not None and waiting.answer is not None:
                waiting = None  # what the user says now answers something else
            continue
        text = _question_text(match)
        known = next((q for q in asked if _same(q.text, text)), None)
        waiting = known or _Question(text)
        waiting.answer = None
        if known is None:
            asked.append(waiting)
    return asked, waiting if waiting is not None and waiting.answer is None else None


def _question_text(match: regex.Match[str]) -> str:
    named = match.groupdict().get("question")
    if named is not None and named.strip():
        return named.strip()
    rest = match.string[match.end() :].partition("\n")[0].strip()
    return rest or match[0].strip()


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


NO_RESULT = "(the history does not say what this call gave back)"


@dataclass(frozen=True, slots=True)
class Past:
    """The history as it goes into the session, and what comes of it."""

    items: tuple[HistoryItem, ...] = ()
    """Every call has an id and a result after it; the last item is not the user's."""
    unanswered: tuple[str, ...] = ()
    """User messages at the end that nobody answered: they go before the first live one."""
    variables: dict[str, str] = field(default_factory=dict)
    miss: str | None = None
    """A capture that found nothing."""
    notes: tuple[str, ...] = ()


def past_of(given: Input, variables: Mapping[str, str] | None = None) -> Past:
    """The past that `input.history` describes; empty where there is none.

    `variables` are those of the case itself. Raises UnresolvedNameError for any other in a message.
    Its regexes may take seconds: not to be called where other trials would wait for it.
    """
    variables = variables or {}
    cut = [_filled_in(message, variables) for message in _sorted_and_cut(given)]
    messages = _repeats_dropped(cut)
    notes = list(_dropped(given, cut, messages))
    if messages and messages[-1].role == "user" and _is_first(messages[-1], given, variables):
        messages.pop()  # before anything is taken out of it: what it says is not past yet
        notes.append("the history's last message is the one under test: it was left out")
    items, more = _numbered(messages)
    notes += more
    end = len(items)
    while end and items[end - 1].role == "user":
        end -= 1
    unanswered = [item.content for item in items[end:]]
    past = Past(items=tuple(items[:end]), unanswered=tuple(unanswered), notes=tuple(notes))
    return _reconstructed(_mined(past, messages), given, messages)


def _filled_in(message: HistoryMessage, variables: Mapping[str, str]) -> HistoryMessage:
    if message.literal or not templates.has_templates(message.content):
        return message
    return message.model_copy(update={"content": templates.render(message.content, variables)})


def _is_first(message: HistoryMessage, given: Input, variables: Mapping[str, str]) -> bool:
    """Whether it says what the first live message says."""
    turns = given.all_turns()
    if not turns or turns[0].content is None:
        return False
    first = turns[0].content
    if not turns[0].literal:
        first = "".join(text for text, _ in templates.pieces(first, variables))
    return message.content.strip() == first.strip()


def _sorted_and_cut(given: Input) -> list[HistoryMessage]:
    """By `message_index`; a message without one stays behind the message before it.

    Where no message has one, its place in the list is meant.
    """
    placed: list[tuple[int, HistoryMessage]] = []
    place = -1
    listed = all(message.message_index is None for message in given.history)
    for number, message in enumerate(given.history):
        index = message.message_index
        place = index if index is not None else (number if listed or place < 0 else place)
        placed.append((place, message))
    placed.sort(key=lambda pair: pair[0])
    limit = given.message_index
    return [message for at, message in placed if limit is None or at < limit]


def _dropped(
    given: Input, cut: Sequence[HistoryMessage], messages: Sequence[HistoryMessage]
) -> Iterator[str]:
    if len(cut) < len(given.history):
        count = len(given.history) - len(cut)
        yield f"of the history, {_many(count)} from place {given.message_index} on: left out"
    if len(messages) < len(cut):
        count = len(cut) - len(messages)
        yield f"of the history, {_many(count)} empty or a repeated answer: left out"


def _many(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


def _repeats_dropped(messages: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    kept: list[HistoryMessage] = []
    for message in messages:
        if message.role != "tool" and not message.content.strip() and not message.tool_calls:
            continue
        before = kept[-1] if kept else None
        if before is not None and message.role == "assistant" == before.role:
            same = before.content.strip() == message.content.strip()
            if same and before.tool_calls == message.tool_calls:
                continue
        kept.append(message)
    return kept


def _numbered(messages: Sequence[HistoryMessage]) -> tuple[list[HistoryItem], list[str]]:
    """With an id for every call, and its result behind it before anything else is said."""
    items: list[HistoryItem] = []
    notes: list[str] = []
    waiting: list[_Waiting] = []
    taken = {call.id for message in messages for call in message.tool_calls if call.id}
    used: set[str] = set()
    for message in messages:
        if message.role == "tool":
            answered = _answered(message.call_id, waiting)
            if answered is None:
                notes.append("a tool's result without its call was left out of the history")
                continue
            waiting.remove(answered)
            items.append(_result(answered.id, message.status, message.content))
            continue
        items.extend(_without_results(waiting, notes))
        calls = []
        for call in message.tool_calls:
            call_id = _free_id(call.id, taken, used)
            if call.id is not None and call_id != call.id:
                notes.append(f"the id `{call.id}` is that of several calls: one is `{call_id}` now")
            used.add(call_id)
            waiting.append(_Waiting(call_id, call.id))
            name, kind = call.name or "", call.kind or "other"
            calls.append(ToolCall(id=call_id, name=name, kind=kind, arguments=call.arguments))
        items.append(HistoryItem(role=message.role, content=message.content, tool_calls=calls))
    items.extend(_without_results(waiting, notes))
    return items, notes


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A call without a result so far."""

    id: str
    given: str | None
    """As the history has it; several calls may have the same."""


def _answered(call_id: str | None, waiting: Sequence[_Waiting]) -> _Waiting | None:
    """The first call that a result with this id (None: with none) belongs to."""
    return next((call for call in waiting if call_id in (None, call.given)), None)


def _free_id(given: str | None, taken: set[str], used: set[str]) -> str:
    if given is not None and given not in used:
        return given
    base, number = given or "call_history", 1
    while (name := f"{base}_{number}") in used or name in taken:
        number += 1
    return name


def _without_results(waiting: list[_Waiting], notes: list[str]) -> Iterator[HistoryItem]:
    while waiting:
        call = waiting.pop(0)
        notes.append(f"the history does not say what the call `{call.id}` gave back")
        yield _result(call.id, "unknown", NO_RESULT)


def _result(call_id: str, status: str, content: str) -> HistoryItem:
    result = ToolResult.model_validate({"call_id": call_id, "status": status, "content": content})
    return HistoryItem(role="tool", content=content, tool_result=result)


def _mined(past: Past, messages: Sequence[HistoryMessage]) -> Past:
    """The captures of the messages, taken as if each message were a turn's answer."""
    variables: dict[str, str] = {}
    for number, message in enumerate(messages, start=1):
        if not message.capture:
            continue
        found = capture(message.capture, _as_answer(message))
        variables.update(found.values)
        if found.miss is not None:
            where = f"message {number} of the history"
            return replace(past, variables=variables, miss=f"{where}: {found.miss.message}")
    return replace(past, variables=variables)


def _reconstructed(past: Past, given: Input, messages: Sequence[HistoryMessage]) -> Past:
    """The rules of `input.reconstruct`, in order, after the captures of single messages."""
    variables = dict(past.variables)
    for number, rule in enumerate(given.reconstruct, start=1):
        if past.miss is not None:
            return past
        found = rebuild(rule, messages)
        variables.update(found.values)
        miss = None if found.miss is None else f"rule {number} of `reconstruct`: {found.miss}"
        past = replace(past, variables=variables, miss=miss)
    return past


def _as_answer(message: HistoryMessage) -> TurnRecord:
    calls = [
        TranscriptItem(
            type="tool_call",
            tool_call=ToolCall(
                id=call.id or f"call-{place}",
                name=call.name or "",
                kind=call.kind or "other",
                arguments=call.arguments,
            ),
        )
        for place, call in enumerate(message.tool_calls)
    ]
    return TurnRecord(
        turn_number=0,
        status="completed",
        source="history",
        content="",
        response=message.content,
        transcript=calls,
    )
