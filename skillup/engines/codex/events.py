"""From the lines of `codex exec --json` to a turn. Pure.

The format is that of Codex 0.169; other events and item types are kept as unknown ones. Usage is
not read here: `turn.completed` gives the thread's running total, see :mod:`.rollout`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePath
from typing import Any

from skillup.engines.base import Progress
from skillup.engines.events import (
    EventParser,
    Transcript,
    as_dict,
    as_list,
    as_text,
    content_text,
)
from skillup.engines.failures import Failure, KindsByText, kind_of_status, kind_of_text
from skillup.schema.check_specs import ToolKind

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_SHELL_OPTIONS = frozenset({"-c", "-lc", "-lic", "-ic"})
_STATUS = re.compile(r"^(?:exceeded retry limit, last status:|unexpected status) (\d{3})\b")

# Of the messages of `turn.failed`: Codex reports failures in words only.
_BY_TEXT: KindsByText = {
    "auth": (
        "Missing environment variable",
        "Your access token could not be refreshed",
        "Not logged in",
    ),
    "quota": (
        "You've hit your usage limit",
        "You've reached your usage limit",
        "You hit your spend cap",
        "You hit the spend cap",
        "Your workspace is out of credits",
        "Quota exceeded",
    ),
    "rate_limit": ("Rate limit reached",),
    # The second is the text for the status 500.
    "overloaded": (
        "Selected model is at capacity",
        "We're currently experiencing high demand",
    ),
    "network": (
        "Connection failed",
        "stream disconnected before completion",
        "error sending request",
        "timeout waiting for",
        "request timed out",
    ),
}

# What stderr says where no event came.
BY_STDERR: KindsByText = {
    "session_lost": ("no rollout found for thread id",),
    "session_mismatch": ("already has an active writer",),
    "engine_not_usable": (
        "Cannot change this thread's model provider",
        "Not inside a trusted directory",
        "Error loading config.toml",
        "Error: Unknown feature flag",
        "error: unexpected argument",
        "error: invalid value",
        "error: the following required argument",
    ),
}


def inner_command(command: str) -> str:
    """A shell command without its shell: `/bin/bash -lc 'echo hi'` is `echo hi`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and PurePath(words[0]).name in _SHELLS and words[1] in _SHELL_OPTIONS:
        return words[2]
    return command


def failure_of_text(message: str) -> Failure:
    """The failure that a message of `turn.failed` means; what is not known is the model's."""
    status = _STATUS.match(message)
    kind = kind_of_status(int(status[1])) if status else kind_of_text(message, _BY_TEXT)
    return Failure(kind or "model_error", message)


class CodexEvents(EventParser):
    """Feed it the lines of one process. `workspace` makes the paths of changed files relative."""

    def __init__(self, workspace: PurePath, progress: Progress = lambda _: None) -> None:
        super().__init__(progress)
        self._workspace = workspace
        self._calls: dict[str, list[str]] = {}
        self._failed: str | None = None
        self._last_error: str | None = None

    @property
    def failure(self) -> Failure | None:
        """What `turn.failed` says, or an `error` with which the stream ends."""
        if self._failed is not None:
            return failure_of_text(self._failed)
        last = self._last_error
        if not self.finished and last and not last.startswith("Reconnecting..."):
            return failure_of_text(last)
        return None

    def take(self, event: dict[str, Any]) -> None:
        kind = as_text(event.get("type"))
        if kind == "thread.started":
            self.session_id = as_text(event.get("thread_id")) or None
        elif kind == "turn.started":
            self.finished, self._failed = False, None
        elif kind == "turn.completed":
            self.finished = self._failed is None
        elif kind == "turn.failed":
            self._failed = as_text(as_dict(event.get("error")).get("message")) or "no reason given"
            self.finished = False
            if self._failed in self.transcript.notices:
                self.transcript.notices.remove(self._failed)
        elif kind == "error":
            self._last_error = as_text(event.get("message"))
            self.transcript.notice(self._last_error)
        elif kind.startswith("item."):
            self._item(event, as_dict(event.get("item")), done=kind == "item.completed")
        else:
            self.transcript.unknown(event)
        self.closed = self.finished or self._failed is not None

    def _item(self, event: dict[str, Any], item: dict[str, Any], *, done: bool) -> None:
        kind, item_id = as_text(item.get("type")), as_text(item.get("id"))
        if kind in ("agent_message", "reasoning", "error"):
            text = as_text(item.get("message" if kind == "error" else "text"))
            if done and kind == "agent_message":
                self.response = text
                self.transcript.message(text)
            elif done:  # an error is a warning here, in spite of its name
                add = self.transcript.reasoning if kind == "reasoning" else self.transcript.notice
                add(text)
        elif kind not in TOOLS:
            self.transcript.unknown(event)
        elif done or kind != "todo_list":
            # Short calls may come without `item.started`.
            if item_id not in self._calls:
                ids = add_call(self.transcript, item_id, kind, item, self._workspace)
                self._calls[item_id] = ids
            if done:
                add_results(self.transcript, self._calls[item_id], kind, item)


