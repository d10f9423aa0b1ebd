"""From the lines of `codex exec --json` to a turn. Pure.

The format is that of Codex 0.169; other events and item types are kept as unknown ones. Usage is
not read here: `turn.completed` gives the thread's running total, see :mod:`.rollout`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
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
from skillup.engines.failures import Failure, kind_of_status
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ErrorKind

# Shell commands as Codex shows them, with the shell taken off.

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_SHELL_OPTIONS = frozenset({"-c", "-lc", "-lic", "-ic"})


def inner_command(command: str) -> str:
    """What was to be run: `/bin/bash -lc 'echo hi'` is `echo hi`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and PurePath(words[0]).name in _SHELLS and words[1] in _SHELL_OPTIONS:
        return words[2]
    return command


# What the texts of Codex mean: it reports failures in words only.

_STATUS = re.compile(r"^(?:exceeded retry limit, last status:|unexpected status) (\d{3})\b")

# Beginnings of the messages of `turn.failed`, in codex 0.169.
_BY_BEGINNING: tuple[tuple[str, ErrorKind], ...] = (
    ("Missing environment variable", "auth"),
    ("Your access token could not be refreshed", "auth"),
    ("Not logged in", "auth"),
    ("You've hit your usage limit", "quota"),
    ("You've reached your usage limit", "quota"),
    ("You hit your spend cap", "quota"),
    ("You hit the spend cap", "quota"),
    ("Your workspace is out of credits", "quota"),
    ("Quota exceeded", "quota"),
    ("Rate limit reached", "rate_limit"),
    ("Selected model is at capacity", "overloaded"),
    # The text for the status 500.
    ("We're currently experiencing high demand", "overloaded"),
    ("Connection failed", "network"),
    ("stream disconnected before completion", "network"),
    ("error sending request", "network"),
    ("timeout waiting for", "network"),
    ("request timed out", "network"),
)

# What stderr says where no event came.
_STDERR: tuple[tuple[str, ErrorKind], ...] = (
    ("no rollout found for thread id", "session_lost"),
    ("already has an active writer", "session_mismatch"),
    ("Cannot change this thread's model provider", "engine_not_usable"),
    ("Not inside a trusted directory", "engine_not_usable"),
    ("Error loading config.toml", "engine_not_usable"),
    ("Error: Unknown feature flag", "engine_not_usable"),
    ("error: unexpected argument", "engine_not_usable"),
    ("error: invalid value", "engine_not_usable"),
    ("error: the following required argument", "engine_not_usable"),
)


def failure_of_text(message: str) -> Failure:
    """The failure that a message of `turn.failed` tells; what is not known is the model's."""
    status = _STATUS.match(message)
    if status:
        return Failure(kind_of_status(int(status[1])), message)
    plain = message.replace("’", "'")  # codex 0.169 writes typographic ones
    for beginning, kind in _BY_BEGINNING:
        if plain.startswith(beginning):
            return Failure(kind, message)
    return Failure("model_error", message)


def failure_of_stderr(stderr: str) -> Failure | None:
    """The failure that stderr tells; None for its ordinary warnings."""
    for line in reversed(stderr.splitlines()):
        for part, kind in _STDERR:
            if part in line:
                return Failure(kind, line.strip())
    return None


_CHANGE_KINDS: dict[str, ToolKind] = {"add": "write", "update": "edit", "delete": "edit"}


