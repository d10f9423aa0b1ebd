"""Codex's session files: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skillup.engines.codex.events import add_file_changes
from skillup.engines.events import (
    Transcript,
    as_count,
    as_dict,
    as_text,
    content_text,
    read_event,
)
from skillup.engines.session_files import rows_of
from skillup.schema.record import TranscriptItem, Usage

# Calls that end in an event of the stream, unless codex refuses them.
_WATCHED_CALLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "apply_patch"})
_ENDING_ITEMS = frozenset({"CommandExecution", "FileChange", "McpToolCall", "WebSearch"})


@dataclass(frozen=True, slots=True)
class MissingCall:
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
    silent_calls: list[MissingCall] = field(default_factory=list)


def rollouts(engine_home: Path) -> set[Path]:
    """Every session file of a home."""
    return set((engine_home / "sessions").rglob("rollout-*.jsonl"))


def session_file(engine_home: Path, thread_id: str) -> Path | None:
    """The session's file; None if there is none."""
    pattern = f"rollout-*-{glob.escape(thread_id)}.jsonl"
    return min((engine_home / "sessions").rglob(pattern), default=None)


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
            outputs[call_id] = _output_text(payload.get("output"))
        elif inner == "message":
            part.loaded_skills += _loaded_skills(payload)
        elif inner == "token_count":
            info = as_dict(payload.get("info"))
            part.total = as_dict(info.get("total_token_usage")) or part.total
        elif inner == "item_completed":
            item = as_dict(payload.get("item"))
            ended.add(as_text(item.get("id")))
            tools_ended += item.get("type") in _ENDING_ITEMS
    part.silent_calls = [
        replace(call, output=outputs[call_id])
        for call_id, call in calls.items()
        if call.name in _WATCHED_CALLS and call_id in outputs.keys() - ended
    ]
    return part


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


# Calls that the model made and `codex exec --json` does not show, put in their places.

PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_STILL_RUNNING = "Process running with session ID"
# What stands in place of a command's own output if the sandbox could not be made for it.
_NO_SANDBOX = re.compile(
    r"(bwrap|sandbox-exec|codex-linux-sandbox): |(error|failed)\b.{0,80}\b(bubblewrap|landlock)",
    re.IGNORECASE,
)


def with_missing_calls(
    items: Sequence[TranscriptItem],
    tool_ends: Sequence[int],
    open_commands: Collection[str],
    part: RolloutPart,
    skills: Collection[str],
) -> list[TranscriptItem]:
    """The items and the silent calls, each after the tools that had ended before it.

    `tool_ends` says for each tool that ended how many items there were then.
    """
    inserts: list[tuple[int, list[TranscriptItem]]] = []
    for name in part.loaded_skills:
        if name in skills:
            transcript = Transcript()
            transcript.call("prompt#skill", "Skill", "skill", {"skill": name})
            transcript.result("prompt#skill", "success", "")
            inserts.append((0, transcript.items))
    for call in part.silent_calls:
        # A command that goes on in the background has begun in the stream, and did not end.
        if _command_of(call) in open_commands or _STILL_RUNNING in call.output:
            continue
        after = min(call.after, len(tool_ends))
        position = tool_ends[after - 1] if after else _first_call(items)
        inserts.append((position, _items_of(call)))
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


def _first_call(items: Sequence[TranscriptItem]) -> int:
    """Before the first tool call; without one, before the last message."""
    calls = (number for number, item in enumerate(items) if item.tool_call is not None)
    return next(calls, max(0, len(items) - 1))


def _items_of(call: MissingCall) -> list[TranscriptItem]:
    transcript = Transcript()
    if call.name == "apply_patch":
        found = PATCHED.findall(call.arguments) or [("Update", "")]
        changes = [(path, change.lower()) for change, path in found]
        for call_id in add_file_changes(transcript, call.call_id, changes):
            transcript.result(call_id, "error", call.output)
    else:
        transcript.call(call.call_id, "command_execution", "shell", {"command": _command_of(call)})
        transcript.result(call.call_id, "error", call.output)
    return transcript.items


def _command_of(call: MissingCall) -> str:
    try:
        arguments = as_dict(json.loads(call.arguments))
    except ValueError:
        return call.arguments
    command = arguments.get("cmd", arguments.get("command", call.arguments))
    if isinstance(command, list):
        # The old form: ["bash", "-lc", "the command"].
        return str(command[-1]) if command else ""
    return str(command)


# The tokens of one turn of Codex: as its session's file tells them, or the event stream.

_USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}
Total = dict[str, Any]
"""The thread's running total: as Codex writes it, empty before the first request."""


def usage_of(before: Total, part: RolloutPart) -> Usage | None:
    """The tokens of the turn that wrote `part`: the sum over its requests.

    Where the requests are not told one by one, the running total less the total `before`.
    """
    if part.usages:
        return Usage(**_sums(part.usages), requests=len(part.usages))
    if part.total is None:
        return None
    return Usage(**_difference(part.total, before))


def usage_by_totals(now: Total | None, before: Total, part: RolloutPart) -> Usage | None:
    """The tokens of a turn whose file was changed during it, so that requests may be missing there.

    `now` is the total that the event stream told. How many requests there were is known only if
    those in the file come to the same.
    """
    if now is None:
        return None
    own = _difference(now, before)
    complete = bool(part.usages) and _sums(part.usages) == own
    return Usage(**own, requests=len(part.usages) if complete else None)


def total_before(path: Path | None, offset: int) -> Total:
    """The thread's running total in the first `offset` bytes of its file."""
    total: Total = {}
    for at, line in _lines_with(b'"total_token_usage"', path):
        if at < offset:
            info = as_dict(as_dict(line.get("payload")).get("info"))
            total = as_dict(info.get("total_token_usage")) or total
    return total


def part_of_last_turn(path: Path) -> RolloutPart:
    """What the latest turn wrote, in a file of which nothing else is known any more."""
    rows = _lines_with(b'"task_started"', path)
    starts = [at for at, line in rows if line.get("type") == "event_msg"]
    return read_part(path, max(starts, default=0))


def _lines_with(text: bytes, path: Path | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line that holds `text`, and where it begins: few of very many, so few are parsed."""
    if path is None or not path.is_file():
        return
    at = 0
    with path.open("rb") as file:
        for line in file:
            row = read_event(line) if text in line else None
            if isinstance(row, dict):
                yield at, row
            at += len(line)


def _difference(now: Total, before: Total) -> dict[str, int | None]:
    own: Total = {}
    for name in _USAGE_NAMES.values():
        count = as_count(now.get(name))
        difference = None if count is None else count - (as_count(before.get(name)) or 0)
        own[name] = as_count(difference)  # none if the total was set back
    return _sums([own])


def _sums(usages: list[dict[str, Any]]) -> dict[str, int | None]:
    sums: dict[str, int | None] = {}
    for ours, theirs in _USAGE_NAMES.items():
        counts = [as_count(usage.get(theirs)) for usage in usages]
        known = [count for count in counts if count is not None]
        sums[ours] = sum(known) if known else None
    return sums
