"""A conversation that took place elsewhere, as the turns of a record: it is judged, not held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillup.schema.case import HistoryMessage
from skillup.schema.record import ToolCall, ToolResult, TranscriptItem, TurnRecord


def turns_of(messages: Sequence[HistoryMessage]) -> list[TurnRecord]:
    """A turn for each user message: it, and everything up to the next one.

    Several user messages in a row are one turn, as an agent would have been sent them. What stands
    before the first of them is a turn without a message.
    """
    return [
        _turn(number, asked, answered)
        for number, (asked, answered) in enumerate(_grouped(messages), start=1)
    ]


def _grouped(
    messages: Sequence[HistoryMessage],
) -> Iterator[tuple[list[HistoryMessage], list[HistoryMessage]]]:
    asked: list[HistoryMessage] = []
    answered: list[HistoryMessage] = []
    for message in messages:
        if message.role != "user":
            answered.append(message)
            continue
        if answered:
            yield asked, answered
            asked, answered = [], []
        asked.append(message)
    if asked or answered:
        yield asked, answered


def _turn(
    number: int, asked: Sequence[HistoryMessage], answered: Sequence[HistoryMessage]
) -> TurnRecord:
    items: list[TranscriptItem] = []
    open_calls: list[str] = []
    response = ""
    for message in answered:
        if message.role == "tool":
            call_id = message.call_id or (open_calls[0] if open_calls else "call")
            if call_id in open_calls:
                open_calls.remove(call_id)
            result = ToolResult(call_id=call_id, status=message.status, content=message.content)
            items.append(TranscriptItem(type="tool_result", tool_result=result))
            continue
        if message.content:
            response = message.content
            items.append(TranscriptItem(type="message", text=message.content))
        for call in message.tool_calls:
            call_id = call.id or f"call-{number}-{len(items) + 1}"
            open_calls.append(call_id)
            made = ToolCall(
                id=call_id,
                name=call.name or call.kind or "tool",
                kind=call.kind or "other",
                arguments=call.arguments,
            )
            items.append(TranscriptItem(type="tool_call", tool_call=made))
    return TurnRecord(
        turn_number=number,
        status="completed",
        source="history",
        content="\n\n".join(message.content for message in asked),
        response=response,
        transcript=items,
    )
