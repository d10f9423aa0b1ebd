"""Codex's session files: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skillup.engines.codex.events import add_file_changes
from skillup.engines.events import (
    Transcript,
    as_dict,
    as_text,
    content_text,
    counts,
    read_event,
)
from skillup.engines.session_files import rows_of
from skillup.schema.record import TranscriptItem, Usage

# Calls that end in an event of the stream, unless codex refuses them.
_WATCHED_CALLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "apply_patch"})
_ENDING_ITEMS = frozenset({"CommandExecution", "FileChange", "McpToolCall", "WebSearch"})

PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_SKILL = re.compile(r"\s*<skill>\s*<name>(.*?)</name>")
_STILL_RUNNING = "Process running with session ID"
# What stands in place of a command's own output if the sandbox could not be made for it.
_NO_SANDBOX = re.compile(
    r"(bwrap|sandbox-exec|codex-linux-sandbox): |(error|failed)\b.{0,80}\b(bubblewrap|landlock)",
    re.IGNORECASE,
)
USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}
Total = dict[str, Any]
"""The thread's running total: as Codex writes it, empty before the first request."""


@dataclass(frozen=True, slots=True)
class MissingCall:
    """A call that the model made and the event stream does not show."""

    call_id: str
    name: str
    arguments: str  # JSON, or a patch
    output: str
    after: int  # How many tools had ended before

    @property
    def command(self) -> str:
        try:
            arguments = as_dict(json.loads(self.arguments))
        except ValueError:
            return self.arguments
        command = arguments.get("cmd", arguments.get("command", self.arguments))
        if isinstance(command, list):  # ["bash", "-lc", "the command"]
            return str(command[-1]) if command else ""
        return str(command)


@dataclass(slots=True)
class RolloutPart:
    """What one turn wrote into the session's file."""

    model: str | None = None
    version: str | None = None
    usages: list[dict[str, Any]] = field(default_factory=list)  # One for each request to the model
    total: Total | None = None
    loaded_skills: list[str] = field(default_factory=list)
    """Skills that a `$name` in the prompt loaded."""
    missing_calls: list[MissingCall] = field(default_factory=list)


def rollouts(engine_home: Path) -> set[Path]:
    """Every session file of a home."""
    return set((engine_home / "sessions").rglob("rollout-*.jsonl"))


def session_file(engine_home: Path, thread_id: str) -> Path | None:
    """The session's file; None if there is none."""
    pattern = f"rollout-*-{glob.escape(thread_id)}.jsonl"
    return min((engine_home / "sessions").rglob(pattern), default=None)


def is_user_message(entry: Mapping[str, Any]) -> bool:
    """Whether a line is the event of a message that somebody sent (threads of both formats)."""
    payload = as_dict(entry.get("payload"))
    kind, item = payload.get("type"), as_dict(payload.get("item"))
    return entry.get("type") == "event_msg" and (
        kind == "user_message" or (kind == "item_completed" and item.get("type") == "UserMessage")
    )


def read_part(path: Path, offset: int, end: int | None = None) -> RolloutPart:
    """What stands between the bytes `offset` and `end` of a session's file."""
    part = RolloutPart()
    calls: dict[str, MissingCall] = {}
    outputs: dict[str, str] = {}
    ended: set[str] = set()
    tools_ended = 0
    for row in rows_of(path, None if end is None else end - offset, offset):
        kind, payload = row.get("type"), as_dict(row.get("payload"))
        inner, call_id = payload.get("type"), as_text(payload.get("call_id"))
        if kind == "session_meta":
            part.version = as_text(payload.get("cli_version")) or None
        elif kind == "turn_context":
            part.model = as_text(payload.get("model")) or None
        elif kind == "token_usage_record":
            part.usages.append(as_dict(payload.get("usage")))
        elif inner in ("function_call", "custom_tool_call"):
            arguments = as_text(payload.get("arguments") or payload.get("input"))
            name = as_text(payload.get("name"))
            calls[call_id] = MissingCall(call_id, name, arguments, "", tools_ended)
        elif inner in ("function_call_output", "custom_tool_call_output"):
            text = content_text(payload.get("output"))
            _, found, rest = text.partition("\nOutput:\n")
            outputs[call_id] = rest if found else text
        elif inner == "message" and payload.get("role") == "user":
            # Codex adds the body of a skill that the prompt names as a message of its own.
            if skill := _SKILL.match(content_text(payload.get("content"))):
                part.loaded_skills.append(skill[1].strip())
        elif inner == "token_count":
            info = as_dict(payload.get("info"))
            part.total = as_dict(info.get("total_token_usage")) or part.total
        elif inner == "item_completed":
            item = as_dict(payload.get("item"))
            ended.add(as_text(item.get("id")))
            tools_ended += item.get("type") in _ENDING_ITEMS
    part.missing_calls = [
        replace(call, output=outputs[call_id])
        for call_id, call in calls.items()
        if call.name in _WATCHED_CALLS and call_id in outputs.keys() - ended
    ]
    return part


