"""What was said before the first turn: cleaned, numbered, and mined for variables.

A dataset's history is exactly what it is, less what no session can hold (design §6): messages are
sorted, those from the message under test on are cut off, empty ones and repeated answers dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from skillup.checks.context import CannotEvaluateError, beginning, plain
from skillup.checks.text import Captured, Searcher, capture
from skillup.dataclass import frozen
from skillup.schema import templates
from skillup.schema.base import kept_group
from skillup.schema.case import HistoryMessage, HistoryToolCall, Input, Pairs, Reconstruct, Turn
from skillup.schema.record import HistoryItem, ToolCall, ToolResult, TranscriptItem, TurnRecord

NO_RESULT = "(the history does not say what this call gave back)"


@frozen
class Past:
    """The history as it goes into the session, and what comes of it."""

    items: tuple[HistoryItem, ...] = ()
    """Every call has an id and a result after it; the last item is not the user's."""
    unanswered: tuple[str, ...] = ()
    """User messages at the end that nobody answered: they go before the first live one."""
    variables: dict[str, str] = field(default_factory=dict)
    miss: str | None = None  # A capture that found nothing
    notes: tuple[str, ...] = ()


def past_of(given: Input, variables: Mapping[str, str] | None = None) -> Past:
    """The past that `input.history` describes; empty where there is none.

    `variables` are those of the case itself. Raises UnresolvedNameError for any other in a message.
    Its regexes may take seconds: not to be called where other trials would wait for it.
    """
    variables = variables or {}
    cut = _sorted_and_cut(given, variables)
    messages = _repeats_dropped(cut)
    notes = []
    for count, what in (
        (len(given.history) - len(cut), f"from place {given.message_index} on"),
        (len(cut) - len(messages), "empty or a repeated answer"),
    ):
        if count:
            many = f"{count} message{'' if count == 1 else 's'}"
            notes.append(f"of the history, {many} {what}: left out")
    if messages and messages[-1].role == "user" and _is_first(messages[-1], given, variables):
        messages.pop()  # before anything is taken out of it: what it says is not past yet
        notes.append("the history's last message is the one under test: it was left out")
    items = _numbered(messages, notes)
    end = len(items)
    while end and items[end - 1].role == "user":
        end -= 1
    values, miss = _mined(given, messages)
    unanswered = tuple(item.content for item in items[end:])
    return Past(tuple(items[:end]), unanswered, values, miss, tuple(notes))


def with_unanswered(turns: Sequence[Turn], unanswered: Sequence[str]) -> list[Turn]:
    """`turns`, the first with the past's unanswered messages before its own.

    They are what the dataset says, not templates.
    """
    past = "\n\n".join(map(templates.escape, unanswered))
    if not past:
        return list(turns)
    if not turns:  # a simulated user leads: there they are the first
        return [Turn(content=past)]
    if turns[0].content is None:
        return list(turns)
    update = {"content": f"{past}\n\n{as_template(turns[0])}", "literal": False}
    return [turns[0].model_copy(update=update), *turns[1:]]


def as_template(turn: Turn) -> str:
    """The turn's message, as a template even where it is none."""
    content = turn.content or ""
    return templates.escape(content) if turn.literal else content


def _sorted_and_cut(given: Input, variables: Mapping[str, str]) -> list[HistoryMessage]:
    """By `message_index`; a message without one stays behind the message before it.

    Where no message has one, its place in the list is meant. Templates are filled in.
    """
    placed: list[tuple[int, HistoryMessage]] = []
    place, limit = -1, given.message_index
    listed = all(message.message_index is None for message in given.history)
    for number, message in enumerate(given.history):
        index = message.message_index
        place = index if index is not None else (number if listed or place < 0 else place)
        placed.append((place, message))
    placed.sort(key=lambda pair: pair[0])
    return [
        message
        if message.literal or not templates.has_templates(message.content)
        else message.model_copy(update={"content": templates.render(message.content, variables)})
        for place, message in placed
        if limit is None or place < limit
    ]


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


def _is_first(message: HistoryMessage, given: Input, variables: Mapping[str, str]) -> bool:
    """Whether it says what the first live message says."""
    turns = given.all_turns()
    if not turns or turns[0].content is None:
        return False
    first = turns[0].content
    if not turns[0].literal:
        first = "".join(text for text, _ in templates.pieces(first, variables))
    return message.content.strip() == first.strip()