class CodexEvents(EventParser):
    """Feed it the lines of one process. `workspace` makes the paths of changed files relative."""

    def __init__(self, workspace: PurePath, progress: Progress = lambda _: None) -> None:
        super().__init__(progress)
        self.thread_total: dict[str, Any] | None = None
        """The usage of the whole thread so far, as `turn.completed` tells it."""
        self.tool_ends: list[int] = []
        """For each tool that ended, in order, how many items there were then."""
        self._workspace = workspace
        self._called: set[str] = set()
        self._open_commands: dict[str, str] = {}
        self._failed: str | None = None
        self._last_error: str | None = None

    @property
    def open_commands(self) -> Collection[str]:
        """The commands that began and did not end."""
        return self._open_commands.values()

    @property
    def failure(self) -> Failure | None:
        """What `turn.failed` says, or an `error` with which the stream ends."""
        if self._failed is not None:
            return failure_of_text(self._failed)
        if not self.finished and self._last_error and not _is_retry(self._last_error):
            return failure_of_text(self._last_error)
        return None

    def take(self, event: dict[str, Any]) -> None:
        """Takes the next event."""
        kind = as_text(event.get("type"))
        if kind == "thread.started":
            self.session_id = as_text(event.get("thread_id")) or None
        elif kind == "turn.started":
            self.finished, self._failed = False, None
        elif kind == "turn.completed":
            self.finished = self._failed is None
            self.thread_total = as_dict(event.get("usage")) or None
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
        kind, item_id = item.get("type"), as_text(item.get("id"))
        text = as_text(item.get("text"))
        if kind == "agent_message":
            if done:
                self.response = text
                self.transcript.message(text)
        elif kind == "reasoning":
            if done:
                self.transcript.reasoning(text)
        elif kind == "error":  # a warning, in spite of its name
            if done:
                self.transcript.notice(as_text(item.get("message")))
        elif kind == "command_execution":
            self._command(item_id, item, done)
        elif kind == "file_change":
            self._file_change(item_id, item, done)
        elif kind == "mcp_tool_call":
            self._mcp(item_id, item, done)
        elif kind == "web_search":
            self._simple(item_id, item, done, "web_search", "web")
        elif kind == "collab_tool_call":
            self._simple(item_id, item, done, as_text(item.get("tool")) or "collab", "agent")
        elif kind == "todo_list":
            if done:
                self._simple(item_id, item, done, "todo_list", "other")
        else:
            self.transcript.unknown(event)

    def _command(self, item_id: str, item: dict[str, Any], done: bool) -> None:
        command = inner_command(as_text(item.get("command")))
        if self._first_sight(item_id):
            self.transcript.call(item_id, "command_execution", "shell", {"command": command})
            self._open_commands[item_id] = command
        if done:
            self._open_commands.pop(item_id, None)
            succeeded = item.get("exit_code") == 0 and item.get("status") != "failed"
            self._end(item_id, succeeded, as_text(item.get("aggregated_output")))

    def _file_change(self, item_id: str, item: dict[str, Any], done: bool) -> None:
        changes = [
            (relative_to(as_text(change.get("path")), self._workspace), as_text(change.get("kind")))
            for change in map(as_dict, as_list(item.get("changes")))
        ]
        ids = add_file_changes(self.transcript, item_id, changes, told=item_id in self._called)
        self._called.add(item_id)
        status = as_text(item.get("status"))
        if done:
            for change_id in ids:
                ok = status == "completed"
                self.transcript.result(change_id, "success" if ok else "error", status)
            self.tool_ends.append(len(self.transcript.items))

    def _mcp(self, item_id: str, item: dict[str, Any], done: bool) -> None:
        if self._first_sight(item_id):
            add_mcp_call(self.transcript, item_id, item)
        if done:
            failed, content = mcp_outcome(item)
            self._end(item_id, not failed, content)

    def _simple(
        self, item_id: str, item: dict[str, Any], done: bool, name: str, kind: ToolKind
    ) -> None:
        """Tools whose result the stream does not tell."""
        if self._first_sight(item_id):
            arguments = {key: value for key, value in item.items() if key not in ("id", "type")}
            self.transcript.call(item_id, name, kind, arguments)
        if done:
            self.tool_ends.append(len(self.transcript.items))

    def _first_sight(self, item_id: str) -> bool:
        """Whether the call has not been told yet: short ones may come without `item.started`."""
        known = item_id in self._called
        self._called.add(item_id)
        return not known

    def _end(self, item_id: str, succeeded: bool, content: str) -> None:
        self.transcript.result(item_id, "success" if succeeded else "error", content)
        self.tool_ends.append(len(self.transcript.items))


def add_file_changes(
    transcript: Transcript, call_id: str, changes: list[tuple[str, str]], *, told: bool = False
) -> list[str]:
    """A call for each path and its `add`, `update` or `delete`, unless `told`; the calls' ids."""
    ids = [call_id if len(changes) == 1 else f"{call_id}.{n + 1}" for n in range(len(changes))]
    for change_id, (path, change) in zip(ids, () if told else changes, strict=not told):
        arguments = {"path": path, "change": change}
        kind: ToolKind = "write" if change == "add" else "edit"
        transcript.call(change_id, "file_change", kind, arguments)
    return ids


def add_mcp_call(transcript: Transcript, call_id: str, item: dict[str, Any]) -> None:
    """The call of an MCP tool."""
    name = f"{as_text(item.get('server'))}::{as_text(item.get('tool'))}"
    given = item.get("arguments")
    arguments = {"input": given} if isinstance(given, list | str) else as_dict(given)
    transcript.call(call_id, name, "mcp", arguments)


def mcp_outcome(item: dict[str, Any]) -> tuple[bool, str]:
    """Whether the call of an MCP tool failed, and what it gave back."""
    error = as_dict(item.get("error"))
    failed = bool(error) or item.get("status") == "failed"
    content = as_text(error.get("message"))
    return failed, content or content_text(as_dict(item.get("result")).get("content"))


def relative_to(path: str, directory: PurePath | str | None) -> str:
    """`path` within the directory, if it is in there; else as it is."""
    given = PurePath(path)
    if directory is not None and given.is_relative_to(directory):
        return given.relative_to(directory).as_posix()
    return path


def _is_retry(message: str) -> bool:
    return message.startswith("Reconnecting...")
