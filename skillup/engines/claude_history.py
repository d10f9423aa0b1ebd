"""A session file of Claude Code that holds a conversation which never ran.

The lines are those that claude 2.1 itself writes for messages: one block of content a line, each
line naming the one before it. It resumes such a session as if it had held it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from skillup.engines.claude_projects import project_folder
from skillup.engines.claude_session import is_user_message
from skillup.engines.claude_tools import api_id, own_call
from skillup.schema.record import HistoryItem, ToolCall, ToolResult

# No model said it. Without any name claude hangs; the name is not sent.
MODEL = "seeded-history"
OPENING = "(The conversation begins with the assistant.)"
CLOSING = "(The history ends here, before an answer.)"
_NO_OUTPUT = "(no output)"


@dataclass(slots=True)
class Session:
    """The lines of one session, as they are added."""

    session_id: str
    workspace: Path
    version: str
    now: datetime
    """In UTC; the time of the last line, so that the session is one that was just held."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _taken_ids: set[str] = field(default_factory=set)
    _latest_ids: dict[str, str] = field(default_factory=dict)
    """Where a call's id comes again, the results that follow are of the later call."""
    _answers: int = 0

    def add(self, item: HistoryItem) -> None:
        """The lines of one message; none for one that says nothing."""
        if item.role == "user":
            if item.content.strip():
                self.user(item.content)
        elif item.role == "assistant":
            blocks = list(self._blocks_of(item))
            if blocks:
                self.assistant(blocks)
        elif item.tool_result is not None:
            self.user([self._result(item.tool_result)])

    def user(self, content: str | list[dict[str, Any]]) -> None:
        """A line of the user's, or with a tool's result."""
        self._row("user", {"role": "user", "content": content})

    def assistant(self, blocks: Sequence[dict[str, Any]]) -> None:
        """One answer: its lines have one message id, or claude would send the calls scrambled."""
        self._answers += 1
        for block in blocks:
            message = {
                "id": f"msg_{uuid5(UUID(self.session_id), f'answer {self._answers}').hex}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {
                    "input_tokens": 0,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                    "output_tokens": 0,
                },
            }
            self._row("assistant", message)

    def lines(self) -> Iterator[bytes]:
        """What goes into the file; the lines are a second apart."""
        parent: str | None = None
        for number, row in enumerate(self.rows):
            uuid = str(uuid5(UUID(self.session_id), f"line {number}"))
            time = self.now - timedelta(seconds=len(self.rows) - 1 - number)
            links = {"parentUuid": parent, "uuid": uuid, "timestamp": _timestamp(time)}
            yield _json({**links, **row}) + b"\n"
            parent = uuid

    def _row(self, kind: str, message: dict[str, Any]) -> None:
        self.rows.append(
            {
                "isSidechain": False,
                "userType": "external",
                "cwd": str(self.workspace),
                "sessionId": self.session_id,
                "version": self.version,
                "type": kind,
                "message": message,
            }
        )

    def _blocks_of(self, item: HistoryItem) -> Iterator[dict[str, Any]]:
        if item.content.strip():
            yield {"type": "text", "text": item.content}
        for call in item.tool_calls:
            name, arguments = own_call(call)
            yield {"type": "tool_use", "id": self._new_id(call), "name": name, "input": arguments}

    def _new_id(self, call: ToolCall) -> str:
        """The id under which the call is written; no two calls may share one."""
        wanted = free = api_id(call.id)
        number = 1
        while free in self._taken_ids:
            number += 1
            free = f"{wanted}_{number}"
        self._taken_ids.add(free)
        self._latest_ids[call.id] = free
        return free

    def _result(self, result: ToolResult) -> dict[str, Any]:
        call_id = self._latest_ids.get(result.call_id, api_id(result.call_id))
        block = {"type": "tool_result", "tool_use_id": call_id, "content": result.content}
        if result.status == "error":
            # The API takes no failure without words.
            return {**block, "content": result.content or _NO_OUTPUT, "is_error": True}
        return block


def history_session(
    history: Sequence[HistoryItem], session_id: str, workspace: Path, version: str, now: datetime
) -> Session:
    """The session that holds `history`, with what claude needs at its two ends.

    `now` is in UTC. Conversations begin with the user, and end with an answer: to one that ends
    with a tool's result claude would add words of its own, the user's too.
    """
    session = Session(session_id, workspace, version, now)
    for item in history:
        session.add(item)
    if session.rows and not is_user_message(session.rows[0]):
        past, session.rows = session.rows, []
        session.user(OPENING)
        session.rows += past
        session.notices.append(f"before the history, which does not begin with the user: {OPENING}")
    if session.rows and session.rows[-1]["type"] == "user":
        session.assistant([{"type": "text", "text": CLOSING}])
        session.notices.append(f"behind the history, which does not end with an answer: {CLOSING}")
    return session


def write_session(session: Session, engine_home: Path) -> Path:
    """Writes it where claude looks for it. Raises OSError; FileExistsError if the id is taken."""
    folder = project_folder(engine_home, session.workspace)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session.session_id}.jsonl"
    # As claude makes it: for its owner only.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(session.lines())
    return path


def now() -> datetime:
    """In UTC, to the millisecond that the files tell."""
    return datetime.now(UTC)


def _timestamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def _json(row: dict[str, Any]) -> bytes:
    """In ASCII: what is no valid Unicode in a dataset is then still valid JSON."""
    try:
        text = json.dumps(row, separators=(",", ":"), default=str, allow_nan=False)
    except ValueError:  # a number that JSON does not have becomes a word
        row = json.loads(json.dumps(row, default=str), parse_constant=str)
        text = json.dumps(row, separators=(",", ":"))
    return text.encode("ascii")
