"""From the lines of `codex exec --json` to a turn. Pure.

The format is that of Codex 0.169; other events and item types are kept as unknown ones. Usage is
not read here: `turn.completed` gives the thread's running total, see :mod:`.codex_session`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from pathlib import PurePath
from typing import Any

from skillup.engines.base import Progress
from skillup.engines.cli_runner import (
    ParsedTurn,
    Transcript,
    as_dict,
    as_list,
    as_text,
    content_text,
    read_event,
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


class CodexEvents:
    """Feed it the lines of one process; :meth:`result` tells the turn.

    `workspace` makes the paths of changed files relative.
    """

    def __init__(
        self,
        workspace: PurePath,
        progress: Progress = lambda _: None,
    ) -> None:
        self._workspace = workspace
        self._transcript = Transcript(progress)
        self._thread_id: str | None = None
        self._response = ""
        self._called: set[str] = set()
        self._open_commands: dict[str, str] = {}
        self._tool_ends: list[int] = []
        self._total: dict[str, Any] | None = None
        self._completed = False
        self._failed: str | None = None
        self._last_error: str | None = None

    @property
    def closed(self) -> bool:
        """Whether the turn has been completed or has failed, and no other has begun."""
        return self._completed or self._failed is not None

    @property
    def thread_total(self) -> dict[str, Any] | None:
        """The usage of the whole thread so far, as `turn.completed` tells it."""
        return self._total

    @property
    def tool_ends(self) -> list[int]:
        """For each tool that ended, in order, how many items there were then."""
        return self._tool_ends

    @property
    def open_commands(self) -> Collection[str]:
        """The commands that began and did not end."""
        return self._open_commands.values()

    def feed(self, line: bytes) -> None:
        """Take the next line, without its newline. Never raises."""
        event = read_event(line)
        if event is None:
            return
        if isinstance(event, str):
            self._transcript.unknown_event(event)
            return
        kind = event.get("type")
        if kind == "thread.started":
            self._thread_id = as_text(event.get("thread_id")) or None
        elif kind == "turn.started":
            self._completed, self._failed = False, None
        elif kind == "turn.completed":
            self._completed = True
            self._total = as_dict(event.get("usage")) or None
        elif kind == "turn.failed":
            self._failed = as_text(as_dict(event.get("error")).get("message")) or "no reason given"
        elif kind == "error":
            self._last_error = as_text(event.get("message"))
            self._transcript.notice(self._last_error)
        elif kind in ("item.started", "item.updated", "item.completed"):
            item = as_dict(event.get("item"))
            if not self._item(item, done=kind == "item.completed"):
                self._transcript.unknown_event(event)
        else:
            self._transcript.unknown_event(event)

    def result(self) -> ParsedTurn:
        """The turn so far; ``finished`` only after `turn.completed`."""
        return ParsedTurn(
            session_id=self._thread_id,
            response=self._response,
            items=self._transcript.items,
            notices=[note for note in self._transcript.notices if note != self._failed],
            unknown_events=self._transcript.unknown,
            unread_lines=self._transcript.unread,
            finished=self._completed and self._failed is None,
            failure=self._failure(),
        )

    def _failure(self) -> Failure | None:
        if self._failed is not None:
            return failure_of_text(self._failed)
        if not self._completed and self._last_error and not _is_retry(self._last_error):
            return failure_of_text(self._last_error)
        return None

    def _item(self, item: dict[str, Any], *, done: bool) -> bool:
        """Takes an item; False if its type is not known."""
        kind, item_id = item.get("type"), as_text(item.get("id"))
        if kind == "agent_message":
            if done:
                self._response = as_text(item.get("text"))
                self._transcript.message(self._response)
        elif kind == "reasoning":
            if done:
                self._transcript.reasoning(as_text(item.get("text")))
        elif kind == "error":  # a warning, in spite of its name
            if done:
                self._transcript.notice(as_text(item.get("message")))
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
            return False
        return True

    def _command(self, item_id: str, item: dict[str, Any], done: bool) -> None:
        command = inner_command(as_text(item.get("command")))
        if self._first_sight(item_id):
            name = "command_execution"
            self._transcript.call(item_id, name, "shell", {"command": command})
            self._open_commands[item_id] = command
        if not done:
            return
        self._open_commands.pop(item_id, None)
        succeeded = item.get("exit_code") == 0 and item.get("status") != "failed"
        output = as_text(item.get("aggregated_output"))
        self._transcript.result(item_id, "success" if succeeded else "error", output)
        self._tool_ended()

    def _file_change(self, item_id: str, item: dict[str, Any], done: bool) -> None:
        changes = [as_dict(change) for change in as_list(item.get("changes"))]
        single = len(changes) == 1
        ids = [item_id if single else f"{item_id}.{n}" for n in range(1, len(changes) + 1)]
        if self._first_sight(item_id):
            for change_id, change in zip(ids, changes, strict=True):
                what = as_text(change.get("kind"))
                arguments = {"path": self._relative(as_text(change.get("path"))), "change": what}
                kind = _CHANGE_KINDS.get(what, "edit")
                self._transcript.call(change_id, "file_change", kind, arguments)
        if done:
            status = as_text(item.get("status"))
            for change_id in ids:
                ok = status == "completed"
                self._transcript.result(change_id, "success" if ok else "error", status)
            self._tool_ended()

    def _mcp(self, item_id: str, item: dict[str, Any], done: bool) -> None:
        if self._first_sight(item_id):
            name = f"{as_text(item.get('server'))}::{as_text(item.get('tool'))}"
            arguments = item.get("arguments")
            arguments = {"input": arguments} if isinstance(arguments, list | str) else arguments
            self._transcript.call(item_id, name, "mcp", as_dict(arguments))
        if done:
            error = as_dict(item.get("error"))
            failed = bool(error) or item.get("status") == "failed"
            content = as_text(error.get("message")) if error else ""
            content = content or content_text(as_dict(item.get("result")).get("content"))
            self._transcript.result(item_id, "error" if failed else "success", content)
            self._tool_ended()

    def _simple(
        self, item_id: str, item: dict[str, Any], done: bool, name: str, kind: ToolKind
    ) -> None:
        """Tools whose result the stream does not tell."""
        if self._first_sight(item_id):
            arguments = {key: value for key, value in item.items() if key not in ("id", "type")}
            self._transcript.call(item_id, name, kind, arguments)
        if done:
            self._tool_ended()

    def _first_sight(self, item_id: str) -> bool:
        """Whether the call has not been told yet: short ones may come without `item.started`."""
        if item_id in self._called:
            return False
        self._called.add(item_id)
        return True

    def _tool_ended(self) -> None:
        self._tool_ends.append(len(self._transcript.items))

    def _relative(self, path: str) -> str:
        given = PurePath(path)
        if given.is_relative_to(self._workspace):
            return given.relative_to(self._workspace).as_posix()
        return path


def _is_retry(message: str) -> bool:
    return message.startswith("Reconnecting...")