def _numbered(messages: Sequence[HistoryMessage], notes: list[str]) -> list[HistoryItem]:
    """With an id for every call, and its result behind it before anything else is said."""
    items: list[HistoryItem] = []
    count = 0
    pending: list[tuple[str, str | None]] = []
    """Calls without a result so far: the id, and as the history has it (several may be the same)"""

    def give(call_id: str, status: Literal["success", "error", "unknown"], content: str) -> None:
        result = ToolResult(call_id=call_id, status=status, content=content)
        items.append(HistoryItem(role="tool", content=content, tool_result=result))

    for message in (*messages, None):
        if message is not None and message.role == "tool":
            # With an id: the first call that has it; without one: the first of all.
            answered = next((c for c in pending if message.call_id in (None, c[1])), None)
            if answered is None:
                notes.append("a tool's result without its call was left out of the history")
            else:
                pending.remove(answered)
                give(answered[0], message.status, message.content)
            continue
        for call_id, own in pending:
            notes.append(f"the history does not say what the call `{own or call_id}` gave back")
            give(call_id, "unknown", NO_RESULT)
        pending.clear()
        if message is not None:
            calls = []
            for call in message.tool_calls:
                count += 1
                pending.append((f"call_history_{count}", call.id))
                calls.append(_call(call, f"call_history_{count}"))
            items.append(HistoryItem(role=message.role, content=message.content, tool_calls=calls))
    return items


def _call(call: HistoryToolCall, call_id: str, name: str = "") -> ToolCall:
    kind = call.kind or "other"
    return ToolCall(id=call_id, name=call.name or name, kind=kind, arguments=call.arguments)


# What was said elsewhere, as the turns of a record: it is judged, not run.


def turns_of(messages: Sequence[HistoryMessage]) -> list[TurnRecord]:
    """A conversation that took place elsewhere; a result without an id is of the next call."""
    items, pending = list[HistoryItem](), list[str]()
    for place, message in enumerate(messages, start=1):
        calls, result = list[ToolCall](), None
        if message.role == "tool":
            call_id = message.call_id or (pending[0] if pending else "call")
            if call_id in pending:
                pending.remove(call_id)
            result = ToolResult(call_id=call_id, status=message.status, content=message.content)
        for number, call in enumerate(message.tool_calls, start=1):
            call_id = call.id or f"call-{place}-{number}"
            pending.append(call_id)
            calls.append(_call(call, call_id, call.kind or "tool"))
        said = HistoryItem(role=message.role, content=message.content, tool_calls=calls)
        items.append(said.model_copy(update={"tool_result": result}))
    return as_turns(items)


def as_turns(items: Sequence[HistoryItem]) -> list[TurnRecord]:
    """A turn for each user message: it, and everything up to the next one.

    Several user messages in a row are one turn, as an agent would have been sent them. What stands
    before the first of them is a turn without a message.
    """
    groups: list[tuple[list[HistoryItem], list[HistoryItem]]] = []
    for item in items:
        if not groups or (item.role == "user" and groups[-1][1]):
            groups.append(([], []))
        groups[-1][item.role != "user"].append(item)
    return [_turn(n, questions, said) for n, (questions, said) in enumerate(groups, start=1)]


def _turn(number: int, questions: Sequence[HistoryItem], said: Sequence[HistoryItem]) -> TurnRecord:
    transcript: list[TranscriptItem] = []
    response = ""
    for item in said:
        if item.tool_result is not None:
            transcript.append(TranscriptItem(type="tool_result", tool_result=item.tool_result))
            continue
        if item.content:
            response = item.content
            transcript.append(TranscriptItem(type="message", text=item.content))
        transcript += [TranscriptItem(type="tool_call", tool_call=one) for one in item.tool_calls]
    return TurnRecord(
        turn_number=number,
        status="completed",
        source="history",
        content="\n\n".join(question.content for question in questions),
        response=response,
        transcript=transcript,
    )


# Rebuilding variables from a history, as the live conversation would have filled them.


