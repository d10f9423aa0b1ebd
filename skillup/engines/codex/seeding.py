"""Threads that are made without asking a model: seeded with a history, or copied from another."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from skillup.engines.created_sessions import (
    api_name,
    mcp_name,
    own_arguments,
)
from skillup.engines.events import as_dict, as_text
from skillup.schema.record import HistoryItem, ToolCall

Row = dict[str, Any]


def fork_problem(first: Mapping[str, Any], thread_id: str) -> str | None:
    """Why a rollout with this first row cannot be copied under another id; None if it can."""
    meta = as_dict(first.get("payload"))
    if first.get("type") != "session_meta" or meta.get("id") != thread_id:
        return "its file does not begin with what Codex writes there"
    if meta.get("history_mode") not in (None, "legacy", "paginated"):
        return f"its history is of the unknown form {meta['history_mode']!r}"
    if meta.get("history_base") or meta.get("forked_from_id"):
        return "it is itself a fork that Codex made, whose beginning is in another file"
    return None


# A conversation that never ran, as the rows of a Codex rollout. Pure.

_SHELL_TOOL = "exec_command"
_EXIT_CODES = {"success": 0, "error": 1}


def own_call(call: ToolCall) -> tuple[str, str, dict[str, Any]]:
    """The namespace of an MCP tool, the tool's name, and its arguments, as Codex has them.

    A call with a name keeps it, but for `command_execution`, our records' name of Codex's shell.
    One without is a shell command, or a function of its kind's name.
    """
    given, name, kind = call.arguments, call.name, "" if call.name else call.kind
    if mcp := mcp_name(name):
        return api_name(f"mcp__{mcp[0]}"), api_name(mcp[1]), given
    if name in (_SHELL_TOOL, "command_execution") or kind == "shell":
        given = own_arguments(given, {"command": "cmd"})
        if isinstance(command := given.get("cmd"), list):
            given["cmd"] = shlex.join(map(as_text, command))
        return "", _SHELL_TOOL, given
    return "", api_name(name or kind), given


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
    payloads = [("session_meta", meta), *_payloads(history, thread_id)]
    for ordinal, (kind, payload) in enumerate(payloads):
        yield {"timestamp": timestamp, "ordinal": ordinal, "type": kind, "payload": payload}


def _payloads(history: Sequence[HistoryItem], thread_id: str) -> Iterator[tuple[str, Row]]:
    """The types and payloads of the rows for all messages."""
    turn = 0
    shell_calls: set[str] = set()

    def completed(kind: str, number: int, text: Row) -> tuple[str, Row]:
        item_id, turn_id = (
            str(uuid5(UUID(thread_id), what)) for what in (f"item {number}", f"turn {turn}")
        )
        return "event_msg", {
            "type": "item_completed",
            "thread_id": thread_id,
            "turn_id": turn_id,
            "item": {"type": kind, "id": item_id, "content": [text]},
            "started_at_ms": 0,
            "completed_at_ms": 0,
        }

    for number, item in enumerate(history):
        if item.tool_result is not None:
            result = item.tool_result
            output, code = result.content, _EXIT_CODES.get(result.status)
            # Codex's shell puts an exit code above what it gave back.
            if code is not None and result.call_id in shell_calls:
                output = f"Process exited with code {code}\nOutput:\n{output}"
            row = {"type": "function_call_output", "call_id": result.call_id, "output": output}
            yield "response_item", row
        elif item.role == "user":
            turn += 1
            yield "response_item", _message("user", "input_text", item.content)
            text = {"type": "text", "text": item.content, "text_elements": []}
            yield completed("UserMessage", number, text)
        elif item.content:
            yield completed("AgentMessage", number, {"type": "Text", "text": item.content})
            yield "response_item", _message("assistant", "output_text", item.content)
        for call in item.tool_calls:
            namespace, name, given = own_call(call)
            row = {"type": "function_call", "name": name, "call_id": call.id}
            row["arguments"] = json.dumps(given, ensure_ascii=False, default=str)
            if name == _SHELL_TOOL:
                shell_calls.add(call.id)
            yield "response_item", row | ({"namespace": namespace} if namespace else {})


def _message(role: str, kind: str, text: str) -> Row:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
