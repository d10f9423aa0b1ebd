"""From the rows of Codex's rollouts to entries. Pure.

The formats are those of 0.20 to 0.169: rows with a `payload`, and before these bare items.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import Any

from skillup.engines.cli_runner import as_dict, as_list, as_text, content_text
from skillup.engines.codex.events import CodexEvents
from skillup.engines.codex.rollout_events import Duplicates, RolloutEvents, words_of
from skillup.engines.codex.tools import calls_of_item, output_of_item
from skillup.engines.session_entries import EntryLog

_CALLS = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_NAMED_CALLS = {
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
    "image_generation_call": "image_generation",
}
_SILENT_ITEMS = frozenset({"ghost_snapshot", "additional_tools", "compaction", "other"})
ITEMS = frozenset({"message", "reasoning", "agent_message", *_CALLS, *_OUTPUTS, *_NAMED_CALLS})
"""Types of what the model sees."""

_SILENT_ROWS = frozenset(
    {"world_state", "token_usage_record", "inter_agent_communication_metadata"}
)
# Messages in the user's name that Codex adds; newer versions say so in the message.
_ADDED = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions|skill"
    r"|skills_instructions|turn_aborted|subagent_notification|user_shell_command"
    r"|collaboration_mode|personality_spec|app-context)\b|# AGENTS\.md instructions for )"
)
_IMAGE_TAG = re.compile(r"</?image\b[^>]*>")


class CodexTranscript:
    """Feed it the rows of one rollout; the entries are in the log."""

    def __init__(self, log: EntryLog) -> None:
        self._log = log
        self._twins = Duplicates()
        self._events = RolloutEvents(log, self._twins)
        # Patches of several files, which are a call each, until their one output.
        self._split: dict[str, list[str]] = {}

    def feed(self, row: dict[str, Any]) -> None:
        """Take the next row. Never raises."""
        self._log.time(row.get("timestamp"))
        kind, payload = as_text(row.get("type")), row.get("payload")
        if not isinstance(payload, dict):
            self._bare(kind, row)
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self._log.summary.model = as_text(payload.get("model")) or self._log.summary.model
            self._log.summary.cwd = self._log.summary.cwd or as_text(payload.get("cwd")) or None
        elif kind == "response_item":
            self._item(as_text(payload.get("type")), payload)
        elif kind == "event_msg":
            self._events.take(as_text(payload.get("type")), payload)
        elif kind == "compacted":
            if not self._twins.is_second_message("item", "compacted", ""):
                self._log.notice("the conversation was compacted")
        elif kind not in _SILENT_ROWS:
            self._log.unknown(row)

    def _bare(self, kind: str, row: dict[str, Any]) -> None:
        """The oldest format: the items themselves, after a line that has no type."""
        if kind in ITEMS or kind in _SILENT_ITEMS:
            self._item(kind, row)
        elif not kind and "id" in row and "timestamp" in row:
            self._meta(row)
        elif "record_type" not in row:
            self._log.unknown(row)

    def _meta(self, meta: dict[str, Any]) -> None:
        """The first one counts: a fork has its parent's, too, among the lines taken over."""
        summary = self._log.summary
        if summary.session_id is not None:
            return
        summary.session_id = as_text(meta.get("id")) or None
        summary.cwd = as_text(meta.get("cwd")) or summary.cwd
        summary.version = as_text(meta.get("cli_version")) or None
        source = as_dict(as_dict(meta.get("source")).get("subagent"))
        if source:
            spawned = as_dict(source.get("thread_spawn"))
            summary.agent = as_text(spawned.get("agent_nickname") or spawned.get("agent_path"))
            summary.agent = summary.agent or "sub-agent"

    def _item(self, kind: str, item: dict[str, Any]) -> None:
        if kind == "message":
            self._message(item)
        elif kind == "reasoning":
            self._reasoning(item)
        elif kind == "agent_message":  # between agents
            author = as_text(item.get("author")) or "another agent"
            self._log.assistant(content_text(item.get("content")), author)
        elif kind in _CALLS:
            self._call(item)
        elif kind in _NAMED_CALLS:
            self._call({**item, "name": _NAMED_CALLS[kind]})
        elif kind in _OUTPUTS:
            self._output(item)
        elif kind not in _SILENT_ITEMS:
            self._log.unknown(item)

    def _call(self, item: dict[str, Any]) -> None:
        call_id = as_text(item.get("call_id") or item.get("id"))
        calls = calls_of_item(call_id, item)
        if len(calls) > 1:
            self._split[call_id] = [call.call_id for call in calls]
        if not self._twins.is_second_id("item", "call", call_id):
            for call in calls:
                self._log.call(call.call_id, call.name, call.kind, call.arguments)

    def _output(self, item: dict[str, Any]) -> None:
        call_id = as_text(item.get("call_id"))
        call_ids = self._split.pop(call_id, [call_id])
        if not self._twins.is_second_id("item", "result", call_id):
            status, content = output_of_item(item)
            for each in call_ids:
                self._log.result(each, status, content)

    def _message(self, item: dict[str, Any]) -> None:
        role, content = as_text(item.get("role")), _without_tags(item.get("content"))
        text, words = content_text(content), words_of(content)
        if role == "assistant":
            if not self._twins.is_second_message("item", role, words):
                self._log.assistant(text)
        elif role == "user" and not _is_added(item, text):
            if not self._twins.is_second_message("item", role, words):
                self._events.user(text, words, "item")
        else:
            self._log.notice(text)

    def _reasoning(self, item: dict[str, Any]) -> None:
        parts = as_list(item.get("summary")) + as_list(item.get("content"))
        texts = [content_text([part]) for part in parts]
        new = [t for t in texts if not self._twins.is_second_message("item", "reasoning", t)]
        if new or not texts:
            self._log.reasoning("\n\n".join(new))


