"""From a portable tool call to the one that Claude Code would have made: the way back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ToolCall

# Claude's tool of each kind, and what other engines and cases call its arguments.
_TOOLS: Mapping[ToolKind, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    "shell": ("Bash", {"command": ("cmd", "script")}),
    "read": ("Read", {"file_path": ("path", "filename")}),
    "write": ("Write", {"file_path": ("path", "filename"), "content": ("text", "file_text")}),
    "edit": (
        "Edit",
        {
            "file_path": ("path", "filename", "notebook_path"),
            "old_string": ("old", "old_str"),
            "new_string": ("new", "new_str"),
        },
    ),
    "search": ("Grep", {"pattern": ("query", "regex")}),
    "web": ("WebFetch", {"url": ("uri",)}),
    "skill": ("Skill", {"skill": ("name", "command")}),
    "agent": ("Agent", {}),
    # Nothing says which one: names that the model's API takes, and that no tool has.
    "mcp": ("mcp__unknown__tool", {}),
    "other": ("other", {}),
}
_WEB_SEARCH: tuple[str, Mapping[str, tuple[str, ...]]] = ("WebSearch", {"query": ("q",)})

# What the API takes as the name of a tool, and as the id of a call.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128


def own_call(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """The tool's name and its input, as claude has them.

    A call with a name keeps it, and its arguments; MCP's `server::tool` becomes
    `mcp__server__tool`. Without a name it is claude's tool of the call's kind, and the arguments
    get the names that this tool has for them.
    """
    if call.name:
        return _own_name(call.name), dict(call.arguments)
    name, names = _TOOLS[call.kind]
    given = call.arguments
    if call.kind == "web" and not given.keys() & {"url", "uri"} and given.keys() & {"query", "q"}:
        name, names = _WEB_SEARCH
    arguments = _renamed(given, names)
    command = arguments.get("command")
    if name == "Bash" and isinstance(command, list):
        arguments["command"] = shlex.join(map(str, command))
    return name, arguments


def api_id(call_id: str) -> str:
    """The id of a call with nothing in it that the model's API refuses."""
    return _NOT_IN_NAMES.sub("_", call_id) or "_"


def _own_name(name: str) -> str:
    server, separator, tool = name.partition("::")
    own = f"mcp__{server or 'unknown'}__{tool or 'tool'}" if separator else name
    return _NOT_IN_NAMES.sub("_", own)[:_LONGEST_NAME]


def _renamed(given: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Each argument in its place; one that stands there under its own name stays as it is."""
    own = {other: name for name, others in names.items() for other in reversed(others)}
    renamed: dict[str, Any] = {}
    for name, value in given.items():
        target = own.get(name, name)
        renamed[name if target in given or target in renamed else target] = value
    return renamed
