"""A conversation that never ran, as the rows of a Codex rollout. Pure.

The form is that of a `paginated` thread (0.145 to 0.169): each row has its number, `response_item`
rows are what the model sees, and messages stand there a second time as events, for people and for
whoever counts them. In a thread of the older form Codex would not write down how tools ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

from skillup.engines.codex_history_tools import SHELL_TOOL, PlacedCall, placed_call
from skillup.schema.record import HistoryItem, ToolCall, ToolResult

Row = dict[str, Any]

# The longest id of a call that OpenAI's API takes.
_LONGEST_ID = 64
_NO_TOKENS_OF = dict.fromkeys(
    (
        "input_tokens",
        "cached_input_tokens",
        "cache_write_input_tokens",
        "output_tokens",
        "reasoning_output_tokens",
        "total_tokens",
    ),
    0,
)
_NO_TOKENS = {
    "total_token_usage": _NO_TOKENS_OF,
    "last_token_usage": _NO_TOKENS_OF,
    "model_context_window": None,
}
_EXIT_CODES = {"success": 0, "error": 1}


def rollout_rows(
    history: Sequence[HistoryItem],
    *,
    thread_id: str,
    timestamp: str,
    cwd: str,
    version: str,
    provider: str | None = None,
) -> Iterator[Row]:
    """The rows of a rollout that holds `history`, in order.

    `timestamp` is ISO 8601, UTC; `version` the CLI's; `provider` the name of the model provider
    that every turn will use: Codex refuses to resume a thread with another one. Nothing names a
    model: with one, the first turn of another model would begin with a compaction.
    """
    meta: Row = {
        "id": thread_id,
        "timestamp": timestamp,
        "cwd": cwd,
        "originator": "skillup",
        "cli_version": version,
        "source": "exec",
        "history_mode": "paginated",
    }
    if provider is not None:
        meta["model_provider"] = provider
    rows = _Rows(thread_id)
    # The past has cost nothing here: a turn's tokens are the running total less the one before.
    nothing_yet = {"type": "token_count", "info": _NO_TOKENS, "rate_limits": None}
    payloads = [("session_meta", meta), ("event_msg", nothing_yet)]
    payloads += [row for item in history for row in rows.of(item)]
    for ordinal, (kind, payload) in enumerate(payloads):
        yield {"timestamp": timestamp, "ordinal": ordinal, "type": kind, "payload": payload}


class _Rows:
    """Goes through a history; knows how its calls were placed, for their results."""

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._turn = 0
        self._items = 0
        self._placed: dict[str, tuple[str, PlacedCall]] = {}
        self._ids: set[str] = set()

    def of(self, item: HistoryItem) -> Iterator[tuple[str, Row]]:
        """The types and payloads of the rows for one message."""
        if item.role == "user":
            self._turn += 1
            yield "response_item", _message("user", "input_text", item.content)
            text = {"type": "text", "text": item.content, "text_elements": []}
            yield "event_msg", self._completed("UserMessage", text)
        elif item.role == "assistant":
            if item.content:
                text = {"type": "Text", "text": item.content}
                yield "event_msg", self._completed("AgentMessage", text)
                yield "response_item", _message("assistant", "output_text", item.content)
            for call in item.tool_calls:
                yield "response_item", self._call(call)
        elif item.tool_result is not None:
            yield "response_item", self._output(item.tool_result)

    def _completed(self, kind: str, text: Row) -> Row:
        self._items += 1
        item = {"type": kind, "id": self._uuid(f"item {self._items}"), "content": [text]}
        return {
            "type": "item_completed",
            "thread_id": self._thread_id,
            "turn_id": self._uuid(f"turn {self._turn}"),
            "item": item,
            "started_at_ms": 0,
            "completed_at_ms": 0,
        }

    def _uuid(self, what: str) -> str:
        return str(uuid5(UUID(self._thread_id), what))

    def _call(self, call: ToolCall) -> Row:
        placed = placed_call(call)
        call_id = self._own_id(call.id)
        self._placed[call.id] = call_id, placed
        given = {"type": placed.type, "name": placed.name, "call_id": call_id}
        if placed.namespace is not None:
            given["namespace"] = placed.namespace
        return {**given, "input" if placed.is_freeform else "arguments": placed.arguments}

    def _output(self, result: ToolResult) -> Row:
        call_id, call = self._placed[result.call_id]
        text = _output_text(call, result)
        return {"type": f"{call.type}_output", "call_id": call_id, "output": text}

    def _own_id(self, given: str) -> str:
        """The id, short enough and unlike all before: the same one may be there in every turn."""
        own, number = _short(given), 1
        while own in self._ids:
            number += 1
            own = _short(f"{given}-{number}")
        self._ids.add(own)
        return own


def _message(role: str, kind: str, text: str) -> Row:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _output_text(call: PlacedCall, result: ToolResult) -> str:
    """What the tool gave back; Codex's own tools tell an exit code above it."""
    code = _EXIT_CODES.get(result.status)
    if code is None or not (call.is_freeform or call.name == SHELL_TOOL):
        return result.content
    said = "Exit code:" if call.is_freeform else "Process exited with code"
    return f"{said} {code}\nOutput:\n{result.content}"


def _short(call_id: str) -> str:
    if len(call_id) <= _LONGEST_ID:
        return call_id
    return f"call_{sha256(call_id.encode(errors='replace')).hexdigest()[:32]}"


def row_bytes(row: Mapping[str, Any]) -> bytes:
    """A row as a line of a rollout."""
    # Half of a surrogate pair is no UTF-8, and Codex would not read the line.
    text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace") + b"\n"
