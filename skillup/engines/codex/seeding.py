"""Threads that are made without asking a model: seeded with a history, or copied from another."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID, uuid5

from skillup.engines.created_sessions import SessionPlace, UnwritableError
from skillup.engines.events import as_dict, as_text
from skillup.engines.session_files import Rewriting, rows_of
from skillup.schema.record import HistoryItem, ToolCall

Row = dict[str, Any]


def fork_files(
    source: Path, parent: SessionPlace, child: SessionPlace
) -> Iterator[tuple[Path, Iterable[bytes]]]:
    """The file of a copy of the thread in `source`, and its lines. Raises UnwritableError."""
    problem = fork_problem(next(rows_of(source), {}), parent.session_id)
    if problem is not None:
        raise UnwritableError("unsupported", problem)
    # The paths of the skills in its home are in messages to the model, too.
    directories = {
        parent.workspace: child.workspace,
        parent.home: child.home,
        parent.engine_home: child.engine_home,
        parent.engine_home.resolve(): child.engine_home.resolve(),
    }
    # It has paths in URLs, and in messages to the model that look like XML.
    paths = {
        form(str(old)): form(str(new))
        for form in (quote, escape, str)
        for old, new in directories.items()
    }
    rewriting = Rewriting(paths, {parent.session_id: child.session_id})
    file = child.engine_home / source.relative_to(parent.engine_home)
    name = source.name.replace(parent.session_id, child.session_id)
    with source.open("rb") as lines:
        yield file.with_name(name), map(rewriting.line, lines)


def fork_problem(first: Mapping[str, Any], thread_id: str) -> str | None:
    """Why a rollout with this first row cannot be copied under another id; None if it can."""
    meta = as_dict(first.get("payload"))
    if first.get("type") != "session_meta" or meta.get("id") != thread_id:
        return "its file does not begin with what Codex writes there"
    if meta.get("history_mode") not in (None, "legacy", "paginated"):
        return f"its history is of the unknown form {meta['history_mode']!r}"
    if meta.get("history_base") or meta.get("forked_from_id"):
        return "it is itself a fork that Codex made, whose beginning is in another file"
    return None


# Calls of a history as Codex's model would have made them. Pure.

SHELL_TOOL = "exec_command"
PATCH_TOOL = "apply_patch"
# What portable kinds without a better form are called.
_NAMES = {"web": "web_search", "agent": "spawn_agent"}
_PATHS = ("path", "file_path", "filename", "file")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64
"""Characters of a tool's name, and of a call's id: OpenAI's API takes no longer ones."""


@dataclass(frozen=True, slots=True)
class CreatedCall:
    """A call in Codex's form."""

    type: Literal["function_call", "custom_tool_call"]
    name: str
    arguments: str  # JSON; of a custom tool, its input
    namespace: str | None = None  # Of an MCP tool: its server's

    @property
    def is_freeform(self) -> bool:
        """It is given a text, not arguments."""
        return self.type == "custom_tool_call"


def created_call(call: ToolCall) -> CreatedCall:
    """A call by its name; one without, as the tool that Codex has for its kind.

    `command_execution` and `file_change` are what our records call Codex's shell and patches.
    What has not the arguments of such a tool becomes a function call of the tool's name.
    """
    given, name, kind = dict(call.arguments), call.name, "" if call.name else call.kind
    if "::" in name:
        server, _, tool = name.partition("::")
        return _function(tool or "tool", given, f"mcp__{server or 'unknown'}")
    if name in (PATCH_TOOL, "file_change") or kind in ("write", "edit"):
        patch = _text(given, "input", "patch") or _patch(kind, given)
        if patch:
            return CreatedCall("custom_tool_call", PATCH_TOOL, patch)
        return _function(kind or PATCH_TOOL, given)
    if name in (SHELL_TOOL, "command_execution") or kind == "shell":
        if "cmd" not in given and "command" in given:
            command = given.pop("command")
            is_list = isinstance(command, list)
            text = shlex.join(map(as_text, command)) if is_list else as_text(command)
            given = {"cmd": text, **given}
        return _function(SHELL_TOOL, given)
    # Codex reads, searches and uses skills by the shell.
    path, pattern = _text(given, *_PATHS), _text(given, "pattern", "query")
    skill = _text(given, "skill", "name")
    words: list[str] = []
    if kind == "read" and path:
        words = ["cat", path]
    elif kind == "search" and pattern:
        words = ["rg", "-n", "-e", pattern, path or "."]
    elif kind == "skill" and skill:
        words = ["cat", f".agents/skills/{skill}/SKILL.md"]
    if words:
        return _function(SHELL_TOOL, {"cmd": shlex.join(words)})
    return _function(name or _NAMES.get(kind, kind), given)


def _patch(kind: str, given: Mapping[str, Any]) -> str | None:
    """A patch that writes the file whole, or replaces one text in it by another.

    Of a record's `file_change`: the file and what happened to it, not its lines.
    """
    path, content = _text(given, *_PATHS), _text(given, "content", "text")
    old = _text(given, "old_string", "old_text", "old")
    new = _text(given, "new_string", "new_text", "new")
    change, lines = _text(given, "change"), ""
    if kind == "write" and content is not None:
        change, lines = "add", _marked("+", content)
    elif kind == "edit" and (old or new):
        change, lines = "update", "@@\n" + _marked("-", old or "") + _marked("+", new or "")
    elif kind:
        return None
    if not path or change not in ("add", "update", "delete"):
        return None
    return f"*** Begin Patch\n*** {change.title()} File: {path}\n{lines}*** End Patch\n"


