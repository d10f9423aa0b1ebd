"""What was said before the first turn: cleaned, numbered, and mined for variables.

A dataset's history is exactly what it is, less what no session can hold (design §6): messages are
sorted, those from the message under test on are cut off, empty ones and repeated answers dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from skillup.checks.capture import capture
from skillup.schema import templates
from skillup.schema.conversation import HistoryMessage, Input
from skillup.schema.record import HistoryItem, ToolCall, ToolResult, TranscriptItem, TurnRecord
from skillup.trial.reconstruct import rebuild

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
