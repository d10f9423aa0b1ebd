"""Rollouts, Codex's session files: what a turn wrote into one, and one that no turn wrote."""

from __future__ import annotations

import json
import re
import shlex
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from skillup.engines.codex.transcript import OUTPUTS, CodexTranscript, output_of, total_of
from skillup.engines.created_sessions import api_name, mcp_name, own_arguments
from skillup.engines.events import as_dict, as_text, content_text
from skillup.engines.session_entries import EntryLog
from skillup.engines.session_files import rows_of
from skillup.schema.record import HistoryItem, ToolCall, TranscriptItem, Usage

Row = dict[str, Any]

# Calls that end in an event of the stream, unless codex refuses them.
_WATCHED_CALLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "apply_patch"})
_WITH_RESULTS = frozenset({"CommandExecution", "FileChange", "McpToolCall"})
_SKILL = re.compile(r"\s*<skill>\s*<name>(.*?)</name>")
_STILL_RUNNING = "Process running with session ID"
# What stands in place of a command's own output if the sandbox could not be made for it.
_NO_SANDBOX = re.compile(
    r"(bwrap|sandbox-exec|codex-linux-sandbox): |(error|failed)\b.{0,80}\b(bubblewrap|landlock)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class RolloutPart:
    """What one turn wrote into the session's file."""

    model: str | None = None
    version: str | None = None
    usage: Usage | None = None  # The thread's running total less that before
    loaded_skills: list[str] = field(default_factory=list)
    """Skills that a `$name` in the prompt loaded."""
    refused: list[tuple[int, TranscriptItem]] = field(default_factory=list)
    """Calls that the event stream does not show, and what codex answered the model; each after so
    many tools that ended."""


def read_part(path: Path, offset: int) -> RolloutPart:
    """What stands behind the byte `offset` of a session's file."""
    part = RolloutPart()
    calls: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    ended = 0
    total: dict[str, int] = {}
    for row in rows_of(path, start=offset):
        kind, payload = row.get("type"), as_dict(row.get("payload"))
        inner, call_id = payload.get("type"), as_text(payload.get("call_id"))
        if kind == "session_meta":
            part.version = as_text(payload.get("cli_version")) or None
        elif kind == "turn_context":
            part.model = as_text(payload.get("model")) or None
        elif inner in ("function_call", "custom_tool_call"):
            if payload.get("name") in _WATCHED_CALLS:
                calls[call_id] = ended, [row]
        elif inner in OUTPUTS and call_id in calls:
            # A command that goes on in the background has begun in the stream, and did not end.
            is_running = _STILL_RUNNING in output_of(payload)[1]
            calls[call_id][1].extend([] if is_running else [row])
        elif inner == "message" and payload.get("role") == "user":
            # Codex adds the body of a skill that the prompt names as a message of its own.
            if skill := _SKILL.match(content_text(payload.get("content"))):
                part.loaded_skills.append(skill[1].strip())
        elif inner == "item_completed":
            item = as_dict(payload.get("item"))
            calls.pop(as_text(item.get("id")), None)
            ended += item.get("type") in _WITH_RESULTS
        else:
            total = total_of(row) or total
    log = EntryLog()
    transcript = CodexTranscript(log)
    for after, rows in calls.values():
        log.begin_line(0)
        for row in rows if len(rows) > 1 else ():
            transcript.feed(row)
        part.refused += [(after, _failed(entry.item)) for entry in log.entries]
    if total:
        before: dict[str, int] = {}
        for row in rows_of(path, offset):
            before = total_of(row) or before
        own = {name: count - before.get(name, 0) for name, count in total.items()}
        # There is no count if the total was set back.
        part.usage = Usage(**{name: count for name, count in own.items() if count >= 0})
    return part


def _failed(item: TranscriptItem) -> TranscriptItem:
    given = item.tool_result
    result = given and given.model_copy(update={"status": "error"})
    return item.model_copy(update={"tool_result": result})


def with_refused(
    items: Sequence[TranscriptItem], refused: Sequence[tuple[int, TranscriptItem]]
) -> list[TranscriptItem]:
    """The items of the event stream, and the refused calls in their places."""
    made: list[TranscriptItem] = []
    waiting, ended = deque(refused), set[str]()
    for number, item in enumerate(items, start=1):
        while waiting and (
            number == len(items) or (item.tool_call and waiting[0][0] <= len(ended))
        ):
            made.append(waiting.popleft()[1])
        made.append(item)
        if item.tool_result:  # a patch has one for every file
            ended.add(item.tool_result.call_id.partition(".")[0])
    return made + [item for _, item in waiting]


def broken_sandbox(items: Collection[TranscriptItem]) -> str | None:
    """What the sandbox said, where it kept every command of the turn from running."""
    shells = {i.tool_call.id for i in items if i.tool_call and i.tool_call.kind == "shell"}
    results = [i.tool_result for i in items if i.tool_result and i.tool_result.call_id in shells]
    for result in results:
        if result.status != "error" or not _NO_SANDBOX.match(result.content.lstrip()):
            return None
    return results[0].content.strip().splitlines()[0] if results else None


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
