"""From the lines of recordings of `codex exec --json` to entries. Pure."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from skillup.engines.codex_events import CodexEvents
from skillup.engines.session_entries import EntryLog
from skillup.engines.transcript import as_dict, as_text


class CodexExecTranscript:
    """Feed it the events of one recording. They do not tell the user's messages."""

    def __init__(self, log: EntryLog) -> None:
        self._log = log
        self._events = _events()
        self._unknown = 0

    def feed(self, event: dict[str, Any]) -> None:
        """Take the next event. Never raises."""
        kind = event.get("type")
        self._log.time(event.get("timestamp"))
        if kind == "turn.started":
            self._log.open_turn()
        elif kind == "thread.started":
            # Another process, which numbers its items from 0 again.
            self._events, self._unknown = _events(), 0
            self._log.summary.session_id = as_text(event.get("thread_id")) or None
        elif kind == "turn.failed":
            reason = as_text(as_dict(event.get("error")).get("message")) or "no reason given"
            self._log.notice(f"the turn failed: {reason}")
        elif kind == "error":
            self._log.notice(as_text(event.get("message")))
        elif kind != "turn.completed":
            self._item(event)

    def _item(self, event: dict[str, Any]) -> None:
        self._events.feed(json.dumps(event).encode())
        turn = self._events.result()
        if turn.unknown_events > self._unknown:
            self._unknown = turn.unknown_events
            turn.items.clear()
            self._log.unknown(event)
        for item in turn.items:
            if item.tool_call is not None:
                call = item.tool_call
                self._log.call(call.id, call.name, call.kind, call.arguments)
            elif item.tool_result is not None:
                result = item.tool_result
                self._log.result(result.call_id, result.status, result.content)
            elif item.type == "message":
                self._log.assistant(item.text or "")
            elif item.type == "reasoning":
                self._log.reasoning(item.text or "")
            else:
                self._log.notice(item.text or "")
        # It is the parser's own list: a long recording is not kept in memory.
        turn.items.clear()


def _events() -> CodexEvents:
    # Paths stay as they are: a recording does not tell its directory.
    return CodexEvents(PurePath())
