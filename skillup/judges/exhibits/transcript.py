"""The conversation as a file: JSON in skill-up's form for programs, Markdown for readers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from skillup.schema.record import HistoryItem, TranscriptItem, TurnRecord


def as_json(turns: Iterable[TurnRecord], history: Sequence[HistoryItem] = ()) -> str:
    """A list of entries, one for each message, call and result, in order.

    Each has `role` (user, assistant, tool_call, tool_result, reasoning, notice) and `turn`, and
    `content`, `tool_call` {id, name, kind, arguments} or `tool_result` {call_id, status, content}.
    Earlier messages that were placed in the session have turn 0.
    """
    entries = [*_history_entries(history), *(entry for turn in turns for entry in _entries(turn))]
    return json.dumps(entries, ensure_ascii=False, indent=1)


def as_markdown(turns: Sequence[TurnRecord], history: Sequence[HistoryItem] = ()) -> list[str]:
    """A piece for each turn; what was placed in the session before is the first, if there is any.

    The text of others is quoted (`> `), so that it cannot be taken for a heading.
    """
    pieces = []
    if history:
        told = "\n".join(_history_markdown(history))
        pieces.append(f"# Before: messages placed in the session\n\n{told}")
    for turn in turns:
        heading = f"# Turn {turn.turn_number}" + (" (follow-up)" if turn.asked_by else "")
        parts = [heading, "## User", _quoted(turn.content)]
        parts.extend(part for item in _items(turn) for part in _item_markdown(item))
        pieces.append("\n\n".join(parts) + "\n")
    return pieces


def _items(turn: TurnRecord) -> list[TranscriptItem]:
    """All that was said and done; the answer too, where the engine told of nothing else."""
    if turn.response and not any(item.text == turn.response for item in turn.transcript):
        return [*turn.transcript, TranscriptItem(type="message", text=turn.response)]
    return turn.transcript


def _entries(turn: TurnRecord) -> Iterator[dict[str, Any]]:
    number = turn.turn_number
    yield {"role": "user", "content": turn.content, "turn": number}
    for item in _items(turn):
        if item.tool_call is not None:
            call = item.tool_call.model_dump(mode="json")
            yield {"role": "tool_call", "turn": number, "tool_call": call}
        elif item.tool_result is not None:
            result = item.tool_result.model_dump(mode="json")
            yield {"role": "tool_result", "turn": number, "tool_result": result}
        else:
            role = "assistant" if item.type == "message" else item.type
            yield {"role": role, "content": item.text or "", "turn": number}


def _history_entries(history: Sequence[HistoryItem]) -> Iterator[dict[str, Any]]:
    for item in history:
        if item.tool_result is not None:
            result = item.tool_result.model_dump(mode="json")
            yield {"role": "tool_result", "turn": 0, "tool_result": result}
            continue
        yield {"role": item.role, "content": item.content, "turn": 0}
        for call in item.tool_calls:
            yield {"role": "tool_call", "turn": 0, "tool_call": call.model_dump(mode="json")}


def _history_markdown(history: Sequence[HistoryItem]) -> Iterator[str]:
    for entry in _history_entries(history):
        said = entry.get("content")
        if said is None:
            said = json.dumps(entry.get("tool_call") or entry.get("tool_result"))
        yield f"## {entry['role']}\n\n{_quoted(said)}\n"


def _item_markdown(item: TranscriptItem) -> Iterator[str]:
    by = f" (sub-agent {item.agent})" if item.agent else ""
    if item.tool_call is not None:
        call = item.tool_call
        arguments = json.dumps(call.arguments, ensure_ascii=False, indent=1)
        yield f"## Tool call: {call.name} ({call.kind}){by}"
        yield _quoted(arguments)
    elif item.tool_result is not None:
        yield f"## Tool result: {item.tool_result.status}{by}"
        yield _quoted(item.tool_result.content)
    else:
        yield ("## Agent" if item.type == "message" else f"## {item.type.capitalize()}") + by
        yield _quoted(item.text or "")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))