def _marked(mark: str, text: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


def _function(name: str, arguments: Mapping[str, Any], namespace: str | None = None) -> CreatedCall:
    name, space = (_NOT_IN_NAMES.sub("_", one)[:_LONGEST] for one in (name, namespace or ""))
    text = json.dumps(arguments, ensure_ascii=False)
    return CreatedCall("function_call", name, text, space or None)


def _text(given: Mapping[str, Any], *names: str) -> str | None:
    return next((given[name] for name in names if isinstance(given.get(name), str)), None)


# A conversation that never ran, as the rows of a Codex rollout. Pure.

_TOKEN_NAMES = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"),
    *("reasoning_output_tokens", "total_tokens"),
)
_NO_TOKENS = {
    "total_token_usage": dict.fromkeys(_TOKEN_NAMES, 0),
    "last_token_usage": dict.fromkeys(_TOKEN_NAMES, 0),
    "model_context_window": None,
}
_EXIT_CODES = {"success": 0, "error": 1}


def rollout_rows(
    history: Sequence[HistoryItem],
    *,
    thread_id: str,
    timestamp: str,
    cwd: str,
    version: str,
    provider: str | None = None,
) -> Iterator[Row]:
    """The rows of a rollout that holds `history`, in order.

    `timestamp` is ISO 8601, UTC; `version` the CLI's; `provider` the name of the model provider
    that every turn will use: Codex refuses to resume a thread with another one. Nothing names a
    model: with one, the first turn of another model would begin with a compaction.
    """
    meta: Row = {
        "id": thread_id,
        "timestamp": timestamp,
        "cwd": cwd,
        "originator": "skillup",
        "cli_version": version,
        "source": "exec",
        "history_mode": "paginated",
    }
    if provider is not None:
        meta["model_provider"] = provider
    rows = _Rows(thread_id)
    # The past has cost nothing here: a turn's tokens are the running total less the one before.
    nothing_yet = {"type": "token_count", "info": _NO_TOKENS, "rate_limits": None}
    payloads = [("session_meta", meta), ("event_msg", nothing_yet)]
    payloads += [row for item in history for row in rows.of(item)]
    for ordinal, (kind, payload) in enumerate(payloads):
        yield {"timestamp": timestamp, "ordinal": ordinal, "type": kind, "payload": payload}


class _Rows:
    """Goes through a history; remembers its calls for their results."""

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._turn = 0
        self._items = 0
        self._calls: dict[str, tuple[str, CreatedCall]] = {}
        self._ids: set[str] = set()

    def of(self, item: HistoryItem) -> Iterator[tuple[str, Row]]:
        """The types and payloads of the rows for one message."""
        if item.role == "user":
            self._turn += 1
            yield "response_item", _message("user", "input_text", item.content)
            text = {"type": "text", "text": item.content, "text_elements": []}
            yield "event_msg", self._completed("UserMessage", text)
        elif item.role == "assistant":
            if item.content:
                text = {"type": "Text", "text": item.content}
                yield "event_msg", self._completed("AgentMessage", text)
                yield "response_item", _message("assistant", "output_text", item.content)
            for call in item.tool_calls:
                yield "response_item", self._call(call)
        elif item.tool_result is not None:
            result = item.tool_result
            call_id, created = self._calls[result.call_id]
            output, code = result.content, _EXIT_CODES.get(result.status)
            # Codex's own tools put an exit code above what they gave back.
            if code is not None and (created.is_freeform or created.name == SHELL_TOOL):
                header = "Exit code:" if created.is_freeform else "Process exited with code"
                output = f"{header} {code}\nOutput:\n{output}"
            row = {"type": f"{created.type}_output", "call_id": call_id, "output": output}
            yield "response_item", row

    def _completed(self, kind: str, text: Row) -> Row:
        self._items += 1
        item = {"type": kind, "id": self._uuid(f"item {self._items}"), "content": [text]}
        return {
            "type": "item_completed",
            "thread_id": self._thread_id,
            "turn_id": self._uuid(f"turn {self._turn}"),
            "item": item,
            "started_at_ms": 0,
            "completed_at_ms": 0,
        }

    def _uuid(self, what: str) -> str:
        return str(uuid5(UUID(self._thread_id), what))

    def _call(self, call: ToolCall) -> Row:
        """Its id is short enough and unlike all before: the same one may be there in every turn."""
        created = created_call(call)
        call_id, number = _short(call.id), 1
        while call_id in self._ids:
            number += 1
            call_id = _short(f"{call.id}-{number}")
        self._ids.add(call_id)
        self._calls[call.id] = call_id, created
        row = {"type": created.type, "name": created.name, "call_id": call_id}
        if created.namespace is not None:
            row["namespace"] = created.namespace
        return {**row, "input" if created.is_freeform else "arguments": created.arguments}


def _message(role: str, kind: str, text: str) -> Row:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _short(call_id: str) -> str:
    if len(call_id) <= _LONGEST:
        return call_id
    return f"call_{sha256(call_id.encode(errors='replace')).hexdigest()[:32]}"
