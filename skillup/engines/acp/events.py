"""The client's side of the Agent Client Protocol, version 1: lines of JSON-RPC over stdio.

Pure: what the agent is to read is in `outgoing`. The shapes are those of agentclientprotocol.com.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.dataclass import mutable
from skillup.engines.base import Progress
from skillup.engines.events import (
    EventParser,
    Failure,
    as_dict,
    as_list,
    as_text,
    counts,
    kind_of_status,
    kind_of_text,
    kinds_by_text,
    words,
)
from skillup.engines.questions import answered, joined, of_questions, reply_to_form
from skillup.gateway.meter import ModelExchange, flat
from skillup.schema.case import UserAnswer
from skillup.schema.checks import ToolKind
from skillup.schema.profile import Permission
from skillup.schema.record import ErrorKind, Usage

_HERE = Path(__file__)
_MESSAGES = kinds_by_text(_HERE.with_name("messages.txt"))
# Tools by their names, or the protocol's kinds of calls.
_TOOLS: Mapping[Any, Sequence[str]] = kinds_by_text(_HERE.with_name("tools.txt"))
_KINDS: Mapping[str, ToolKind] = {
    name: kind for kind, texts in _TOOLS.items() for name in " ".join(texts).split()
}
# By permission: the first that the agent has is set. `auto` is one of codex (its sandbox) and of
# goose (all runs); in that of Claude and Qwen a model decides.
_MODES: Mapping[Any, Sequence[str]] = kinds_by_text(_HERE.with_name("modes.txt"))

_CLIENT: Mapping[str, Any] = {
    "protocolVersion": 1,
    # Agents use tools of their own.
    "clientCapabilities": {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
    },
    "clientInfo": {"name": "skillup", "version": "1"},
}
_AUTH_REQUIRED = -32000
_STATUS = re.compile(r"(?i)(?:^|\b(?:status|error|http|rejected)\W*(?:code)?\W{0,3})([45]\d\d)\b")
# How agents answer with an error, by their names; goose tells none.
_ERROR_AS_ANSWER = {"": "Ran into this error: |^Network error: ", "Copilot": "^Error: "}
_PATHS = ("file_path", "filePath", "path", "fileName")
_REMARK = "Copilot: Info: "
_STOPS: Mapping[str, tuple[ErrorKind, str]] = {
    "max_turn_requests": ("max_turns", "it came to its own limit of requests within a turn"),
    "max_tokens": ("model_error", "the model ran out of tokens in the middle of its answer"),
    "cancelled": ("crash", "it cancelled the turn, which nobody had asked for"),
}
_WITHOUT_NEWS = words("""
    plan available_commands_update current_mode_update config_option_update session_info_update
    usage_update
