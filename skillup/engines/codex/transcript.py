"""The rows of Codex's rollouts as entries. Pure.

The format is that of Codex 0.145 to 0.169. Most things stand in a rollout twice: as an item that
the model sees, and as an event for people. Messages are taken from the events, which know what the
user said and what Codex added; thoughts and calls from the items, and of the events only what no
item has: tools that were called from within another one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from skillup.engines.codex.events import (
    TOOLS,
    add_call,
    add_command,
    add_file_changes,
    add_results,
)
from skillup.engines.events import Status, as_dict, as_list, as_text, content_text, counts, words
from skillup.engines.session_entries import EntryLog
from skillup.schema.check_specs import ToolKind

USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}
_CALLS = {
    "function_call": "",
    "custom_tool_call": "",
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
}
OUTPUTS = ("function_call_output", "custom_tool_call_output")
_SHELLS = words("exec_command shell shell_command local_shell unified_exec")
_AGENT_TOOLS = "spawn_agent send_input send_message resume_agent wait wait_agent close_agent"
_KINDS: dict[str, ToolKind] = {
    "write_stdin": "shell",
    "view_image": "read",
    "web_search": "web",
    **dict.fromkeys(_AGENT_TOOLS.split(), "agent"),
}
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_ROWS = ("session_meta", "response_item", "event_msg", "turn_context")
_SILENT_ITEMS = words("""
    message ghost_snapshot additional_tools compaction other tool_search_call tool_search_output
    image_generation_call
""")
_NOTICES = {
    "error": "error",
    "stream_error": "error",
    "warning": "warning",
    "entered_review_mode": "a review began",
    "exited_review_mode": "the review ended",
    "turn_aborted": "the turn was aborted",
}


class CodexTranscript:
    """Feed it the rows of one rollout; the entries are in the log."""

    def __init__(self, log: EntryLog) -> None:
        self._log = log
        self._calls: dict[str, list[str]] = {}
        """The ids of the entries for each call: a patch has one for every file."""

    def feed(self, row: dict[str, Any]) -> None:
        self._log.time(row.get("timestamp"))
        kind, payload = as_text(row.get("type")), as_dict(row.get("payload"))
        inner, summary = as_text(payload.get("type")), self._log.summary
        if kind == "session_meta":
            if summary.session_id is not None:
                return  # a fork has its parent's, too, among the lines taken over
            summary.session_id = as_text(payload.get("id")) or None
            summary.cwd = as_text(payload.get("cwd")) or summary.cwd
            summary.version = as_text(payload.get("cli_version")) or None
        elif kind == "turn_context":
            summary.model = as_text(payload.get("model")) or summary.model
            summary.cwd = summary.cwd or as_text(payload.get("cwd")) or None
        elif kind == "response_item":
            self._item(inner, payload)
        elif kind == "event_msg":
            self._event(inner, payload)
        elif kind == "compacted":
            self._log.notice("the conversation was compacted")

    def _item(self, kind: str, item: dict[str, Any]) -> None:
        if kind == "reasoning":
            parts = as_list(item.get("summary")) + as_list(item.get("content"))
            self._log.reasoning("\n\n".join(content_text([part]) for part in parts))
        elif kind == "agent_message":  # between agents
            author = as_text(item.get("author")) or "another agent"
            self._log.message(content_text(item.get("content")), author)
        elif kind in _CALLS:
            call_id = as_text(item.get("call_id") or item.get("id"))
            name = _CALLS[kind] or as_text(item.get("name"))
            self._calls[call_id] = self._call(call_id, name, item)
        elif kind in OUTPUTS:
            call_id = as_text(item.get("call_id"))
            status, content = output_of(item)
            for each in self._calls.get(call_id, [call_id]):
                self._log.result(each, status, content)
        elif kind not in _SILENT_ITEMS:
            self._log.unknown(item)

    def _call(self, call_id: str, name: str, item: dict[str, Any]) -> list[str]:
        given = item.get("arguments", item.get("input", item.get("action")))
        try:
            read = json.loads(given, parse_constant=str) if isinstance(given, str) else given
        except (ValueError, RecursionError):
            read = given
        arguments = read if isinstance(read, dict) else {} if read is None else {"input": read}
        if name == "apply_patch":
            text = as_text(arguments.get("input", arguments.get("patch", given)))
            changes = [(path, change.lower()) for change, path in _PATCHED.findall(text)]
            cwd = self._log.summary.cwd
            return add_file_changes(self._log, call_id, changes or [("", "update")], cwd)
        namespace = as_text(item.get("namespace"))
        if name in _SHELLS:
            command = arguments.get("cmd", arguments.get("command", arguments.get("input")))
            add_command(self._log, call_id, command)
        elif namespace.startswith("mcp__"):
            server = namespace.removeprefix("mcp__").rstrip("_")
            self._log.call(call_id, f"{server}::{name}", "mcp", arguments)
        else:
            self._log.call(call_id, name, _KINDS.get(name, "other"), arguments)
        return [call_id]

    def _event(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "user_message":  # of a legacy thread
            self._log.user(as_text(event.get("message")))
        elif kind == "agent_message":
            self._log.message(as_text(event.get("message")))
        elif kind == "item_completed":
            self._completed(as_dict(event.get("item")))
        elif kind in _NOTICES:
            more = event.get("message") or event.get("reason") or event.get("user_facing_hint")
            self._log.notice(f"{_NOTICES[kind]}: {as_text(more)}".rstrip(": "))
        elif kind == "thread_name_updated":
            self._log.summary.title = as_text(event.get("thread_name")) or None
        elif kind == "task_complete" and event.get("error"):
            self._log.notice(f"error: {as_text(as_dict(event['error']).get('message'))}")

    def _completed(self, item: dict[str, Any]) -> None:
        kind, item_id = as_text(item.get("type")), as_text(item.get("id"))
        if kind == "UserMessage":
            self._log.user(content_text(item.get("content")))
        elif kind == "AgentMessage":
            self._log.message(content_text(item.get("content")))
        elif kind == "Plan":
            self._log.notice(f"plan: {as_text(item.get('text'))}")
        elif item_id not in self._calls and kind not in ("Reasoning", "ContextCompaction"):
            tool = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
            if tool in TOOLS:
                ids = add_call(self._log, item_id, tool, item, self._log.summary.cwd)
                add_results(self._log, ids, tool, item)
            else:
                self._log.unknown(item)


def output_of(item: dict[str, Any]) -> tuple[Status, str]:
    """What a call gave back: the exit code, if there is one, and the text after the header."""
    output = item.get("output")
    if isinstance(output, dict):
        succeeded = output.get("success")
        known: Status = "unknown" if succeeded is None else "success" if succeeded else "error"
        return known, content_text(output.get("content"))
    text = content_text(output)
    header, found, rest = text.partition("\nOutput:\n")
    code = _EXIT_CODE.search(header) if found else None
    status: Status = "unknown" if code is None else "error" if int(code[1]) else "success"
    return status, rest if found else text


def row_tokens(row: dict[str, Any]) -> tuple[str, dict[str, int]] | None:
    known = total_of(row)
    return ("thread", known) if known else None


def total_of(row: dict[str, Any]) -> dict[str, int]:
    """The running total of the thread, if a row has it."""
    payload = as_dict(row.get("payload"))
    info = as_dict(payload.get("info")) if payload.get("type") == "token_count" else {}
    return counts(as_dict(info.get("total_token_usage")), USAGE_NAMES)


def is_session_row(row: dict[str, Any]) -> bool:
    return row.get("type") in _ROWS and isinstance(row.get("payload"), dict)
