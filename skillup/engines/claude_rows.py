"""The rows of Claude Code's session files and recordings that are no messages."""

from __future__ import annotations

from typing import Any

from skillup.engines.transcript import as_dict, as_text

# They tell nothing about the conversation: the state of the screen, of files, of hooks.
_SILENT = frozenset(
    [
        "agent-name",
        "agent-color",
        "agent-setting",
        "atis-latch",
        "attribution-snapshot",
        "auth_status",
        "bridge-session",
        "content-replacement",
        "control_cancel_request",
        "control_request",
        "control_response",
        "file-history-snapshot",
        "frame-link",
        "keep_alive",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "prompt_suggestion",
        "queue-operation",
        "relocated",
        "result",
        "speculation-accept",
        "started",
        "stream_event",
        "tag",
        "task-summary",
        "tool_progress",
        "tool_use_summary",
        "worktree-state",
    ]
)
_SILENT_SYSTEM = frozenset(
    [
        "agents_killed",
        "away_summary",
        "bridge_status",
        "files_persisted",
        "hook_progress",
        "hook_response",
        "hook_started",
        "memory_saved",
        "post_turn_summary",
        "scheduled_task_fire",
        "session_start",
        "session_state_changed",
        "status",
        "stop_hook_summary",
        "task_notification",
        "task_progress",
        "task_started",
        "task_updated",
        "thinking_tokens",
        "turn_duration",
    ]
)


def is_silent_row(kind: str) -> bool:
    """Whether rows of this type are known, and have nothing to say."""
    return kind in _SILENT


def is_silent_system_row(subtype: str) -> bool:
    """The same for `system` rows."""
    return subtype in _SILENT_SYSTEM


def system_text(subtype: str, row: dict[str, Any]) -> str:
    """What a `system` row tells; "" if it tells nothing or is not known."""
    content = as_text(row.get("content"))
    if subtype in ("compact_boundary", "microcompact_boundary"):
        return "the conversation was compacted"
    if subtype in ("api_error", "error"):
        error = row.get("error")
        inner = as_dict(as_dict(as_dict(error).get("error")).get("error")) or as_dict(error)
        message = as_text(inner.get("message")) or as_text(inner.get("status")) or content
        return f"API error: {message or as_text(error)}"
    if subtype == "api_retry":
        status = as_text(row.get("error_status") or row.get("error"))
        attempt = f"{as_text(row.get('attempt'))} of {as_text(row.get('max_retries'))}"
        return f"asked the model again ({attempt}): {status}"
    if subtype == "api_refusal":
        return f"refused: {as_text(row.get('apiRefusalExplanation')) or content}"
    if subtype == "model_refusal_fallback":
        return f"refused, another model took over: {content}".rstrip(": ")
    if subtype in ("informational", "local_command", "permission_retry"):
        return content or subtype
    return ""