def _mined(given: Input, messages: Sequence[HistoryMessage]) -> tuple[dict[str, str], str | None]:
    """The captures of single messages, then the rules of `input.reconstruct`, up to a miss."""
    variables: dict[str, str] = {}
    for number, message in enumerate(messages, start=1):
        if message.capture:  # as if it were a turn's answer
            (answer,) = turns_of([message.model_copy(update={"role": "assistant"})])
            found = capture(message.capture, answer)
            variables.update(found.values)
            if found.miss is not None:
                return variables, f"message {number} of the history: {found.miss}"
    for number, rule in enumerate(given.reconstruct, start=1):
        rebuilt = rebuild(rule, messages)
        variables.update(rebuilt.values)
        if rebuilt.miss is not None:
            return variables, f"rule {number} of `reconstruct`: {rebuilt.miss}"
    return variables, None


def rebuild(rule: Reconstruct, messages: Sequence[HistoryMessage]) -> Captured:
    """Apply one rule to the cleaned history."""
    if rule.pairs is not None:
        return _paired(rule.pairs, messages)
    assert rule.capture is not None
    candidates = [m for m in messages if rule.role in ("any", m.role) and m.role != "tool"]
    if rule.take == "last":
        candidates.reverse()
    elif rule.take == "last_message":
        candidates = candidates[-1:]
    name, pattern = rule.capture.variable, rule.capture.pattern or ""
    search = Searcher()
    for message in candidates:
        try:
            match = search.search(pattern, plain(message.content))
            value = match[kept_group(pattern)] if match is not None else None
        except (CannotEvaluateError, ValueError) as trouble:
            # A default stands for what was not said, not for a rule that cannot be used.
            return Captured(miss=f"capture `{name}`: {trouble}")
        if value is not None and value.strip():
            return Captured({name: value})
    if rule.capture.default is not None:
        return Captured({name: rule.capture.default})
    whose = "no message" if rule.role == "any" else f"no message of the {rule.role}"
    text = f"capture `{name}`: {whose} of the history has /{rule.capture.pattern}/"
    return Captured(miss=f"{text}; correct it, or give it a `default`")


@dataclass(slots=True, eq=False)
class _Question:
    text: str
    answer: str | None = None


def _paired(rule: Pairs, messages: Sequence[HistoryMessage]) -> Captured:
    """The nth question that was asked for the first time belongs to the nth field.

    A question that is asked again, in the same words, is the same one: the later answer counts.
    """
    try:
        questions, pending = _questions(rule.marker, messages)
    except CannotEvaluateError as trouble:
        return Captured(miss=f"`pairs`: {trouble}")
    values: dict[str, str] = {}
    for name, question in zip(rule.fields, questions, strict=False):
        if question.answer is not None:
            values[name] = question.answer
    if rule.pending is not None:
        values[rule.pending] = "" if pending is None else pending.text
    missing = [name for name in rule.fields if name not in values]
    if missing and rule.default is None:
        found = ", ".join(f'"{beginning(question.text)}"' for question in questions) or "none"
        text = f"`{missing[0]}` was not answered in the history (questions found: {found})"
        return Captured(values, f"{text}; correct the `marker`, or give a `default`")
    return Captured({**dict.fromkeys(missing, rule.default or ""), **values})


def _questions(
    marker: str, messages: Sequence[HistoryMessage]
) -> tuple[list[_Question], _Question | None]:
    """In the order in which they were first asked, and the one that is still open."""
    search = Searcher()
    questions: dict[str, _Question] = {}  # By what they ask, however it is spaced
    current: _Question | None = None
    for message in messages:
        if message.role == "user":
            content = message.content.strip()
            if current is not None and content:
                before = current.answer
                current.answer = content if before is None else f"{before}\n\n{content}"
            continue
        if message.role != "assistant":
            continue
        match = search.search(marker, plain(message.content))
        if match is None:
            if current is not None and current.answer is not None:
                current = None  # what the user says now answers something else
            continue
        named = (match.groupdict().get("question") or "").strip()
        rest = match.string[match.end() :].partition("\n")[0].strip()
        text = named or rest or match[0].strip()
        current = questions.setdefault(" ".join(text.split()).casefold(), _Question(text))
        current.answer = None
    pending = current if current is not None and current.answer is None else None
    return list(questions.values()), pending
