"""`codex app-server`: JSON-RPC lines of a process that holds a thread, read as those of `exec`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from skillup.engines.base import TrialContext, TurnRequest
from skillup.engines.codex.events import BY_STDERR, CodexEvents
from skillup.engines.events import (
    Failure,
    as_dict,
    as_list,
    as_text,
    content_text,
    kind_of_text,
    words,
)
from skillup.engines.questions import answered, of_questions, reply_to_form, texts_of

_THREAD_REQUEST = 2
_CLIENT = {"name": "skillup", "title": "skillup", "version": "1"}
_WARNINGS = words("warning guardianWarning")  # `exec` does not show the others
_SILENT_ITEMS = words("""
    userMessage hookPrompt contextCompaction plan enteredReviewMode exitedReviewMode sleep
""")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TIMES = words("startedAtMs completedAtMs durationMs")
# What the CLI asks; with `approvalPolicy: never` it seldom does.
_APPROVALS = words("item/commandExecution/requestApproval item/fileChange/requestApproval")


class AppServerEvents(CodexEvents):
    """Feed it the lines of one turn; `thread` is how a thread is started or resumed, `key` what the
    process logs in with, kept in its memory (None: it knows itself), `before`: the turn before.
    """

    def __init__(
        self,
        turn: TurnRequest,
        trial: TrialContext,
        thread: Mapping[str, Any],
        key: str | None,
        before: AppServerEvents | None,
    ) -> None:
        super().__init__(trial.workspace, trial.progress)
        self._turn, self._permission = turn, trial.profile.permission
        self._ids: dict[str, str] = {}
        self._thread: str | None = None
        self._opening: dict[str, Any] = {}
        self.number = _THREAD_REQUEST
        if before is not None and before.session_id is not None:
            self._thread, self.number = before.session_id, before.number
            self._begin_turn()
            return
        self._send(id=1, method="initialize", params={"clientInfo": _CLIENT})
        self._send(method="initialized")
        self._opening = {name: value for name, value in thread.items() if value is not None}
        if key is None:
            self._open_thread()
        else:  # a thread that is opened before it has taken effect may be refused
            params = {"type": "apiKey", "apiKey": key}
            self._send(id="login", method="account/login/start", params=params)

    def _send(self, **message: Any) -> None:
        self.outgoing += json.dumps(message).encode() + b"\n"

    def _open_thread(self) -> None:
        given, self._opening = self._opening, {}
        method = "thread/resume" if "threadId" in given else "thread/start"
        self._send(id=_THREAD_REQUEST, method=method, params=given)

    def _begin_turn(self) -> None:
        self.number += 1
        given = [{"type": "text", "text": self._turn.prompt}]
        params = {"threadId": self._thread, "input": given}
        self._send(id=self.number, method="turn/start", params=params)

    def take(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), as_dict(event.get("params"))
        if method is None and "id" in event:
            self._take_response(event)
        elif "id" in event:
            self._answer(event["id"], as_text(method), params)
        elif params.get("threadId") in (None, self._thread):  # not of a sub-agent
            self._take_notification(as_text(method), params)

    def _take_response(self, response: dict[str, Any]) -> None:
        number, error = response["id"], as_dict(response.get("error"))
        if error:
            text = as_text(error.get("message")) or "a request was refused without a reason"
            self._failure = Failure(kind_of_text(text, BY_STDERR) or "crash", text)
            self.closed = True
        elif number == _THREAD_REQUEST:
            thread = as_dict(as_dict(response.get("result")).get("thread"))
            self._thread = as_text(thread.get("id"))
            super().take({"type": "thread.started", "thread_id": self._thread})
            self._begin_turn()

    def _answer(self, request: Any, method: str, params: dict[str, Any]) -> None:
        decision = "accept" if self._permission == "full" else "decline"
        if method in _APPROVALS:
            self._send(id=request, result={"decision": decision})
        elif "codex_approval_kind" in as_dict(params.get("_meta")):  # of a call of an MCP tool
            self._send(id=request, result={"action": decision, "content": None})
        elif method == "mcpServer/elicitation/request":
            self._send(id=request, result=reply_to_form(self, params, self._turn.answers))
        elif method == "item/tool/requestUserInput":
            asked = of_questions(params.get("questions"), "id")
            content = answered(self, asked, self._turn.answers)
            told = {key: {"answers": texts_of(value)} for key, value in (content or {}).items()}
            self._send(id=request, result={"answers": told})
        else:
            error = {"code": -32601, "message": "there is nobody to ask"}
            self._send(id=request, error=error)

    def _take_notification(self, method: str, params: dict[str, Any]) -> None:
        turn = as_dict(params.get("turn"))
        if method == "account/updated" and self._opening:
            self._open_thread()
        elif method == "turn/started":
            self.session_id = self._thread
            super().take({"type": "turn.started"})
        elif method == "turn/completed" and turn.get("status") == "completed":
            super().take({"type": "turn.completed"})
        elif method == "turn/completed":
            message = _message(turn) or f"the turn is {as_text(turn.get('status'))}"
            super().take({"type": "turn.failed", "error": {"message": message}})
        elif method == "error":
            super().take({"type": "error", "message": _message(params)})
        elif method in _WARNINGS:
            text = as_text(params.get("message"))
            item = {"type": "error", "id": self._item_id(method + text), "message": text}
            super().take({"type": "item.completed", "item": item})
        elif method in ("item/started", "item/completed"):
            item = as_dict(params.get("item"))
            if item.get("type") not in _SILENT_ITEMS:
                item = {**_snake_case(item), "id": self._item_id(as_text(item.get("id")))}
                super().take({"type": method.replace("/", "."), "item": item})

    def _item_id(self, theirs: str) -> str:
        """As `exec` counts them."""
        return self._ids.setdefault(theirs, f"item_{len(self._ids)}")


def _message(failed: dict[str, Any]) -> str:
    error = as_dict(failed.get("error"))
    text, details = as_text(error.get("message")), as_text(error.get("additionalDetails"))
    return f"{text} ({details})" if details else text


def _snake_case(item: dict[str, Any]) -> dict[str, Any]:
    """An item as `exec` writes it; what is null is left out."""

    def snake(text: str) -> str:
        return _CAMEL.sub("_", text).lower()

    made = {snake(k): v for k, v in item.items() if v is not None and k not in _TIMES}
    made["type"] = snake(as_text(item.get("type"))).replace("agent_tool", "tool")
    made["status"] = snake(as_text(item.get("status")))
    if made["type"] == "reasoning":
        parts = as_list(item.get("summary")) or as_list(item.get("content"))
        made["text"] = "\n\n".join(content_text([part]) for part in parts)
    if made["type"] == "file_change":
        changes = map(as_dict, as_list(item.get("changes")))
        kinds = [(one.get("path"), as_dict(one.get("kind")).get("type")) for one in changes]
        made["changes"] = [{"path": path, "kind": kind} for path, kind in kinds]
    return made
