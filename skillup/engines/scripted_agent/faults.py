"""Misbehaviour on request: what real agents do on a bad day, so that it can be tested."""

from __future__ import annotations

import os
import signal
import sys
import time

from skillup.engines.scripted_agent.errors import AgentError
from skillup.engines.scripted_agent.lots import attempt, drawn
from skillup.engines.scripted_agent.sessions import AgentSession
from skillup.engines.scripted_agent.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MESSAGES = {
    "auth": "401: the key was refused",
    "rate_limit": "429: too many requests",
    "quota": "429: the account's allowance is used up",
    "overloaded": "529: the model is overloaded",
    "model_error": "500: the model failed",
    "max_turns": "the limit of steps was reached",
}


class Faults:
    """The faults of one turn; none if `request` is None, not drawn, or meant for other attempts."""

    def __init__(self, request: dict[str, Any] | None, turn: int) -> None:
        wanted = request or {}
        times = wanted.get("times")
        happens = drawn(wanted.get("probability", 1.0), turn, "fault")
        self._faults = wanted if happens and (times is None or attempt() <= times) else {}

    def session(self, session: AgentSession) -> AgentSession:
        """The session that will be used instead of the right one."""
        if self._faults.get("forget"):
            session.forget()
        return session.replacement() if self._faults.get("new_session") else session

    def at_start(self, stream: Stream) -> None:
        """Faults that show before any step."""
        if self._faults.get("ignore_signals"):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self._faults.get("orphan"):
            _leave_a_child()
        if self._faults.get("flood_bytes"):
            stream.flood(self._faults["flood_bytes"])
        stream.garbled = bool(self._faults.get("garbage"))

    def before_answer(self) -> None:
        """Faults in place of the answer: may raise AgentError, end the process, never return."""
        while self._faults.get("hang"):
            time.sleep(3600)
        kind = self._faults.get("error")
        if kind:
            raise AgentError(kind, self._faults.get("message") or _MESSAGES[kind])
        code = self._faults.get("exit_code")
        if code is not None and code < 0:
            os.kill(os.getpid(), -code)
        if code is not None or self._faults.get("no_result"):
            sys.exit(code or 0)


def _leave_a_child() -> None:
    """In a session of its own, with our stdout open: whoever reads that sees no end of file."""
    import subprocess

    subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL, start_new_session=True)
