"""From the lines of `claude -p --output-format stream-json --verbose` to a turn. Pure.

The format is that of Claude Code 2.1; other events are kept as unknown ones.
"""

from __future__ import annotations

import re
from typing import Any

from skillup.engines.base import Progress
from skillup.engines.events import (
    EventParser,
    Status,
    Transcript,
    as_amount,
    as_count,
    as_dict,
    as_list,
    as_text,
    content_text,
    words,
)
from skillup.engines.failures import Failure, kind_of_status
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ErrorKind, Usage

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

# What the CLI answers by itself to a slash command, as a success of no turns.
_LOCAL_ANSWER = re.compile(
    r"Unknown (?:command|skill|slash command):|.*isn't available in this environment\.\Z", re.DOTALL
)


def failure_of(result: dict[str, Any], api_error: str | None) -> Failure | None:
    """Whether the turn failed. `subtype` is "success" even then: `is_error` tells."""
    said = as_text(result.get("result"))
    said = said or "; ".join(as_text(error) for error in as_list(result.get("errors")))
    subtype = as_text(result.get("subtype"))
    if not result.get("is_error") and not subtype.startswith("error"):
        if _LOCAL_ANSWER.match(said) and result.get("num_turns") == 0:
            return Failure("unsupported", f"{said.rstrip('.')}; the model was not asked")
        if not isinstance(result.get("result"), str):
            return Failure("protocol", "its `result` event holds no answer")
        return None
    said = said or f"it ended the turn with {subtype or 'an error'}"
    status = result.get("api_error_status")
    kind = _BY_SUBTYPE.get(subtype) or ("quota" if _QUOTA.search(said) else None)
    if kind is None and isinstance(status, int):
        kind = kind_of_status(status)
    kind = kind or kind_of_text(said)
    if kind is None:
        # Of API errors, server_error and unknown are left: of answers that make no sense.
        kind = "crash" if api_error is None else _BY_API_ERROR.get(api_error, "model_error")
    return Failure(kind, said)


def kind_of_text(text: str) -> ErrorKind | None:
    """The kind that a known message of the CLI means."""
    if _QUOTA.search(text):
        return "quota"
    return next((kind for part, kind in _BY_TEXT if part in text), None)


_TOOLS: dict[ToolKind, str] = {
    "shell": "Bash BashOutput KillShell PowerShell Monitor",
    "read": "Read NotebookRead",
    "write": "Write",
    "edit": "Edit MultiEdit NotebookEdit",
    "search": "Grep Glob LS",
    "web": "WebFetch WebSearch",
    "skill": "Skill",
    "agent": "Task Agent",
}
_KINDS = {name: kind for kind, names in _TOOLS.items() for name in names.split()}
_MCP_PREFIX = "mcp__"

# Events that tell nothing about the conversation.
_SILENT = words("""
    stream_event control_response control_cancel_request keep_alive tool_progress
    tool_use_summary auth_status prompt_suggestion
""")
_SILENT_SYSTEM = words("""
    status thinking_tokens hook_started hook_progress hook_response task_started task_progress
    task_updated task_notification session_state_changed files_persisted post_turn_summary
""")


class ClaudeEvents(EventParser):
    """Feed it the lines of one process."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        super().__init__(progress)
        self._api_error: str | None = None
        self._result: dict[str, Any] = {}

    @property
    def failure(self) -> Failure | None:
        """What the `result` event says went wrong."""
        return failure_of(self._result, self._api_error) if self.finished else None

    def take(self, event: dict[str, Any]) -> None:
        """Takes the next event."""
        kind = as_text(event.get("type"))
        if kind in ("assistant", "user", "result"):
            self.closed = kind == "result"
        if kind == "system":
            self._system(event)
        elif kind == "assistant":
            self._assistant(event)
        elif kind == "user":
            # Texts are the prompt again, or what the CLI adds by itself.
            agent = as_text(event.get("parent_tool_use_id")) or None
            for block in map(as_dict, as_list(as_dict(event.get("message")).get("content"))):
                if block.get("type") == "tool_result":
                    take_block(self.transcript, block, agent)
        elif kind == "result":
            self._result, self.finished = event, True
            self.session_id = self.session_id or as_text(event.get("session_id")) or None
            self.usage = _usage(event)
            self.cost_usd = as_amount(event.get("total_cost_usd"))
            self.response = as_text(event.get("result")) or self.response
        elif kind == "rate_limit_event":
            self.transcript.notice(rate_limit_notice(event))
        elif kind not in _SILENT:
            self.transcript.unknown(event)

    def _system(self, event: dict[str, Any]) -> None:
        subtype = as_text(event.get("subtype"))
        if subtype == "init":
            self.session_id = as_text(event.get("session_id")) or None
            self.model = as_text(event.get("model")) or None
            self.version = as_text(event.get("claude_code_version")) or None
            for server in map(as_dict, as_list(event.get("mcp_servers"))):
                if server.get("status") == "failed":
                    self.transcript.notice(f"MCP server {as_text(server.get('name'))} failed")
        elif text := system_notice(subtype, event):
            self.transcript.notice(text)
        elif subtype not in _SILENT_SYSTEM:
            self.transcript.unknown(event)

    def _assistant(self, event: dict[str, Any]) -> None:
        message = as_dict(event.get("message"))
        agent = as_text(event.get("parent_tool_use_id")) or None
        if event.get("error"):
            self._api_error = as_text(event["error"])
        content = message.get("content")
        if message.get("model") == "<synthetic>":  # the CLI speaks, not the model
            self.transcript.notice(content_text(content))
            return
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in map(as_dict, as_list(blocks)):
            said = take_block(self.transcript, block, agent)
            if said and agent is None:
                self.response = said


def take_block(transcript: Transcript, block: dict[str, Any], agent: str | None) -> str:
    """Adds a block of a message; what it says in words to the user."""
    kind = as_text(block.get("type"))
    if kind == "text":
        text = as_text(block.get("text"))
        transcript.message(text, agent)
        return text
    if kind in ("thinking", "redacted_thinking"):
        transcript.reasoning(as_text(block.get("thinking")), agent)
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        name, given = as_text(block.get("name")), block.get("input")
        arguments = given if isinstance(given, dict) else {"input": given}
        transcript.call(as_text(block.get("id")), *portable_name(name), arguments, agent)
    elif kind.endswith("tool_result"):
        status: Status = "error" if block.get("is_error") is True else "success"
        content = content_text(block.get("content", block.get("output")))
        transcript.result(as_text(block.get("tool_use_id")), status, content, agent)
    else:
        transcript.unknown(block)
    return ""


def system_notice(subtype: str, row: dict[str, Any]) -> str:
    """What a `system` row tells; "" if it tells nothing or is not known."""
    if subtype in ("compact_boundary", "microcompact_boundary"):
        return "the conversation was compacted"
    if subtype == "api_retry":
        status = as_text(row.get("error_status") or row.get("error"))
        attempt = f"{as_text(row.get('attempt'))} of {as_text(row.get('max_retries'))}"
        return f"asked the model again ({attempt}): {status}"
    return ""


def rate_limit_notice(event: dict[str, Any]) -> str:
    """What a `rate_limit_event` warns of; "" for nothing."""
    status = as_dict(event.get("rate_limit_info")).get("status")
    return "" if status in (None, "allowed") else f"rate limit: {as_text(status)}"


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
