"""From the lines of `claude -p --output-format stream-json --verbose` to a turn. Pure.

The format is that of Claude Code 2.1; older and newer events are kept as unknown ones.
"""

from __future__ import annotations

from typing import Any, Literal

from skillup.engines.base import Progress
from skillup.engines.claude_failures import failure_of
from skillup.engines.transcript import (
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
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import Usage

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