def _without_tags(content: Any) -> Any:
    """Without the texts that only stand around pictures."""
    if not isinstance(content, list):
        return content
    texts = (as_text(as_dict(block).get("text")).strip() for block in content)
    return [b for b, text in zip(content, texts, strict=True) if not _IMAGE_TAG.fullmatch(text)]


def _is_added(item: dict[str, Any], text: str) -> bool:
    passed = as_dict(item.get("internal_chat_message_metadata_passthrough"))
    kinds = [as_text(kind) for kind in as_list(passed.get("content_item_kinds"))]
    if kinds and kinds != ["unknown"]:
        return not any(kind.startswith("user.") for kind in kinds)
    return _ADDED.match(text) is not None


# From the lines of recordings of `codex exec --json` to entries. Pure.


class CodexExecTranscript:
    """Feed it the events of one recording. They do not tell the user's messages."""

    def __init__(self, log: EntryLog) -> None:
        self._log = log
        self._events = _events()
        self._unknown = 0

    def feed(self, event: dict[str, Any]) -> None:
        """Take the next event. Never raises."""
        kind = event.get("type")
        self._log.time(event.get("timestamp"))
        if kind == "turn.started":
            self._log.open_turn()
        elif kind == "thread.started":
            # Another process, which numbers its items from 0 again.
            self._events, self._unknown = _events(), 0
            self._log.summary.session_id = as_text(event.get("thread_id")) or None
        elif kind == "turn.failed":
            reason = as_text(as_dict(event.get("error")).get("message")) or "no reason given"
            self._log.notice(f"the turn failed: {reason}")
        elif kind == "error":
            self._log.notice(as_text(event.get("message")))
        elif kind != "turn.completed":
            self._item(event)

    def _item(self, event: dict[str, Any]) -> None:
        self._events.feed(json.dumps(event).encode())
        turn = self._events.result()
        if turn.unknown_events > self._unknown:
            self._unknown = turn.unknown_events
            turn.items.clear()
            self._log.unknown(event)
        for item in turn.items:
            if item.tool_call is not None:
                call = item.tool_call
                self._log.call(call.id, call.name, call.kind, call.arguments)
            elif item.tool_result is not None:
                result = item.tool_result
                self._log.result(result.call_id, result.status, result.content)
            elif item.type == "message":
                self._log.assistant(item.text or "")
            elif item.type == "reasoning":
                self._log.reasoning(item.text or "")
            else:
                self._log.notice(item.text or "")
        # It is the parser's own list: a long recording is not kept in memory.
        turn.items.clear()


def _events() -> CodexEvents:
    # Paths stay as they are: a recording does not tell its directory.
    return CodexEvents(PurePath())
