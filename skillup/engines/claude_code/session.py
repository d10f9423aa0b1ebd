"""Claude Code's session files: `projects/<slug of the working directory>/<session id>.jsonl`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from skillup.engines.created_sessions import (
    UnwritableError,
    api_name,
    mcp_name,
    own_arguments,
)
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import HistoryItem, ToolCall

_LONGEST_SLUG = 200


def is_user_message(entry: dict[str, Any]) -> bool:
    """Whether a line is a message that somebody sent, not a tool result or the CLI's own text."""
    flags = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
    if entry.get("type") != "user" or any(entry.get(flag) for flag in flags):
        return False
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict)]
        content = next((text for text in texts if isinstance(text, str) and text), None)
    return isinstance(content, str) and not content.startswith("[Request interrupted")


def project_folder(engine_home: Path, workspace: Path) -> Path:
    """Where Claude Code looks for sessions held in `workspace`, a real path; it need not exist.

    Its name: whatever is no ASCII letter or digit becomes a dash, an emoji two (it is two units of
    UTF-16). Raises UnwritableError for a long one, which Claude Code would cut.
    """
    path = str(workspace)
    slug = re.sub("[^a-zA-Z0-9]", lambda found: "-" * (1 + (found[0] > "\uffff")), path)
    if len(slug) > _LONGEST_SLUG:
        what = f"the workspace's path is longer than {_LONGEST_SLUG} characters"
        raise UnwritableError("setup", f"{what}: {path}")
    return engine_home / "projects" / slug


# A session file that holds a conversation which never ran.

# No model wrote it. Without any name claude hangs; the name is not sent.
MODEL = "seeded-history"
OPENING = "(The conversation begins with the assistant.)"
CLOSING = "(The history ends here, before an answer.)"


def history_session(
    history: Sequence[HistoryItem], session_id: str, workspace: Path, version: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a session that holds `history`, and what claude needs at its two ends.

    Conversations begin with the user, and end with an answer: to one that ends with a tool's result
    claude would add words of its own, the user's too. Raises UnwritableError.
    """
    base = UUID(session_id)
    messages = [
        message
        for number, item in enumerate(history, start=1)
        for message in _messages(item, f"msg_{uuid5(base, f'answer {number}').hex}")
    ]
    notices: list[str] = []
    if not messages:
        raise UnwritableError("setup", "it holds no message to begin with")
    if not is_user_message({"type": messages[0]["role"], "message": messages[0]}):
        messages.insert(0, {"role": "user", "content": OPENING})
        notices.append(f"before the history, which does not begin with the user: {OPENING}")
    if messages[-1]["role"] == "user":
        messages.append(_answer({"type": "text", "text": CLOSING}, f"msg_{base.hex}"))
        notices.append(f"behind the history, which does not end with an answer: {CLOSING}")
    # A second apart, the last one now.
    now, parent = datetime.now(UTC), None
    rows: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        time = now - timedelta(seconds=len(messages) - 1 - number)
        row = {
            "parentUuid": parent,
            "uuid": str(uuid5(base, f"line {number}")),
            "timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "cwd": str(workspace),
            "sessionId": session_id,
            "version": version,
            "type": message["role"],
            "message": message,
        }
        rows.append(row)
        parent = row["uuid"]
    return rows, notices


def _messages(item: HistoryItem, answer_id: str) -> Iterator[dict[str, Any]]:
    """One for each block; none for a message that is empty."""
    if item.tool_result is not None:
        result = item.tool_result
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": result.content,
        }
        if result.status == "error":  # the API takes no failure without words
            block |= {"content": result.content or "(no output)", "is_error": True}
        yield {"role": "user", "content": [block]}
    elif item.role == "user" and item.content.strip():
        yield {"role": "user", "content": item.content}
    elif item.role == "assistant":
        if item.content.strip():
            yield _answer({"type": "text", "text": item.content}, answer_id)
        for call in item.tool_calls:
            name, given = own_call(call)
            use = {"type": "tool_use", "id": call.id, "name": name, "input": given}
            yield _answer(use, answer_id)


def _answer(block: Mapping[str, Any], answer_id: str) -> dict[str, Any]:
    """Those of one answer have one id, or claude would send the calls scrambled."""
    return {"id": answer_id, "role": "assistant", "model": MODEL, "content": [block]}


# Claude's tool of each kind, and its names for arguments that other engines and cases call so.
_PATH = {"path": "file_path", "filename": "file_path"}
_TOOLS: Mapping[ToolKind, tuple[str, Mapping[str, str]]] = {
    "shell": ("Bash", {"cmd": "command", "script": "command"}),
    "read": ("Read", _PATH),
    "write": ("Write", {**_PATH, "text": "content", "file_text": "content"}),
    "edit": ("Edit", {**_PATH, "old": "old_string", "new": "new_string"}),
    "search": ("Grep", {"query": "pattern", "regex": "pattern"}),
    "web": ("WebFetch", {"uri": "url", "q": "query"}),
    "skill": ("Skill", {"name": "skill", "command": "skill"}),
    "agent": ("Agent", {}),
    # Nothing says which one: names that the model's API takes, and that no tool has.
    "mcp": ("mcp__unknown__tool", {}),
    "other": ("other", {}),
}


def own_call(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """The tool's name and its input, as claude has them.

    A call with a name keeps it, and its arguments; MCP's `server::tool` becomes
    `mcp__server__tool`. Without a name it is claude's tool of the call's kind.
    """
    if call.name:
        mcp = mcp_name(call.name)
        return api_name(f"mcp__{mcp[0]}__{mcp[1]}" if mcp else call.name), dict(call.arguments)
    name, names = _TOOLS[call.kind]
    arguments = own_arguments(call.arguments, names)
    if name == "WebFetch" and "url" not in arguments and "query" in arguments:
        name = "WebSearch"
    command = arguments.get("command")
    if name == "Bash" and isinstance(command, list):
        arguments["command"] = shlex.join(map(str, command))
    return name, arguments