# Tools as items, of the event stream and of rollouts: nearly the same.

TOOLS: dict[str, ToolKind] = {
    "command_execution": "shell",
    "file_change": "edit",
    "mcp_tool_call": "mcp",
    "web_search": "web",
    "collab_tool_call": "agent",
    "image_view": "read",
    "image_generation": "other",
    "extension": "other",
    "todo_list": "other",
}


def add_call(
    transcript: Transcript,
    call_id: str,
    kind: str,
    item: dict[str, Any],
    cwd: PurePath | str | None,
) -> list[str]:
    """The calls of an item, and their ids: a patch has one for every file."""
    if kind == "command_execution":
        add_command(transcript, call_id, item.get("command"))
    elif kind == "file_change":
        given = item.get("changes")
        if isinstance(given, dict):
            given = [{"path": path, "kind": as_dict(of).get("type")} for path, of in given.items()]
        changes = [
            (as_text(one.get("path")), as_text(one.get("kind")))
            for one in map(as_dict, as_list(given))
        ]
        return add_file_changes(transcript, call_id, changes, cwd)
    elif kind == "mcp_tool_call":
        name = f"{as_text(item.get('server'))}::{as_text(item.get('tool'))}"
        given = item.get("arguments")
        arguments = {"input": given} if isinstance(given, list | str) else as_dict(given)
        transcript.call(call_id, name, "mcp", arguments)
    else:
        name = as_text(item.get("tool")) or kind
        arguments = {k: v for k, v in item.items() if k not in ("id", "type", "result")}
        transcript.call(call_id, name, TOOLS[kind], arguments)
    return [call_id]


def add_command(transcript: Transcript, call_id: str, command: Any) -> None:
    """The call of a shell command: a text, or a list of words."""
    if isinstance(command, list):
        command = shlex.join(map(as_text, command))
    arguments = {"command": inner_command(as_text(command))}
    transcript.call(call_id, "command_execution", "shell", arguments)


def add_file_changes(
    transcript: Transcript,
    call_id: str,
    changes: list[tuple[str, str]],
    cwd: PurePath | str | None,
) -> list[str]:
    """A call for each path and its `add`, `update` or `delete`; their ids."""
    ids = [call_id if len(changes) == 1 else f"{call_id}.{n + 1}" for n in range(len(changes))]
    for change_id, (path, change) in zip(ids, changes, strict=True):
        if cwd is not None and PurePath(path).is_relative_to(cwd):
            path = PurePath(path).relative_to(cwd).as_posix()
        kind: ToolKind = "write" if change == "add" else "edit"
        transcript.call(change_id, "file_change", kind, {"path": path, "change": change})
    return ids


def add_results(transcript: Transcript, ids: list[str], kind: str, item: dict[str, Any]) -> None:
    """What the item gave back; those of some tools are not told."""
    error, status = as_dict(item.get("error")), item.get("status")
    failed = bool(error) or status in ("failed", "declined")
    if kind == "command_execution":
        failed = failed or item.get("exit_code") != 0
        content = as_text(item.get("aggregated_output") or item.get("stdout"))
    elif kind == "file_change":
        content = as_text(item.get("stdout") or item.get("stderr") or status)
    elif kind == "mcp_tool_call":
        content = as_text(error.get("message"))
        content = content or content_text(as_dict(item.get("result")).get("content"))
    else:
        return
    for each in ids:
        transcript.result(each, "error" if failed else "success", content)
