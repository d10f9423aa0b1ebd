"""Codex's session files: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skillup.engines.session_files import session_lines, take_fingerprint
from skillup.engines.transcript import as_dict, as_text, content_text
from skillup.schema.record import SessionFingerprint

# Calls that end in an event of the stream, unless codex refuses them.
_WATCHED_CALLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "apply_patch"})
_ENDING_ITEMS = frozenset({"CommandExecution", "FileChange", "McpToolCall", "WebSearch"})


@dataclass(frozen=True, slots=True)
class SilentCall:
    """A call that the model made and the event stream does not show."""

    call_id: str
    name: str
    arguments: str
    """JSON, or a patch."""
    output: str
    after: int
    """How many tools had ended before."""


@dataclass(slots=True)
class RolloutPart:
    """What one turn wrote into the session's file."""

    model: str | None = None
    version: str | None = None
    usages: list[dict[str, Any]] = field(default_factory=list)
    """One for each request to the model."""
    total: dict[str, Any] | None = None
    """The thread's running total."""
    loaded_skills: list[str] = field(default_factory=list)
    """Skills that a `$name` in the prompt loaded."""
    silent_calls: list[SilentCall] = field(default_factory=list)


def rollouts(engine_home: Path) -> set[Path]:
    """Every session file of a home."""
    return set((engine_home / "sessions").rglob("rollout-*.jsonl"))


def session_file(engine_home: Path, thread_id: str) -> Path | None:
    """The session's file; None if there is none."""
    pattern = f"rollout-*-{glob.escape(thread_id)}.jsonl"
    return min((engine_home / "sessions").rglob(pattern), default=None)


def fingerprint(engine_home: Path, thread_id: str) -> SessionFingerprint | None:
    """What the session holds now; None if it has no file."""
    return take_fingerprint(session_file(engine_home, thread_id), thread_id, is_user_message)


def is_user_message(entry: Mapping[str, Any]) -> bool:
    """Whether a line is the event of a message that somebody sent (threads of both formats)."""
    if entry.get("type") != "event_msg":
        return False
    payload = as_dict(entry.get("payload"))
    if payload.get("type") == "user_message":
        return True
    item = as_dict(payload.get("item"))
    return payload.get("type") == "item_completed" and item.get("type") == "UserMessage"


def read_part(path: Path, offset: int, end: int | None = None) -> RolloutPart:
    """What stands between the bytes `offset` and `end` of a session's file."""
    reader = _Reader()
    for entry in session_lines(path, offset, end):
        reader.take(as_text(entry.get("type")), as_dict(entry.get("payload")))
    return reader.part()


class _Reader:
    """Goes through the lines of a rollout."""

    def __init__(self) -> None:
        self._part = RolloutPart()
        self._calls: dict[str, SilentCall] = {}
        self._outputs: dict[str, str] = {}
        self._ended: set[str] = set()
        self._tools_ended = 0

    def part(self) -> RolloutPart:
        self._part.silent_calls = [
            replace(call, output=self._outputs[call.call_id])
            for call in self._calls.values()
            if call.name in _WATCHED_CALLS
            and call.call_id in self._outputs
            and call.call_id not in self._ended
        ]
        return self._part

    def take(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "session_meta":
            self._part.version = as_text(payload.get("cli_version")) or None
        elif kind == "turn_context":
            self._part.model = as_text(payload.get("model")) or None
        elif kind == "token_usage_record":
            self._part.usages.append(as_dict(payload.get("usage")))
        elif kind == "response_item":
            self._response_item(as_text(payload.get("type")), payload)
        elif kind == "event_msg":
            self._event(as_text(payload.get("type")), payload)

    def _response_item(self, kind: str, payload: dict[str, Any]) -> None:
        call_id = as_text(payload.get("call_id"))
        if kind in ("function_call", "custom_tool_call"):
            name = as_text(payload.get("name"))
            arguments = as_text(payload.get("arguments") or payload.get("input"))
            self._calls[call_id] = SilentCall(call_id, name, arguments, "", self._tools_ended)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._outputs[call_id] = _output_text(payload.get("output"))
        elif kind == "message":
            self._part.loaded_skills += _loaded_skills(payload)

    def _event(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "token_count":
            info = as_dict(payload.get("info"))
            self._part.total = as_dict(info.get("total_token_usage")) or self._part.total
        elif kind == "item_completed":
            item = as_dict(payload.get("item"))
            self._ended.add(as_text(item.get("id")))
            self._tools_ended += item.get("type") in _ENDING_ITEMS


def _output_text(output: Any) -> str:
    text = content_text(output)
    _, found, rest = text.partition("\nOutput:\n")
    return rest if found else text


def _loaded_skills(message: Mapping[str, Any]) -> list[str]:
    """Codex adds the body of a skill that the prompt names as a user message of its own."""
    if message.get("role") != "user":
        return []
    text = content_text(message.get("content"))
    found = re.match(r"\s*<skill>\s*<name>(.*?)</name>", text)
    return [found[1].strip()] if found else []
