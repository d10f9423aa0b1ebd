"""The agent's "model": a session file, which reply of the script applies, its placeholders.

A session file has one JSON object a line, in the order in which it happened:

{"type": "session", "session_id", "agent_version", "workspace"}     the first
{"type": "user", "turn", "text"}                                    begins a turn
{"type": "message" | "tool_call" | "tool_result", ...}              as in the events
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
    r"\{\{(?:(user|system|skills|output|turn)"
    r"|match\.(\w+)|remember\.([A-Za-z_][\w.-]*)|(turns|history)\.(\d+)\.(user|answer))\}\}"
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
        """Begins the file; ``session_exists`` if there is one of that name."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        header = {"type": "session", "session_id": self.id, "agent_version": VERSION}
        try:
            with open(self.path, mode, encoding="ascii") as file:
                file.write(json.dumps({**header, "workspace": os.getcwd()}) + "\n")
        except FileExistsError:
            raise AgentError("session_exists", f"session {self.id} exists already") from None
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


class Placeholders:
    """Values of one turn's placeholders; `simple` gets a new ``output`` while the turn goes on."""

    def __init__(
        self, session: AgentSession, match: re.Match[str] | None, simple: dict[str, str]
    ) -> None:
        self.simple = simple
        self._session = session
        self._match = match
        # The present message will join the session; {{turns.N}} means those before it.
        self._earlier = list(session.exchanges)

    def fill(self, text: str) -> str:
        """Raises AgentError `script` if something in `text` has no value here."""
        return _FORMS.sub(self._value, text) if "{{" in text else text

    def _value(self, found: re.Match[str]) -> str:
        simple, group, remembered, where, number, part = found.groups()
        value: str | None = None
        if simple:
            value, why = self.simple.get(simple), "no step before it has an output"
        elif group and self._match is None:
            why = "the reply has no `when`"
        elif group and self._match is not None:
            why = f"`when` has no group {group}"
            key = int(group) if group.isdecimal() else group
            known = self._match.re
            if key in known.groupindex or key in range(known.groups + 1):
                value = self._match[key] or ""
        elif remembered:
            value = self._session.remembered.get(remembered)
            why = "nothing of that name was remembered in this session"
        else:
            exchanges = self._earlier if where == "turns" else self._session.history
            if 1 <= int(number) <= len(exchanges):
                value, why = exchanges[int(number) - 1][part == "answer"], "it was not answered"
            else:
                what = "earlier turns" if where == "turns" else "messages of a history"
                why = f"this session holds {len(exchanges)} {what}"
        if value is None:
            raise AgentError("script", f"{found.group()} has no value: {why}")
        return value
