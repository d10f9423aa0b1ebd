"""Codex's session files: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.engines.codex.transcript import (
    OUTPUTS,
    CodexTranscript,
    output_of,
    total_of,
)
from skillup.engines.events import as_dict, as_text, content_text
from skillup.engines.session_entries import EntryLog
from skillup.engines.session_files import rows_of
from skillup.schema.record import TranscriptItem, Usage

# Calls that end in an event of the stream, unless codex refuses them.
_WATCHED_CALLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "apply_patch"})
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
    refused: list[TranscriptItem] = field(default_factory=list)
    """Calls that the event stream does not show, and what codex answered the model."""


def read_part(path: Path, offset: int) -> RolloutPart:
    """What stands behind the byte `offset` of a session's file."""
    part = RolloutPart()
    calls: dict[str, list[dict[str, Any]]] = {}
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
                calls[call_id] = [row]
        elif inner in OUTPUTS and call_id in calls:
            # A command that goes on in the background has begun in the stream, and did not end.
            is_running = _STILL_RUNNING in output_of(payload)[1]
            calls[call_id] += [] if is_running else [row]
        elif inner == "message" and payload.get("role") == "user":
            # Codex adds the body of a skill that the prompt names as a message of its own.
            if skill := _SKILL.match(content_text(payload.get("content"))):
                part.loaded_skills.append(skill[1].strip())
        elif inner == "item_completed":
            calls.pop(as_text(as_dict(payload.get("item")).get("id")), None)
        else:
            total = total_of(row) or total
    log = EntryLog()
    transcript = CodexTranscript(log)
    for rows in calls.values():
        for row in rows if len(rows) > 1 else ():
            transcript.feed(row)
    part.refused = [_failed(entry.item) for entry in log.entries]
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


def broken_sandbox(items: Collection[TranscriptItem]) -> str | None:
    """What the sandbox said, where it kept every command of the turn from running."""
    shells = {i.tool_call.id for i in items if i.tool_call and i.tool_call.kind == "shell"}
    results = [i.tool_result for i in items if i.tool_result and i.tool_result.call_id in shells]
    for result in results:
        if result.status != "error" or not _NO_SANDBOX.match(result.content.lstrip()):
            return None
    return results[0].content.strip().splitlines()[0] if results else None
