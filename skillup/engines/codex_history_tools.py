"""Calls of a history as Codex's model would have made them. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skillup.engines.transcript import as_text
from skillup.schema.record import ToolCall

SHELL_TOOL = "exec_command"
PATCH_TOOL = "apply_patch"

# What portable kinds without a better form are called.
_NAMES = {"web": "web_search", "agent": "spawn_agent"}
_PATHS = ("path", "file_path", "filename", "file")
_OLD_TEXTS = ("old_string", "old_text", "old")
_NEW_TEXTS = ("new_string", "new_text", "new")
# OpenAI's API takes no others, nor longer ones.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """A call in Codex's form."""

    type: Literal["function_call", "custom_tool_call"]
    name: str
    arguments: str
    """JSON; of a custom tool, its input."""
    namespace: str | None = None
    """Of an MCP tool: its server's."""

    @property
    def is_freeform(self) -> bool:
        """It is given a text, not arguments."""
        return self.type == "custom_tool_call"


def placed_call(call: ToolCall) -> PlacedCall:
    """A call by its name; one without, as the tool that Codex has for its kind.

    `command_execution` and `file_change` are what our records call Codex's shell and patches.
    What has not the arguments of such a tool becomes a function call of the tool's name.
    """
    given = call.arguments
    if "::" in call.name:
        server, _, tool = call.name.partition("::")
        return _function(tool or "tool", given, namespace=f"mcp__{server or 'unknown'}")
    if call.name in (PATCH_TOOL, "file_change"):
        patch = _text(given, "input", "patch") or _bare_patch(given)
        return _patch(patch) if patch else _function(PATCH_TOOL, given)
    if call.name in (SHELL_TOOL, "command_execution"):
        return _shell(given)
    if call.name:
        return _function(call.name, given)
    return _of_kind(call.kind, given)


def _of_kind(kind: str, given: Mapping[str, Any]) -> PlacedCall:
    if kind == "shell":
        return _shell(given)
    if kind in ("write", "edit"):
        patch = _text(given, "input", "patch") or _patch_of(kind, given)
        if patch:
            return _patch(patch)
    command = _command_of(kind, given)
    if command:
        return _shell({"cmd": command})
    return _function(_NAMES.get(kind, kind), given)


def _shell(given: Mapping[str, Any]) -> PlacedCall:
    arguments = dict(given)
    if "cmd" not in arguments and "command" in arguments:
        command = arguments.pop("command")
        is_list = isinstance(command, list)
        text = shlex.join(map(as_text, command)) if is_list else as_text(command)
        arguments = {"cmd": text, **arguments}
    return _function(SHELL_TOOL, arguments)


def _command_of(kind: str, given: Mapping[str, Any]) -> str | None:
    """Codex reads, searches and uses skills by the shell."""
    path = _text(given, *_PATHS)
    pattern = _text(given, "pattern", "query")
    skill = _text(given, "skill", "name")
    if kind == "read" and path:
        return f"cat {shlex.quote(path)}"
    if kind == "search" and pattern:
        return shlex.join(["rg", "-n", "-e", pattern, path or "."])
    if kind == "skill" and skill:
        return f"cat {shlex.quote(f'.agents/skills/{skill}/SKILL.md')}"
    return None


def _patch_of(kind: str, given: Mapping[str, Any]) -> str | None:
    """A patch that writes the file whole, or replaces one text in it by another."""
    path, content = _text(given, *_PATHS), _text(given, "content", "text")
    old, new = _text(given, *_OLD_TEXTS), _text(given, *_NEW_TEXTS)
    if path is None:
        return None
    if kind == "write" and content is not None:
        return _patch_text(f"Add File: {path}", _marked("+", content))
    if kind == "edit" and (old or new):
        return _patch_text(
            f"Update File: {path}", "@@\n" + _marked("-", old or "") + _marked("+", new or "")
        )
    return None


def _bare_patch(given: Mapping[str, Any]) -> str | None:
    """Of what a record tells of a patch: the file and what happened to it, not its lines."""
    path, change = _text(given, "path"), _text(given, "change")
    if not path or change not in ("add", "update", "delete"):
        return None
    return _patch_text(f"{change.title()} File: {path}", "")


def _patch_text(header: str, lines: str) -> str:
    return f"*** Begin Patch\n*** {header}\n{lines}*** End Patch\n"


def _marked(mark: str, text: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


def _patch(text: str) -> PlacedCall:
    return PlacedCall("custom_tool_call", PATCH_TOOL, text)


def _function(name: str, arguments: Mapping[str, Any], namespace: str | None = None) -> PlacedCall:
    return PlacedCall(
        "function_call",
        _as_name(name),
        json.dumps(dict(arguments), ensure_ascii=False),
        namespace and _as_name(namespace),
    )


def _as_name(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]


def _text(given: Mapping[str, Any], *names: str) -> str | None:
    return next((given[name] for name in names if isinstance(given.get(name), str)), None)
