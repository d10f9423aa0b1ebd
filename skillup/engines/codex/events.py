"""What Codex says: the lines of `codex exec --json`, and the rows of its rollouts. Pure.

The events are those of Codex 0.169, the rows of rollouts those of 0.145 to 0.169; others are kept
as unknown ones. Usage is not read from events: `turn.completed` gives the thread's running total.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path, PurePath
from typing import Any

from skillup.engines.base import Progress
from skillup.engines.events import (
    EventParser,
    Failure,
    Status,
    Transcript,
    as_dict,
    as_list,
    as_text,
    content_text,
    counts,
    kind_of_status,
    kind_of_text,
    kinds_by_text,
    words,
)
from skillup.engines.session_files import SessionReader
from skillup.schema.checks import ToolKind

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_SHELL_OPTIONS = frozenset({"-c", "-lc", "-lic", "-ic"})
_STATUS = re.compile(r"^(?:exceeded retry limit, last status:|unexpected status) (\d{3})\b")

# Of the messages of `turn.failed`: Codex reports failures in words only. (Of the texts about an
# overload the second is that for the status 500.)
_BY_TEXT = kinds_by_text(Path(__file__).with_name("messages.txt"))

# What stderr says where no event came.
BY_STDERR = kinds_by_text(Path(__file__).with_name("stderr.txt"))


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
        self._last_error: str | None = None

    @property
    def failure(self) -> Failure | None:
        """What `turn.failed` says, or an `error` with which the stream ends."""
        last = self._last_error
        if self._failure or self.finished or not last or last.startswith("Reconnecting..."):
            return self._failure
        return failure_of_text(last)

    def take(self, event: dict[str, Any]) -> None:
        kind = as_text(event.get("type"))
        if kind == "thread.started":
            self.session_id = as_text(event.get("thread_id")) or None
        elif kind == "turn.started":
            self.finished, self._failure = False, None
        elif kind == "turn.completed":
            self.finished = self._failure is None
        elif kind == "turn.failed":
            why = as_text(as_dict(event.get("error")).get("message")) or "no reason given"
            self.finished, self._failure = False, failure_of_text(why)
            if why in self.notices:
                self.notices.remove(why)
        elif kind == "error":
            self._last_error = as_text(event.get("message"))
            self.notice(self._last_error)
        elif kind.startswith("item."):
            self._item(event, as_dict(event.get("item")), done=kind == "item.completed")
        else:
            self.unknown(event)
        self.closed = self.finished or self._failure is not None

    def _item(self, event: dict[str, Any], item: dict[str, Any], *, done: bool) -> None:
        kind, item_id = as_text(item.get("type")), as_text(item.get("id"))
        # An error is a warning here, in spite of its name.
        said = {"agent_message": self.message, "reasoning": self.reasoning, "error": self.notice}
        if kind in said:
            text = as_text(item.get("message" if kind == "error" else "text"))
            if done:
                said[kind](text)
                self.response = text if kind == "agent_message" else self.response
        elif kind not in TOOLS:
            self.unknown(event)
        elif done or kind != "todo_list":
            # Short calls may come without `item.started`.
            if item_id not in self._calls:
                self._calls[item_id] = add_call(self, item_id, kind, item, self._workspace)
            if done:
                add_results(self, self._calls[item_id], kind, item)


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
    transcript: Transcript, call_id: str, changes: list[tuple[str, str]], cwd: PurePath | str | None
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


USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}
_CALLS = {
    "function_call": "",
    "custom_tool_call": "",
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
}
OUTPUTS = ("function_call_output", "custom_tool_call_output")
_SHELL_TOOLS = words("exec_command shell shell_command local_shell unified_exec")
_AGENT_TOOLS = "spawn_agent send_input send_message resume_agent wait wait_agent close_agent"
_KINDS: dict[str, ToolKind] = {
    "write_stdin": "shell",
    "view_image": "read",
    "web_search": "web",
    **dict.fromkeys(_AGENT_TOOLS.split(), "agent"),
}
_ROLLOUT = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+)\.jsonl")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_ROWS = ("session_meta", "response_item", "event_msg", "turn_context")
_SILENT_ITEMS = words("""
    message ghost_snapshot additional_tools compaction other tool_search_call tool_search_output
    image_generation_call
