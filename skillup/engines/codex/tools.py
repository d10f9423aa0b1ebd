"""Tools in Codex's rollouts, named as in the event stream of `codex exec --json`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from skillup.engines.claude_code.events import portable_name
from skillup.engines.cli_runner import as_dict, as_text, content_text
from skillup.engines.codex.events import inner_command
from skillup.schema.check_specs import ToolKind

Status = Literal["success", "error", "unknown"]

_SHELLS = frozenset(
    {"exec_command", "shell", "shell_command", "local_shell", "container.exec", "unified_exec"}
)
_KINDS: dict[str, ToolKind] = {
    "write_stdin": "shell",
    "view_image": "read",
    "read_file": "read",
    "list_dir": "search",
    "grep_files": "search",
    "web_search": "web",
    "spawn_agent": "agent",
    "send_input": "agent",
    "send_message": "agent",
    "resume_agent": "agent",
    "wait": "agent",
    "wait_agent": "agent",
    "close_agent": "agent",
}
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the record has it; a patch makes one of each file."""

    call_id: str
    name: str
    kind: ToolKind
    arguments: dict[str, Any]


def calls_of_item(call_id: str, payload: dict[str, Any]) -> list[Call]:
    """Of a `function_call`, `custom_tool_call` or the like."""
    name = as_text(payload.get("name"))
    given = payload.get("arguments", payload.get("input", payload.get("action")))
    arguments = _arguments(given)
    if name == "apply_patch":
        text = as_text(arguments.get("input", arguments.get("patch", given)))
        changes = [(path, change.lower()) for change, path in _PATCHED.findall(text)]
        return file_changes(call_id, changes or [("", "update")])
    if name in _SHELLS:
        command = arguments.get("cmd", arguments.get("command", arguments.get("input")))
        return [command_call(call_id, command)]
    namespace = as_text(payload.get("namespace"))
    if namespace.startswith("mcp__"):
        name = f"{namespace.rstrip('_')}__{name}"
    name, kind = portable_name(name)
    return [Call(call_id, name, kind if kind == "mcp" else _KINDS.get(name, "other"), arguments)]


def command_call(call_id: str, command: Any) -> Call:
    """Of a shell command: a text, or the words of its command line."""
    if isinstance(command, list):
        command = shlex.join(map(as_text, command))
    text = inner_command(as_text(command))
    return Call(call_id, "command_execution", "shell", {"command": text})


def file_changes(call_id: str, changes: list[tuple[str, str]]) -> list[Call]:
    """Of a patch: its paths, and `add`, `update` or `delete`."""
    return [
        Call(
            call_id if len(changes) == 1 else f"{call_id}.{number}",
            "file_change",
            "write" if change == "add" else "edit",
            {"path": path, "change": change},
        )
        for number, (path, change) in enumerate(changes, start=1)
    ]


def changed_files(changes: Any, cwd: str | None) -> Iterator[tuple[str, str]]:
    """The `changes` of an event: by path, absolute; relative to the session's directory here."""
    for path, change in as_dict(changes).items():
        given = PurePath(path)
        inside = cwd is not None and given.is_relative_to(cwd)
        shown = given.relative_to(cwd).as_posix() if inside and cwd else path
        yield shown, as_text(as_dict(change).get("type"))


def output_of_item(payload: dict[str, Any]) -> tuple[Status, str]:
    """What a call gave back: the exit code, if it tells one, and the text after the header."""
    if "tools" in payload:  # of a search for tools
        return "unknown", as_text(payload["tools"])
    output = payload.get("output")
    if isinstance(output, dict):
        if isinstance(output.get("success"), bool):
            status: Status = "success" if output["success"] else "error"
            return status, content_text(output.get("content"))
        output = [output]
    text = content_text(output)
    if text.startswith('{"output":'):  # versions before 0.60
        told = _arguments(text)
        code = as_dict(told.get("metadata")).get("exit_code")
        return status_of_code(code), as_text(told.get("output"))
    header, found, rest = text.partition("\nOutput:\n")
    code_in_header = _EXIT_CODE.search(header) if found else None
    if code_in_header is not None:
        return status_of_code(int(code_in_header[1])), rest
    return "unknown", rest if found else text


def status_of_code(code: Any) -> Status:
    """0 is success; anything but a number tells nothing."""
    if isinstance(code, bool) or not isinstance(code, int):
        return "unknown"
    return "success" if code == 0 else "error"


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            read = json.loads(given, parse_constant=str)
        except (ValueError, RecursionError):
            return {"input": given}
        return read if isinstance(read, dict) else {"input": given}
    return given if isinstance(given, dict) else {} if given is None else {"input": given}
