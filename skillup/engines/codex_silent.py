"""Calls that the model made and `codex exec --json` does not show, put in their places.

A command that the sandbox stopped and a patch that was refused leave no event, and a `$skill` in
the prompt loads without one. A check like `tool_not_called` must not pass because of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from skillup.engines.codex_session import RolloutPart, SilentCall
from skillup.engines.transcript import Transcript, as_dict
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import TranscriptItem

_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_STILL_RUNNING = "Process running with session ID"
# What stands in place of a command's own output if the sandbox could not be made for it.
_NO_SANDBOX = re.compile(
    r"(bwrap|sandbox-exec|codex-linux-sandbox): |(error|failed)\b.{0,80}\b(bubblewrap|landlock)",
    re.IGNORECASE,
)


def with_silent_calls(
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


def _items_of(call: SilentCall) -> list[TranscriptItem]:
    transcript = Transcript()
    if call.name == "apply_patch":
        changes = _PATCHED.findall(call.arguments) or [("Update", "")]
        for number, (change, path) in enumerate(changes, start=1):
            kind: ToolKind = "write" if change == "Add" else "edit"
            arguments = {"path": path, "change": change.lower()}
            call_id = call.call_id if len(changes) == 1 else f"{call.call_id}.{number}"
            transcript.call(call_id, "file_change", kind, arguments)
            transcript.result(call_id, "error", call.output)
    else:
        transcript.call(call.call_id, "command_execution", "shell", {"command": _command_of(call)})
        transcript.result(call.call_id, "error", call.output)
    return transcript.items


def _command_of(call: SilentCall) -> str:
    try:
        arguments = as_dict(json.loads(call.arguments))
    except ValueError:
        return call.arguments
    command = arguments.get("cmd", arguments.get("command", call.arguments))
    if isinstance(command, list):
        # The old form: ["bash", "-lc", "the command"].
        return str(command[-1]) if command else ""
    return str(command)
