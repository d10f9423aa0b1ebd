"""Session files: one JSON object a line, in the order in which it happened.

{"type": "session", "session_id", "agent_version", "workspace"}     the first line; a copy of
                                                     another session has "forked_from", too
{"type": "user", "turn", "text"}                                    begins a turn
{"type": "message" | "tool_call" | "tool_result", ...}              as in the events
{"type": "remember", "values": {name: text}}
{"type": "answer", "turn", "text"}                                  ends it, if it was answered

Entries with ``"seeded": true`` took place before the session: their exchanges are its history, and
are not counted as turns.
"""

from __future__ import annotations

import json
import os
import re

from skillup.engines.scripted_agent import VERSION
from skillup.engines.scripted_agent.errors import AgentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SessionExchange:
    """A message and the answer to it; None if the turn ended without one."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.answer: str | None = None


class AgentSession:
    """What one session file says, and the way to add to it."""

    def __init__(self, home: str, session_id: str) -> None:
        self.id = session_id
        self.exchanges: list[SessionExchange] = []
        self.history: list[SessionExchange] = []
        """What was said before the session began."""
        self.remembered: dict[str, str] = {}
        self._home = home
        self._path = os.path.join(home, "sessions", f"{session_id}.jsonl")

    @classmethod
    def start(cls, home: str, session_id: str) -> AgentSession:
        """A new session. Raises AgentError `session_exists` if there is one of that name."""
        session = cls(home, _checked(session_id))
        os.makedirs(os.path.dirname(session._path), exist_ok=True)
        try:
            with open(session._path, "x", encoding="ascii") as file:
                file.write(session._header())
        except FileExistsError:
            raise AgentError("session_exists", f"session {session_id} exists already") from None
        return session

    @classmethod
    def resume(cls, home: str, session_id: str) -> AgentSession:
        """An earlier session. Raises AgentError `session_lost` if it is missing or damaged."""
        session = cls(home, _checked(session_id))
        try:
            with open(session._path, encoding="utf-8") as file:
                for line in file:
                    session._take(json.loads(line))
        except FileNotFoundError:
            raise AgentError("session_lost", f"there is no session {session_id}") from None
        except (OSError, ValueError, LookupError) as error:
            raise AgentError(
                "session_lost", f"session {session_id} cannot be read: {error}"
            ) from None
        return session

    @property
    def next_turn(self) -> int:
        """The number of the turn that the next message begins, from 1."""
        return len(self.exchanges) + 1

    def add(self, kind: str, **fields: Any) -> None:
        """Appends one entry."""
        entry = {"type": kind, **fields}
        with open(self._path, "a", encoding="ascii") as file:
            file.write(json.dumps(entry) + "\n")
        self._take(entry)

    def sync(self) -> None:
        """Returns when the disk has it."""
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def forget(self) -> None:
        """A fault on request: the file begins anew."""
        self.exchanges = []
        self.history = []
        self.remembered = {}
        with open(self._path, "w", encoding="ascii") as file:
            file.write(self._header())

    def replacement(self) -> AgentSession:
        """A fault on request: an empty session of another name."""
        import uuid

        return AgentSession.start(self._home, str(uuid.uuid4()))

    def _header(self) -> str:
        header = {"type": "session", "session_id": self.id, "agent_version": VERSION}
        return json.dumps({**header, "workspace": os.getcwd()}) + "\n"

    def _take(self, entry: dict[str, Any]) -> None:
        kind = entry["type"]
        exchanges = self.history if entry.get("seeded") else self.exchanges
        if kind == "user":
            exchanges.append(SessionExchange(entry["text"]))
        elif kind == "answer":
            exchanges[-1].answer = entry["text"]
        elif kind == "remember":
            self.remembered.update(entry["values"])


def _checked(session_id: str) -> str:
    """The id becomes a file name: nothing in it may lead elsewhere."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", session_id):
        raise AgentError("session_lost", f"{session_id!r} cannot be a session's id")
    return session_id
