"""Conversations that never ran, as the trial layer hands them to an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from skillup.schema.checks import ToolKind
from skillup.schema.record import HistoryItem, ToolCall, ToolResult

Status = Literal["success", "error", "unknown"]


def user(text: str) -> HistoryItem:
    return HistoryItem(role="user", content=text)


def assistant(text: str = "", *calls: ToolCall) -> HistoryItem:
    return HistoryItem(role="assistant", content=text, tool_calls=list(calls))


def call(
    call_id: str, kind: ToolKind = "other", name: str = "", /, **arguments: object
) -> ToolCall:
    """A call; without a name it is of the portable kind."""
    return ToolCall(id=call_id, name=name, kind=kind, arguments=arguments)


def result(call_id: str, content: str = "", status: Status = "success") -> HistoryItem:
    given = ToolResult(call_id=call_id, status=status, content=content)
    return HistoryItem(role="tool", content=content, tool_result=given)


SOUP: Sequence[HistoryItem] = (
    user("What soup do I like?"),
    assistant(
        "I look.",
        call("call_1", "shell", command="cat likes.txt"),
        call("call_2", "read", path="dislikes.txt"),
    ),
    result("call_2", "no such file", "error"),
    result("call_1", "lentil soup"),
    assistant("", call("call_3", "mcp", "kitchen::stock", soup="lentil")),
    result("call_3", "two tins"),
    assistant("Lentil soup; there are two tins."),
    user("Remember: the codeword is walrus."),
    assistant("Noted."),
)
"""With parallel calls whose results come in another order, one of them failed, and an MCP call."""