def with_missing_calls(
    items: Sequence[TranscriptItem],
    tool_ends: Sequence[int],
    open_commands: Collection[str],
    part: RolloutPart,
    skills: Collection[str],
) -> list[TranscriptItem]:
    """The items and the missing calls, each after the tools that had ended before it.

    `tool_ends` says for each tool that ended how many items there were then.
    """
    inserts: list[tuple[int, list[TranscriptItem]]] = []
    for name in part.loaded_skills:
        if name in skills:
            transcript = Transcript()
            transcript.loaded_skill(name)
            inserts.append((0, transcript.items))
    # Before the first tool call; without one, before the last message.
    calls = (number for number, item in enumerate(items) if item.tool_call is not None)
    first = next(calls, max(0, len(items) - 1))
    for call in part.missing_calls:
        # A command that goes on in the background has begun in the stream, and did not end.
        if call.command in open_commands or _STILL_RUNNING in call.output:
            continue
        transcript = Transcript()
        if call.name == "apply_patch":
            found = PATCHED.findall(call.arguments) or [("Update", "")]
            changes = [(path, change.lower()) for change, path in found]
            ids = add_file_changes(transcript, call.call_id, changes)
        else:
            ids = [call.call_id]
            arguments = {"command": call.command}
            transcript.call(call.call_id, "command_execution", "shell", arguments)
        for each in ids:
            transcript.result(each, "error", call.output)
        after = min(call.after, len(tool_ends))
        inserts.append((tool_ends[after - 1] if after else first, transcript.items))
    merged = list(items)
    # From the end, so that positions stay right; of equal ones the last first, to keep their order.
    inserts.sort(key=lambda insert: insert[0])
    for position, new in reversed(inserts):
        merged[position:position] = new
    return merged


def broken_sandbox(items: Sequence[TranscriptItem]) -> str | None:
    """What the sandbox said, where it kept every command of the turn from running."""
    shells = {i.tool_call.id for i in items if i.tool_call and i.tool_call.kind == "shell"}
    results = [i.tool_result for i in items if i.tool_result and i.tool_result.call_id in shells]
    for result in results:
        if result.status != "error" or not _NO_SANDBOX.match(result.content.lstrip()):
            return None
    return results[0].content.strip().splitlines()[0] if results else None


def usage_of(before: Total, now: Total | None, usages: Sequence[dict[str, Any]]) -> Usage | None:
    """The tokens of a turn: the sum over the `usages` of its requests.

    Where the requests are not there one by one, the running total `now` less the total `before`.
    """
    if not usages:
        if now is None:
            return None
        ours, theirs = counts(now, USAGE_NAMES), counts(before, USAGE_NAMES)
        own = {name: count - theirs.get(name, 0) for name, count in ours.items()}
        # There is no count if the total was set back.
        return Usage(**{name: count for name, count in own.items() if count >= 0})
    total: dict[str, int] = {}
    for usage in usages:
        for name, count in counts(usage, USAGE_NAMES).items():
            total[name] = total.get(name, 0) + count
    return Usage(**total, requests=len(usages))


def total_before(path: Path | None, offset: int) -> Total:
    """The thread's running total in the first `offset` bytes of its file."""
    total: Total = {}
    if path is None or not path.is_file():
        return total
    with path.open("rb") as file:
        while file.tell() < offset and (line := file.readline()):
            if b'"total_token_usage"' in line:  # of very many lines few are parsed
                info = as_dict(as_dict(as_dict(read_event(line)).get("payload")).get("info"))
                total = as_dict(info.get("total_token_usage")) or total
    return total
