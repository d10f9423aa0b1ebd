"""The agent's "model": a session file, which reply of the script applies, its placeholders.

A session file has one JSON object a line, in the order in which it happened:

{"type": "session", "session_id", "agent_version", "workspace"}     the first
{"type": "user", "turn", "text"}                                    begins a turn
{"type": "remember", "values": {name: text}}
{"type": "answer", "turn", "text"}                                  ends it, if it was answered

Entries with ``"seeded": true`` took place before the session and are not counted as turns.
"""

from __future__ import annotations

import json
import os
import re

from skillup.engines.scripted_agent import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than a turn takes
    from collections.abc import Collection
    from typing import Any

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# Only these forms are touched: other texts in double braces are somebody else's templates.
# `skillup/schema/scripted.py` lists them.
_FORMS = re.compile(
    r"\{\{(user|system|skills|output|turn|match\.\w+|remember\.[A-Za-z_][\w.-]*"
    r"|(?:turns|history)\.\d+\.(?:user|answer))\}\}"
)


class AgentError(Exception):
    """Ends a turn without an answer: ``{kind, message}`` of the result event."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class AgentSession:
    """What one session file says, and the way to add to it.

    `exchanges` and `history` (what was seeded) are lists of ``[user, answer or None]``.
    """

    def __init__(self, home: str, session_id: str) -> None:
        if not _ID.fullmatch(session_id):  # it becomes a file name: nothing may lead elsewhere
            raise AgentError("session_lost", f"{session_id!r} cannot be a session's id")
        self.id = session_id
        self.path = os.path.join(home, "sessions", f"{session_id}.jsonl")
        self.exchanges: list[list[Any]] = []
        self.history: list[list[Any]] = []
        self.remembered: dict[str, str] = {}

    def create(self, mode: str = "x") -> AgentSession:
        """Begins the file; ``session_mismatch`` if there is one of that name."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        header = {"type": "session", "session_id": self.id, "agent_version": VERSION}
        try:
            with open(self.path, mode, encoding="ascii") as file:
                file.write(json.dumps({**header, "workspace": os.getcwd()}) + "\n")
        except FileExistsError:
            raise AgentError("session_mismatch", f"session {self.id} exists already") from None
        return self

    def load(self) -> AgentSession:
        """Reads the file; ``session_lost`` if it is missing or damaged."""
        try:
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    self._take(json.loads(line))
        except FileNotFoundError:
            raise AgentError("session_lost", f"there is no session {self.id}") from None
        except (OSError, ValueError, LookupError) as error:
            raise AgentError("session_lost", f"session {self.id} cannot be read: {error}") from None
        return self

    def add(self, kind: str, **fields: Any) -> None:
        """Appends one entry."""
        entry = {"type": kind, **fields}
        with open(self.path, "a", encoding="ascii") as file:
            file.write(json.dumps(entry) + "\n")
            if kind == "answer":
                file.flush()
                os.fsync(file.fileno())
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        exchanges = self.history if entry.get("seeded") else self.exchanges
        if entry["type"] == "user":
            exchanges.append([entry["text"], None])
        elif entry["type"] == "answer" and exchanges:  # a history may begin with the agent
            exchanges[-1][1] = entry["text"]
        elif entry["type"] == "remember":
            self.remembered.update(entry["values"])


def attempt() -> int:
    """Which attempt of its trial this is, from 1."""
    value = os.environ.get("SKILLUP_SCRIPTED_ATTEMPT", "1")
    return int(value) if value.isdecimal() else 1


def drawn(probability: float, turn: int, what: str) -> bool:
    """Chance that can be repeated: the same seed, attempt and turn always draw the same."""
    if probability >= 1:
        return True
    import hashlib

    seed = os.environ.get("SKILLUP_SCRIPTED_SEED", "0")
    digest = hashlib.sha256(f"{seed}/{attempt()}/{turn}/{what}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < probability


def choose_reply(
    replies: list[dict[str, Any]], message: str, turn: int, skills: Collection[str]
) -> tuple[dict[str, Any], re.Match[str] | None] | None:
    """The first reply that applies, and what its `when` found; None if none applies."""
    for index, reply in enumerate(replies):
        if reply.get("turn") not in (None, turn) or reply.get("needs_skill") not in (None, *skills):
            continue
        pattern = reply.get("when")
        match = re.search(pattern, message, re.IGNORECASE) if pattern else None
        if (match or not pattern) and drawn(reply.get("probability", 1.0), turn, f"reply {index}"):
            return reply, match
    return None


def placeholders(
    session: AgentSession, match: re.Match[str] | None, simple: dict[str, str]
) -> dict[str, str]:
    """The values of a turn's placeholders when it begins, by what stands in the braces."""
    values = dict(simple)
    if match is not None:
        values |= {f"match.{name}": text or "" for name, text in match.groupdict().items()}
        values |= {f"match.{n}": match[n] or "" for n in range(match.re.groups + 1)}
    values |= {f"remember.{name}": text for name, text in session.remembered.items()}
    for where, exchanges in (("turns", session.exchanges), ("history", session.history)):
        for number, (user, answer) in enumerate(exchanges, start=1):
            values[f"{where}.{number}.user"] = user
            if answer is not None:
                values[f"{where}.{number}.answer"] = answer
    return values


def filled(text: str, values: dict[str, str]) -> str:
    """Raises AgentError `script` if a placeholder in `text` has no value."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            why = "no such turn, group, output or memory in this session"
            raise AgentError("script", f"{found[0]} has no value: {why}")
        return values[found[1]]

    return _FORMS.sub(value, text)