""")
_NOTICES = {
    "error": "error",
    "stream_error": "error",
    "warning": "warning",
    "entered_review_mode": "a review began",
    "exited_review_mode": "the review ended",
    "turn_aborted": "the turn was aborted",
}


class CodexTranscript(SessionReader):
    """The rows of one rollout, where most things stand twice: for the model, and for people.

    Messages are taken from the events, which know what the user said and what Codex added; thoughts
    and calls from the items, and of the events only what no item has: tools that were called from
    within another one.
    """

    engine = "codex"
    label = "Codex"
    folder = "sessions"

    def __init__(self) -> None:
        super().__init__()
        self._total: dict[str, int] = {}  # Of the tokens so far
        self._calls: dict[str, list[str]] = {}  # Ids of a call's entries: a patch has one a file

    @staticmethod
    def id_in(file: Path, directory: Path) -> str | None:  # noqa: ARG004
        found = _ROLLOUT.fullmatch(file.name)
        return found[1] if found else None

    @staticmethod
    def matches(row: dict[str, Any]) -> bool:
        return row.get("type") in _ROWS and isinstance(row.get("payload"), dict)

    def tokens(self, row: dict[str, Any]) -> tuple[str, dict[str, int]] | None:
        payload = as_dict(row.get("payload"))
        info = as_dict(payload.get("info")) if payload.get("type") == "token_count" else {}
        total, before = counts(as_dict(info.get("total_token_usage")), USAGE_NAMES), self._total
        if not total:
            return None
        self._total = total
        own = {name: count - before.get(name, 0) for name, count in total.items()}
        # After a compaction, or in a thread of another process, it may begin again.
        return "", total if min(own.values()) < 0 else own

    def feed(self, row: dict[str, Any]) -> None:
        self.time(row.get("timestamp"))
        kind, payload = as_text(row.get("type")), as_dict(row.get("payload"))
        inner, summary = as_text(payload.get("type")), self.summary
        if kind == "session_meta":
            if summary.session_id is not None:
                return  # a fork has its parent's, too, among the lines taken over
            summary.session_id = as_text(payload.get("id")) or None
            summary.cwd = as_text(payload.get("cwd")) or summary.cwd
            summary.version = as_text(payload.get("cli_version")) or None
        elif kind == "turn_context":
            summary.model = as_text(payload.get("model")) or summary.model
            summary.cwd = summary.cwd or as_text(payload.get("cwd")) or None
        elif kind == "response_item":
            self._item(inner, payload)
        elif kind == "event_msg":
            self._event(inner, payload)
        elif kind == "compacted":
            self.notice("the conversation was compacted")

    def _item(self, kind: str, item: dict[str, Any]) -> None:
        if kind == "reasoning":
            parts = as_list(item.get("summary")) + as_list(item.get("content"))
            self.reasoning("\n\n".join(content_text([part]) for part in parts))
        elif kind == "agent_message":  # between agents
            author = as_text(item.get("author")) or "another agent"
            self.message(content_text(item.get("content")), author)
        elif kind in _CALLS:
            call_id = as_text(item.get("call_id") or item.get("id"))
            name = _CALLS[kind] or as_text(item.get("name"))
            self._calls[call_id] = self._call(call_id, name, item)
        elif kind in OUTPUTS:
            call_id = as_text(item.get("call_id"))
            status, content = output_of(item)
            for each in self._calls.get(call_id, [call_id]):
                self.result(each, status, content)
        elif kind not in _SILENT_ITEMS:
            self.unknown(item)

    def _call(self, call_id: str, name: str, item: dict[str, Any]) -> list[str]:
        given = item.get("arguments", item.get("input", item.get("action")))
        try:
            read = json.loads(given, parse_constant=str) if isinstance(given, str) else given
        except (ValueError, RecursionError):
            read = given
        arguments = read if isinstance(read, dict) else {} if read is None else {"input": read}
        if name == "apply_patch":
            text = as_text(arguments.get("input", arguments.get("patch", given)))
            changes = [(path, change.lower()) for change, path in _PATCHED.findall(text)]
            cwd = self.summary.cwd
            return add_file_changes(self, call_id, changes or [("", "update")], cwd)
        namespace = as_text(item.get("namespace"))
        if name in _SHELL_TOOLS:
            command = arguments.get("cmd", arguments.get("command", arguments.get("input")))
            add_command(self, call_id, command)
        elif namespace.startswith("mcp__"):
            server = namespace.removeprefix("mcp__").rstrip("_")
            self.call(call_id, f"{server}::{name}", "mcp", arguments)
        else:
            self.call(call_id, name, _KINDS.get(name, "other"), arguments)
        return [call_id]

    def _event(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "user_message":  # of a legacy thread
            self.user(as_text(event.get("message")))
        elif kind == "agent_message":
            self.message(as_text(event.get("message")))
        elif kind == "item_completed":
            self._completed(as_dict(event.get("item")))
        elif kind in _NOTICES:
            more = event.get("message") or event.get("reason") or event.get("user_facing_hint")
            self.notice(f"{_NOTICES[kind]}: {as_text(more)}".rstrip(": "))
        elif kind == "thread_name_updated":
            self.summary.title = as_text(event.get("thread_name")) or None
        elif kind == "task_complete" and event.get("error"):
            self.notice(f"error: {as_text(as_dict(event['error']).get('message'))}")

    def _completed(self, item: dict[str, Any]) -> None:
        kind, item_id = as_text(item.get("type")), as_text(item.get("id"))
        if kind == "UserMessage":
            self.user(content_text(item.get("content")))
        elif kind == "AgentMessage":
            self.message(content_text(item.get("content")))
        elif kind == "Plan":
            self.notice(f"plan: {as_text(item.get('text'))}")
        elif item_id not in self._calls and kind not in ("Reasoning", "ContextCompaction"):
            tool = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
            if tool in TOOLS:
                ids = add_call(self, item_id, tool, item, self.summary.cwd)
                add_results(self, ids, tool, item)
            else:
                self.unknown(item)


def output_of(item: dict[str, Any]) -> tuple[Status, str]:
    """What a call gave back: the exit code, if there is one, and the text after the header."""
    output = item.get("output")
    if isinstance(output, dict):
        succeeded = output.get("success")
        known: Status = "unknown" if succeeded is None else "success" if succeeded else "error"
        return known, content_text(output.get("content"))
    text = content_text(output)
    header, found, rest = text.partition("\nOutput:\n")
    code = _EXIT_CODE.search(header) if found else None
    status: Status = "unknown" if code is None else "error" if int(code[1]) else "success"
    return status, rest if found else text
