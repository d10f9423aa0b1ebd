"""From the lines of `claude -p --output-format stream-json --verbose` to a turn. Pure.

The format is that of Claude Code 2.1; older and newer events are kept as unknown ones.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from skillup.engines.base import Progress
from skillup.engines.cli_runner import (
    ParsedTurn,
    Transcript,
    as_amount,
    as_count,
    as_dict,
    as_list,
    as_text,
    content_text,
    read_event,
)
from skillup.engines.failures import Failure, kind_of_status
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ErrorKind, ToolCall, Usage

# From a portable tool call to the one that Claude Code would have made: the way back.

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


# What Claude Code's `result` event and its stderr say went wrong.

_BY_SUBTYPE: dict[str, ErrorKind] = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget",
}

# `error` of the assistant line that comes before the result.
_BY_API_ERROR: dict[str, ErrorKind] = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "billing_error": "quota",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "model_not_found": "model_error",
    "invalid_request": "model_error",
    "max_output_tokens": "model_error",
}

# Texts of `result`, `errors` and stderr, where nothing else tells.
_BY_TEXT: tuple[tuple[str, ErrorKind], ...] = (
    ("No conversation found", "session_lost"),
    ("--resume requires a valid session", "session_lost"),
    ("is already in use", "session_mismatch"),
    ("Unable to connect to API", "network"),
    ("Connection error", "network"),
    ("Request timed out", "network"),
    ("Not logged in", "auth"),
    ("Invalid API key", "auth"),
    ("cannot be used with root", "engine_not_usable"),
    ("error: unknown option", "engine_not_usable"),
    ("error: option", "engine_not_usable"),
    ("error: unknown command", "engine_not_usable"),
    ("Error: Settings file not found", "engine_not_usable"),
    ("Error: Invalid MCP configuration", "engine_not_usable"),
)

# How texts about an allowance that is used up go on or begin: a subscription's limit for five hours
# or a week, an organisation's spending limit, prepaid credits. All come with the status 429 or 400,
# as passing trouble does.
_QUOTA = re.compile(
    r"^You['’]ve (?:hit|reached) your (?!fast limit)"
    r"|^You['’]re out of (?:usage credits|extra usage)"
    r"|^Your org is out of usage|^Your (?:group|seat|usage allocation)\b"
    r"|usage limit reached|credit balance is too low",
    re.IGNORECASE,
)

_LOCAL_ANSWERS = ("Unknown command:", "Unknown skill:", "Unknown slash command:")
_LOCAL_ANSWER_END = "isn't available in this environment."


def failure_of(result: dict[str, Any], api_error: str | None) -> Failure | None:
    """Whether the turn failed. `subtype` is "success" even then: `is_error` tells.

    A slash command that does not exist is answered by the CLI itself, as a success of no turns.
    """
    said = as_text(result.get("result"))
    said = said or "; ".join(as_text(error) for error in as_list(result.get("errors")))
    subtype = as_text(result.get("subtype"))
    if not result.get("is_error") and not subtype.startswith("error"):
        if said.startswith(_LOCAL_ANSWERS) and result.get("num_turns") == 0:
            return Failure("unsupported", f"{said}; the model was not asked")
        if said.endswith(_LOCAL_ANSWER_END) and result.get("num_turns") == 0:
            return Failure("unsupported", f"{said} The model was not asked")
        if not isinstance(result.get("result"), str):
            return Failure("protocol", "its `result` event holds no answer")
        return None
    said = said or f"it ended the turn with {subtype or 'an error'}"
    return Failure(_kind(result, subtype, api_error, said), said)


def _kind(result: dict[str, Any], subtype: str, api_error: str | None, said: str) -> ErrorKind:
    if subtype in _BY_SUBTYPE:
        return _BY_SUBTYPE[subtype]
    if _QUOTA.search(said):
        return "quota"
    status = result.get("api_error_status")
    if isinstance(status, int):
        return kind_of_status(status)
    by_text = kind_of_text(said)
    if by_text is not None:
        return by_text
    if api_error is not None:
        # Left: server_error and unknown, said of answers that make no sense.
        return _BY_API_ERROR.get(api_error, "model_error")
    return "crash"


def kind_of_text(text: str) -> ErrorKind | None:
    """The kind that a known message of the CLI means."""
    if _QUOTA.search(text):
        return "quota"
    return next((kind for part, kind in _BY_TEXT if part in text), None)


_KINDS: dict[str, ToolKind] = {
    "Bash": "shell",
    "BashOutput": "shell",
    "KillShell": "shell",
    "PowerShell": "shell",
    "Monitor": "shell",
    "Read": "read",
    "NotebookRead": "read",
    "Write": "write",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Grep": "search",
    "Glob": "search",
    "LS": "search",
    "WebFetch": "web",
    "WebSearch": "web",
    "Skill": "skill",
    "Task": "agent",
    "Agent": "agent",
}
_MCP_PREFIX = "mcp__"

# Events that tell nothing about the conversation.
_SILENT_TYPES = frozenset(
    {
        "stream_event",
        "control_response",
        "control_cancel_request",
        "keep_alive",
        "tool_progress",
        "tool_use_summary",
        "auth_status",
        "prompt_suggestion",
    }
)
_SILENT_SUBTYPES = frozenset(
    {
        "status",
        "thinking_tokens",
        "hook_started",
        "hook_progress",
        "hook_response",
        "task_started",
        "task_progress",
        "task_updated",
        "task_notification",
        "session_state_changed",
        "files_persisted",
        "post_turn_summary",
    }
)


class ClaudeEvents:
    """Feed it the lines of one process; :meth:`result` tells the turn."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        self._transcript = Transcript(progress)
        self._session_id: str | None = None
        self._model: str | None = None
        self._version: str | None = None
        self._last_message = ""
        self._api_error: str | None = None
        self._result: dict[str, Any] | None = None
        self.closed = False

    def feed(self, line: bytes) -> None:
        """Take the next line, without its newline. Never raises."""
        event = read_event(line)
        if event is None:
            return
        if isinstance(event, str):
            self._transcript.unknown_event(event)
            return
        kind = as_text(event.get("type"))
        if kind in ("assistant", "user", "result"):
            self.closed = kind == "result"
        if kind == "system":
            self._system(event)
        elif kind == "assistant":
            self._assistant(event)
        elif kind == "user":
            self._user(event)
        elif kind == "result":
            self._result = event
            self._session_id = self._session_id or as_text(event.get("session_id")) or None
        elif kind == "rate_limit_event":
            self._rate_limit(event)
        elif kind not in _SILENT_TYPES:
            self._transcript.unknown_event(event)

    def result(self) -> ParsedTurn:
        """The turn so far; ``finished`` only after the `result` event."""
        last = self._result or {}
        answer = last.get("result")
        return ParsedTurn(
            session_id=self._session_id,
            response=answer if isinstance(answer, str) and answer else self._last_message,
            items=self._transcript.items,
            usage=_usage(last),
            cost_usd=as_amount(last.get("total_cost_usd")),
            model=self._model,
            version=self._version,
            notices=self._transcript.notices,
            unknown_events=self._transcript.unknown,
            unread_lines=self._transcript.unread,
            finished=self._result is not None,
            failure=failure_of(last, self._api_error) if self._result is not None else None,
        )

    def _system(self, event: dict[str, Any]) -> None:
        subtype = as_text(event.get("subtype"))
        if subtype == "init":
            self._session_id = as_text(event.get("session_id")) or None
            self._model = as_text(event.get("model")) or None
            self._version = as_text(event.get("claude_code_version")) or None
            for server in map(as_dict, as_list(event.get("mcp_servers"))):
                if server.get("status") == "failed":
                    self._transcript.notice(f"MCP server {as_text(server.get('name'))} failed")
        elif subtype == "api_retry":
            status = event.get("error_status") or event.get("error")
            attempt = f"{as_text(event.get('attempt'))} of {as_text(event.get('max_retries'))}"
            self._transcript.notice(f"asked the model again ({attempt}): {as_text(status)}")
        elif subtype == "compact_boundary":
            self._transcript.notice("the conversation was compacted")
        elif subtype not in _SILENT_SUBTYPES:
            self._transcript.unknown_event(event)

    def _assistant(self, event: dict[str, Any]) -> None:
        message = as_dict(event.get("message"))
        agent = as_text(event.get("parent_tool_use_id")) or None
        if event.get("error"):
            self._api_error = as_text(event["error"])
        if message.get("model") == "<synthetic>":  # the CLI speaks, not the model
            self._transcript.notice(content_text(message.get("content")))
            return
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in map(as_dict, as_list(blocks)):
            self._block(block, agent)

    def _block(self, block: dict[str, Any], agent: str | None) -> None:
        kind = block.get("type")
        if kind == "text":
            text = as_text(block.get("text"))
            self._transcript.message(text, agent)
            if agent is None and text:
                self._last_message = text
        elif kind in ("thinking", "redacted_thinking"):
            self._transcript.reasoning(as_text(block.get("thinking")), agent)
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            self._transcript.call(*call_of(block), agent)
        elif as_text(kind).endswith("tool_result"):
            self._transcript.result(*result_of(block), agent)
        else:
            self._transcript.unknown_event(block)

    def _user(self, event: dict[str, Any]) -> None:
        """Tool results. Texts are the prompt again, or what the CLI adds by itself."""
        agent = as_text(event.get("parent_tool_use_id")) or None
        for block in map(as_dict, as_list(as_dict(event.get("message")).get("content"))):
            if block.get("type") == "tool_result":
                self._transcript.result(*result_of(block), agent)

    def _rate_limit(self, event: dict[str, Any]) -> None:
        info = as_dict(event.get("rate_limit_info"))
        if info.get("status") not in (None, "allowed"):
            self._transcript.notice(f"rate limit: {as_text(info.get('status'))}")