""")


def first_of(value: Any, *names: str) -> Any:
    """What the first of `names` holds in an object, or in what is in it; None: there is none."""
    if isinstance(value, list):
        return next((v for v in (first_of(one, *names) for one in value) if v is not None), None)
    if not isinstance(value, dict):
        return None
    own = next((value[name] for name in names if value.get(name) is not None), None)
    return own if own is not None else first_of(list(value.values()), *names)


@mutable
class _Call:
    """A call of a tool, by all that the agent has said of it so far."""

    known: dict[str, Any]
    asked: bool = False
    refused: bool = False
    shown: bool = False
    ended: bool = False
    printed: str = ""  # In parts, as some tell it of a terminal of theirs

    @property
    def name(self) -> str:
        """The agent's own; where it is not told, the protocol's kind of the call."""
        told = first_of(self.known.get("_meta"), "toolName") or self.known.get("name")
        title = as_text(self.known.get("title"))
        title = title if re.fullmatch(r"[a-z][a-z0-9_.:-]*", title) else ""
        loads = "skill" if list(as_dict(self.known.get("rawInput"))) == ["skill"] else ""  # Copilot
        return as_text(told or title or loads or self.known.get("kind") or "tool")

    @property
    def kind(self) -> ToolKind:
        by_protocol = _KINDS.get(as_text(self.known.get("kind")), "other")
        kind = _KINDS.get(self.name.lower(), by_protocol)
        diffs = (as_dict(one) for one in as_list(self.known.get("content")))
        new = any(one.get("type") == "diff" and not one.get("oldText") for one in diffs)
        return "write" if kind == "edit" and new else kind

    @property
    def arguments(self) -> dict[str, Any]:
        """As the agent gave them; where they are not told, what it says of the call."""
        given = self.known.get("rawInput")
        if not isinstance(given, dict):
            name = "command" if self.kind == "shell" else "title"
            return {"input": given} if given is not None else {name: self.known.get("title")}
        argv = given.get("command")
        if isinstance(argv, list):
            shell = argv[1:2] == ["-lc"] and len(argv) == 3
            return {**given, "command": argv[2] if shell else shlex.join(map(str, argv))}
        if self.kind in ("edit", "write") and self.paths and first_of(given, *_PATHS) is None:
            return {**given, "path": self.paths[0]}  # Codex: `changes` by path
        return given

    @property
    def paths(self) -> list[Any]:
        """Of the files that it is about."""
        places = *as_list(self.known.get("content")), *as_list(self.known.get("locations"))
        own = first_of(self.known.get("rawInput"), *_PATHS)
        found = (*(as_dict(one).get("path") for one in places), own)
        return [path for path in found if path is not None]

    @property
    def output(self) -> str:
        raw, blocks = self.known.get("rawOutput"), as_list(self.known.get("content"))
        shown = "\n".join(as_text(first_of(as_dict(one).get("content"), "text")) for one in blocks)
        told = first_of(raw, "formatted_output", "stdout", "content", "text")
        shown = shown if shown.strip("\n") else as_text(told or raw)
        return raw if isinstance(raw, str) else shown or self.printed

    @property
    def failed(self) -> bool:
        code = first_of(self.known.get("rawOutput"), "exitCode", "exit_code", "exit")
        failed = self.kind == "shell" and isinstance(code, int) and code != 0
        return failed or self.refused or self.known.get("status") == "failed"


def _line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


class AcpEvents(EventParser):
    """Feed it the lines of one turn. `place`: the `cwd`, a real path, and `mcpServers` of sessions;
    `resumed`: the session to load in a new process; `before`: the turn before in this one. Without
    a `prompt` it only shakes hands, or has a session `forked`.
    """

    def __init__(
        self,
        prompt: str | None,
        place: Mapping[str, Any],
        permission: Permission,
        answers: Sequence[UserAnswer] = (),
        resumed: str | None = None,
        before: AcpEvents | None = None,
        progress: Progress = lambda _: None,
        forked: str | None = None,
    ) -> None:
        super().__init__(progress)
        self._forked = forked
        self.session, self._place, self._permission = resumed, place, permission
        self._answers = answers
        self.agent, self.number = "", 0
        self.can_fork = False
        self.replayed: list[str] | None = None  # Messages of the user in the session, if shown
        self.loaded = False  # The session comes from another process
        self.prompted = False  # The message was sent
        self.look_at_model: Callable[[], ModelExchange | None] = lambda: None
        self.last_answered: ModelExchange | None = None  # What it asks for later is its own matter
        self._prompt, self._resumed, self._is_first = prompt, resumed, before is None
        self._waiting: dict[Any, Callable[[dict[str, Any]], None]] = {}
        self._calls: dict[str, _Call] = {}
        if before is None:
            can: Any = _CLIENT["clientCapabilities"]
            can = {**can, "elicitation": {"form": {}}} if answers else can  # Else none asks
            self._request("initialize", self._initialized, **{**_CLIENT, "clientCapabilities": can})
        else:
            self.agent, self.version, self.number = before.agent, before.version, before.number
            self._send_prompt()

    def farewell(self) -> bytes:
        cancel = _line(method="session/cancel", params={"sessionId": self.session})
        return cancel if self.prompted else b""

    # JSON-RPC.

    def _send(self, **message: Any) -> None:
        self.outgoing += _line(**message)

    def _request(self, method: str, then: Callable[[dict[str, Any]], None], **params: Any) -> None:
        self.number += 1
        self._waiting[self.number] = then
        self._send(id=self.number, method=method, params=params)

    def _fail(self, kind: ErrorKind, text: str) -> None:
        self._failure = self._failure or Failure(kind, text)
        self.closed = True

    def take(self, event: dict[str, Any]) -> None:
        method, params, number = event.get("method"), as_dict(event.get("params")), event.get("id")
        if method is None and isinstance(number, int) and number in self._waiting:
            then, error = self._waiting.pop(number), as_dict(event.get("error"))
            lost = then == self._opened and self._resumed is not None
            if error and then != self._send_prompt:
                fresh: ErrorKind = "session_lost" if lost else "engine_not_usable"
                self._failed(error, "model_error" if self.prompted else fresh)
            else:
                self.notice(f"its mode could not be set: {error.get('message')}" if error else "")
                then(as_dict(event.get("result")))
        elif isinstance(method, str) and number is not None:
            self._answer(number, method, params)
        elif method == "session/update":
            self._update(as_dict(params.get("update")), params.get("sessionId"))
        elif method is None or as_text(method).startswith("session/"):  # no extension
            self.unknown(event)

    def _failed(self, error: dict[str, Any], usually: ErrorKind) -> None:
        data = error.get("data")
        more = data if isinstance(data, str) else first_of(data, "message", "details", "error")
        text = f"{as_text(error.get('message'))} {as_text(more)}".strip()
        status = _STATUS.search(as_text(more)) or _STATUS.search(f"{text} {as_text(data)}")
        kind = kind_of_status(int(status[1])) if status else kind_of_text(text, _MESSAGES)
        kind = "auth" if error.get("code") == _AUTH_REQUIRED else kind
        self.end()
        self._fail(kind or usually, text or "an error without a message")

    # Up to the message.

    def _initialized(self, result: dict[str, Any]) -> None:
        version, info = result.get("protocolVersion"), as_dict(result.get("agentInfo"))
        self.agent = as_text(info.get("name"))
        self.version = as_text(info.get("version")) or None
        can = as_dict(result.get("agentCapabilities"))
        of_session = as_dict(can.get("sessionCapabilities"))
        replays, self.can_fork = can.get("loadSession") is True, "fork" in of_session
        can_load = replays or "resume" in of_session
        if version != _CLIENT["protocolVersion"]:
            what = "of the Agent Client Protocol it speaks version"
            self._fail("engine_not_usable", f"{what} {as_text(version) or '?'}, and skillup 1")
        elif self._forked is not None:
            self._request("session/fork", self._opened, sessionId=self._forked, **self._place)
        elif self._prompt is None:
            self.finished = self.closed = True
        elif self._resumed is None:
            self._request("session/new", self._opened, **self._place)
        elif can_load:
            self.replayed = [] if replays else None
            method = "session/load" if replays else "session/resume"
            self._request(method, self._opened, sessionId=self._resumed, **self._place)
        else:
            what = f"{self.agent or 'the agent'} cannot load the session of an earlier process"
            self._fail("no_resume", f"{what}; set `session: live` in the profile")

    def _opened(self, result: dict[str, Any]) -> None:
        self.end()
        self.loaded = self._resumed is not None
        self.session = self.session_id = self._resumed or as_text(result.get("sessionId")) or None
        modes = as_dict(result.get("modes"))
        has = [as_dict(mode).get("id") for mode in as_list(modes.get("availableModes"))]
        mode = next((one for one in _MODES[self._permission] if one in has), None)
        if self.session is None:
            self._fail("protocol", "it opened a session, and did not say which")
        elif self._prompt is None:
            self.finished = self.closed = True
        elif mode is None or mode == modes.get("currentModeId"):
            self._send_prompt()
        else:
            told = {"sessionId": self.session, "modeId": mode}
            self._request("session/set_mode", self._send_prompt, **told)

    def _send_prompt(self, _: Any = None) -> None:
        text = self._prompt or ""
        # Some take what begins with a slash for a command, a path as well.
        given = [{"type": "text", "text": f" {text}" if text.startswith("/") else text}]
        if "claude" in self.agent:  # A last block without an @ keeps it from adding files
            given.append({"type": "text", "text": ""})
        self.prompted = True
        self._request("session/prompt", self._ended, sessionId=self.session, prompt=given)

    def _ended(self, result: dict[str, Any]) -> None:
        """The turn is over."""
        self.last_answered = self.look_at_model()
        self._show_calls()
        self.end()
        self.session_id, told = self.session, as_dict(result.get("usage"))
        refused = {k: call for k, call in self._calls.items() if call.refused}
        for call_id, call in refused.items():
            if not call.ended:
                self.result(call_id, "error", "not permitted")
        messages = [item.text or "" for item in self.items if item.type == "message"]
        self.response = messages[-1] if messages else ""
        # Of more than one request some tell the last one's, others all since the process began.
        sums = counts(told, {"all": "totalTokens", "made": "outputTokens"})
        if len(sums) == 2 and self._is_first and not self._calls:
            made = sums["made"]
            self.usage = Usage(input_tokens=max(0, sums["all"] - made), output_tokens=made)
        reason, error = as_text(result.get("stopReason")), _ERROR_AS_ANSWER.get(self.agent, "^$")
        if self.response and not told and re.search(error, self.response):
            self._failed({"message": self.response}, "model_error")
        elif reason == "cancelled" and refused:
            self.notice("the agent ended the turn, as a call was not permitted")
        elif reason in _STOPS:
            self._fail(*_STOPS[reason])
        elif reason not in ("end_turn", "refusal"):
            self._fail("protocol", f"it stopped for a reason that is not known: {reason!r}")
        elif reason == "end_turn" and not (self.response or self._calls):
            is_command = (self._prompt or "").lstrip().startswith("/")
            why = ": it took the message, which begins with a slash, for a command" * is_command
            self._fail("protocol", f"it ended the turn without an answer or a tool call{why}")
        self.finished = self.closed = True

    # What the agent asks.

    def _answer(self, request: Any, method: str, params: dict[str, Any]) -> None:
        if method == "session/request_permission":
            self._send(id=request, result=self._permitted(params))
        elif method == "elicitation/create":
            self.end()
            if call := self._calls.get(as_text(params.get("toolCallId"))):
                self._show_calls(call)
            self._send(id=request, result=reply_to_form(self, params, self._answers))
        else:
            error = {"code": -32601, "message": f"{method} is not offered"}
            self._send(id=request, error=error)

    def _permitted(self, params: dict[str, Any]) -> dict[str, Any]:
        """The outcome, by the profile's permission; of Qwen's questions, by the case."""
        call = self._tool({"sessionUpdate": "", **as_dict(params.get("toolCall"))})
        questions, told = first_of(params, "qwenQuestions"), dict[str, Any]()
        call.asked, call.refused = True, not self._may(call)
        self._show_calls(call)
        if questions is not None:
            content = answered(self, of_questions(questions, None), self._answers)
            call.refused = content is None
            told = {"answers": {key: joined(value) for key, value in (content or {}).items()}}
        kinds = ("reject_once", "reject_always") if call.refused else ("allow_once", "allow_always")
        options = [as_dict(option) for option in as_list(params.get("options"))]
        chosen = next((o for kind in kinds for o in options if o.get("kind") == kind), None)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen.get("optionId")}, **told}

    def _may(self, call: _Call) -> bool:
        """Whether it may run; under `edits` it has to say which files of the workspace it edits."""
        permission, root = self._permission, as_text(self._place["cwd"])
        if permission != "edits" or call.kind not in ("edit", "write") or not call.paths:
            return permission == "full"
        paths = [os.path.join(root, str(path)) for path in call.paths]  # noqa: PTH118
        inside = (os.path.realpath(path).startswith(f"{root}/") for path in paths)
        return all("\0" not in path for path in paths) and all(inside)

    # What it says and does.

    def _update(self, update: dict[str, Any], session: Any) -> None:
        kind = as_text(update.get("sessionUpdate"))
        is_said = kind in ("agent_message_chunk", "agent_thought_chunk")
        is_tool = kind in ("tool_call", "tool_call_update")
        if kind in _WITHOUT_NEWS:
            return
        if not self.prompted:
            if kind == "user_message_chunk" and self.replayed is not None:
                text = as_text(first_of(update.get("content"), "text"))
                self.part(text, update.get("messageId"), self.replayed.append)
            else:
                self.end()
            return
        self.session_id = self.session
        if session != self.session or not (is_said or is_tool or kind == "user_message_chunk"):
            self.unknown({"method": "session/update", "params": update})
        elif is_said:
            self._chunk(kind, as_dict(update.get("content")), update)
        elif is_tool:
            self._tool(update)
        elif self.loaded and flat(as_text(first_of(update, "text"))) not in flat(
            self._prompt or ""
        ):
            self._fail("protocol", "it replayed earlier turns after it had loaded the session")

    def _chunk(self, kind: str, block: dict[str, Any], update: dict[str, Any]) -> None:
        text = as_text(block.get("text", f"[{as_text(block.get('type'))}]"))
        add = self.message if kind == "agent_message_chunk" else self.reasoning
        warns = first_of(update.get("_meta"), "level") == "warning"
        if warns or f"{self.agent}: {text}".startswith(_REMARK):
            self.notice(text)
        elif text:
            self.part(text, (kind, update.get("messageId")), add)

    def _tool(self, update: dict[str, Any]) -> _Call:
        """What is said of a call: by its updates, or a request for permission, which has fewer."""
        call_id, state = as_text(update.get("toolCallId")), update.get("status")
        if call_id not in self._calls:  # later updates may come in the middle of a message
            self.end()
        call = self._calls.setdefault(call_id, _Call({"title": as_text(update.get("title"))}))
        printed = first_of(update.get("_meta"), "terminal_output")
        call.printed += as_text(as_dict(printed).get("data"))
        # Later titles describe what it does.
        new = {k: v for k, v in update.items() if k != "title" and v not in (None, "", [], {})}
        call.known = {**call.known, **new} if update["sessionUpdate"] else {**new, **call.known}
        if state in ("completed", "failed") and not call.ended:
            call.ended = True
            self._show_calls(call)
            self.result(call_id, "error" if call.failed else "success", call.output)
            permission, changes = self._permission, call.kind in ("edit", "write", "shell")
            if permission != "full" and changes and not call.asked:
                what = f"the agent did not ask before `{call.name}`"
                self.notice(f"{what}: what `permission: {permission}` lets it do is its own matter")
        elif state == "in_progress" and call.known.get("rawInput"):
            self._show_calls(call)
        return call

    def _show_calls(self, last: _Call | None = None) -> None:
        """Adds the calls up to one, or all: their arguments have come by now."""
        for call_id, call in self._calls.items():
            if not call.shown:
                call.shown = True
                name, kind = call.name, call.kind
                for server in (as_text(one.get("name")) for one in self._place["mcpServers"]):
                    tool = re.fullmatch(rf"(?:mcp__)?{re.escape(server)}(?:__|[_/:.-])(.+)", name)
                    name, kind = (f"{server}::{tool[1]}", "mcp") if tool else (name, kind)
                self.call(call_id, name, kind, call.arguments)
            if call is last:
                return
