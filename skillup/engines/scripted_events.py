"""What the scripted agent prints; the format is documented in the agent's own package."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from skillup.engines.base import Progress
from skillup.engines.failures import Failure
from skillup.engines.transcript import ParsedTurn, Transcript, as_dict, as_text, read_event
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import ErrorKind, Usage

_TOOL_KINDS: dict[str, ToolKind] = {
    "shell": "shell",
    "write_file": "write",
    "read_file": "read",
    "skill": "skill",
}
_STATUSES: dict[str, Literal["success", "error", "unknown"]] = {
    "success": "success",
    "error": "error",
}
_ERROR_KINDS: dict[str, ErrorKind] = {
    "auth": "auth",
    "rate_limit": "rate_limit",
    "quota": "quota",
    "overloaded": "overloaded",
    "model_error": "model_error",
    "max_turns": "max_turns",
    "session_lost": "session_lost",
    "session_exists": "session_mismatch",
    "script": "model_error",
}


class ScriptedEvents:
    """An :class:`~skillup.engines.turns.EventParser` for one turn."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        self.script_fault: str | None = None
        """What is wrong with the script, if that is why there is no answer."""
        self._turn = ParsedTurn()
        self._transcript = Transcript(progress)

    @property
    def closed(self) -> bool:
        """Whether its `result` has come."""
        return self._turn.finished

    def feed(self, line: bytes) -> None:
        """Take the next line, without its newline."""
        event = read_event(line)
        if event is None:
            return
        if isinstance(event, str) or not self._take(event):
            self._transcript.unknown_event(event)

    def result(self) -> ParsedTurn:
        """What the lines so far came to."""
        self._turn.items = self._transcript.items
        self._turn.notices = self._transcript.notices
        self._turn.unknown_events = self._transcript.unknown
        self._turn.unread_lines = self._transcript.unread
        return self._turn

    def _take(self, event: dict[str, Any]) -> bool:
        """False if the event is none that we know."""
        kind = event.get("type")
        if kind == "session_started":
            self._turn.session_id = as_text(event.get("session_id")) or None
            self._turn.version = as_text(event.get("agent_version")) or None
            self._turn.model = as_text(event.get("model")) or None
        elif kind == "message":
            self._transcript.message(as_text(event.get("text")))
        elif kind == "tool_call":
            name = as_text(event.get("name"))
            tool_kind = _TOOL_KINDS.get(name, "other")
            arguments = as_dict(event.get("input"))
            self._transcript.call(as_text(event.get("id")), name, tool_kind, arguments)
        elif kind == "tool_result":
            status = _STATUSES.get(as_text(event.get("status")), "unknown")
            self._transcript.result(as_text(event.get("id")), status, as_text(event.get("output")))
        elif kind == "usage":
            return self._take_usage(event)
        elif kind == "result":
            self._take_result(event)
        else:
            return False
        return True

    def _take_usage(self, event: dict[str, Any]) -> bool:
        counts = {name: value for name, value in event.items() if name != "type"}
        try:
            self._turn.usage = Usage.model_validate(counts)
        except ValidationError:
            return False
        return True

    def _take_result(self, event: dict[str, Any]) -> None:
        self._turn.finished = True
        self._turn.session_id = as_text(event.get("session_id")) or self._turn.session_id
        self._turn.response = as_text(event.get("answer"))
        if event.get("is_error"):
            error = as_dict(event.get("error"))
            kind = as_text(error.get("kind"))
            said = as_text(error.get("message")) or "it reported an error without a message"
            self.script_fault = said if kind == "script" else None
            self._turn.failure = Failure(_ERROR_KINDS.get(kind, "model_error"), said)