def call_of(block: dict[str, Any]) -> tuple[str, str, ToolKind, dict[str, Any]]:
    """A tool_use block's id, name as skillup shows it, kind and arguments."""
    name, kind = portable_name(as_text(block.get("name")))
    given = block.get("input")
    return (
        as_text(block.get("id")),
        name,
        kind,
        given if isinstance(given, dict) else {"input": given},
    )


def result_of(block: dict[str, Any]) -> tuple[str, Literal["success", "error"], str]:
    """A tool_result block's call id, status and content."""
    failed = block.get("is_error") is True
    content = content_text(block.get("content", block.get("output")))
    return as_text(block.get("tool_use_id")), "error" if failed else "success", content


def portable_name(name: str) -> tuple[str, ToolKind]:
    """The name as skillup shows it (MCP: `server::tool`), and its kind."""
    if name.startswith(_MCP_PREFIX):
        server, _, tool = name[len(_MCP_PREFIX) :].partition("__")
        return f"{server}::{tool}", "mcp"
    return name, _KINDS.get(name, "other")


def _usage(result: dict[str, Any]) -> Usage | None:
    """This process's tokens. Claude counts cached input apart; we count it in.

    `modelUsage` first: `usage` is 0 after the CLI had to fall back from a broken stream.
    """
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
    per_model = [as_dict(value) for value in as_dict(result.get("modelUsage")).values()]
    if not any(name in counts for counts in per_model for name in names):
        names = (
            *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
            "output_tokens",
        )
        per_model = [as_dict(result.get("usage"))]
    plain, cached, written, output = (
        _sum([as_count(counts.get(name)) for counts in per_model]) for name in names
    )
    if plain is None and output is None:
        return None
    return Usage(
        input_tokens=_sum([plain, cached, written]),
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=output,
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
