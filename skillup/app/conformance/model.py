"""A model for tests of engines: what it shall do stands in the message that it answers.

A line ``model> shell: echo hi`` of a user's message is a step; each round of tools takes the next
one, and the last is the answer. It keeps no state, so retries, side requests and concurrent
sessions use no steps up. It speaks Anthropic Messages, OpenAI Responses and Chat Completions, and
Gemini, as JSON and as events.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

from skillup.engines.events import as_dict, as_list, content_text
from skillup.frozen import frozen

INPUT, CACHED, OUTPUT = 1000, 100, 50
"""The tokens of every answer: all input, what of it was cached, and output."""
_STEP = re.compile(r"^\s*model> (\w+): ?(.*)$", re.MULTILINE)
_SECONDS = 3600.0
_MODEL = "conformance-model"


@frozen
class Asked:
    """A request, whichever API it came by."""

    path: str
    body: dict[str, Any]
    messages: tuple[tuple[str, str], ...]  # Of users and of the model
    steps: tuple[tuple[str, str], ...]  # Of the latest message that has some
    rounds: int  # Answers with tool calls since then
    tools: Mapping[str, dict[str, Any]]  # Name → JSON Schema of its arguments

    @property
    def step(self) -> tuple[str, str]:
        """What to do now; a request without tools is the CLI's own, such as for a title."""
        if not self.tools or not self.steps:
            return "say", "A title"
        return self.steps[min(self.rounds, len(self.steps) - 1)]


def read(path: str, body: dict[str, Any]) -> Asked:
    """The request of a body."""
    messages: list[tuple[str, str]] = []
    steps: tuple[tuple[str, str], ...] = ()
    rounds, in_calls = 0, False
    items = body.get("messages") or body.get("input") or body.get("contents") or []
    for item in items if isinstance(items, list) else [{"role": "user", "content": items}]:
        role, content = item.get("role"), item.get("content") or item.get("parts") or ""
        blocks = [as_dict(block) for block in as_list(content)]
        calls = bool(item.get("tool_calls")) or item.get("type") in _RESPONSES_CALLS
        calls |= any(b.get("type") == "tool_use" or "functionCall" in b for b in blocks)
        rounds += calls and not in_calls
        in_calls = calls
        text = (
            content
            if isinstance(content, str)
            else content_text([block for block in blocks if isinstance(block.get("text"), str)])
        )
        if role == "user" and (found := _STEP.findall(text)):
            steps, rounds = tuple(found), 0
        if text and role in ("user", "assistant", "model"):
            messages.append(("user" if role == "user" else "assistant", text))
    return Asked(path, body, tuple(messages), steps, rounds, dict(_tools(body)))


_RESPONSES_CALLS = ("function_call", "custom_tool_call")


def _tools(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    more = [one for one in as_list(body.get("input")) if as_dict(one).get("tools")]
    for tool in [*as_list(body.get("tools")), *(t for one in more for t in one["tools"])]:
        declared = tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]
        for one in declared:
            one = as_dict(one.get("function")) or one
            names = ("input_schema", "parameters", "parametersJsonSchema")
            schemas = [as_dict(one[name]) for name in names if one.get(name)]
            yield str(one.get("name") or one.get("type")), next(iter(schemas), {})


def call_for(asked: Asked, kind: str, value: str) -> tuple[str, dict[str, Any]] | None:
    """The tool that the agent offers for that, with arguments; None: it offers none."""
    wanted = {"shell": _SHELL, "skill": _SKILL, "read": _READ, "write": _WRITE}[kind]
    path, _, content = value.partition(" = ")
    for name, schema in asked.tools.items():
        given = as_dict(schema.get("properties"))
        main = next((key for key in given if wanted[1].fullmatch(key)), None)
        if main is None or not wanted[0].search(name):
            continue
        if wanted[1] is _PATH:  # Some take absolute ones only
            root = min(_WORKSPACE.findall(json.dumps(asked.body)), key=len, default=".")
            path = f"{root}/{path}"
        arguments: dict[str, Any] = {main: value if wanted[1] is not _PATH else path}
        if kind == "write" and (rest := next((k for k in given if _CONTENT.fullmatch(k)), None)):
            arguments[rest] = content
        for key in as_list(schema.get("required")):
            fills = as_dict(given.get(key))
            by_type = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
            one_of = as_list(fills.get("enum")) or [by_type.get(str(fills.get("type")), "for it")]
            arguments.setdefault(key, one_of[0])
        return name, arguments
    if kind in ("skill", "read"):
        file = f".agents/skills/{value}/SKILL.md" if kind == "skill" else value
        other = call_for(asked, "read", file) if kind == "skill" else None
        return other or call_for(asked, "shell", f"cat {file}")
    return call_for(asked, "shell", f"printf %s '{content}' > {path}") if kind == "write" else None


_PATH = re.compile(r"(?i)(absolute_?|file_?|target_?)?(path|file)")
_WORKSPACE = re.compile(r"/[^\s\"'<>\\]*/workspace\b")
_CONTENT = re.compile(r"(?i)(content|contents|file_?text|text)")
_SHELL = re.compile(r"(?i)bash|shell|command|exec|terminal"), re.compile(r"command|cmd|script")
_SKILL = re.compile(r"(?i)skill"), re.compile(r"(?i)(skill_?)?name|skill|command")
_READ = re.compile(r"(?i)^(read|view|cat)(_?file)?$"), _PATH
_WRITE = re.compile(r"(?i)write|create"), _PATH


class ConformanceModel:
    """A context manager around a server that listens on loopback; `requests` are what it got."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.closing = threading.Event()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Agents are ended in the middle of their requests."""


class _Handler(BaseHTTPRequestHandler):
    model: ClassVar[ConformanceModel]
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing."""

    def do_HEAD(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        models = [{"id": _MODEL, "object": "model", "name": _MODEL}]
        found = self.path.partition("?")[0].endswith("/models")
        self._send(200, _json({"data": models, "models": models})) if found else self._send(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        route, api = self.path.partition("?")[0], None
        for ending, one in _APIS.items():
            api = one if route.endswith(ending) else api
        if api is None:
            self._send(200 if "count" in route else 404, _json({"input_tokens": 1}))
            return
        asked = read(self.path, json.loads(body))
        self.model.requests.append(asked)
        kind, value = asked.step
        if kind == "fail":
            self._fail(value)
            return
        streams = bool(asked.body.get("stream")) or ":streamGenerateContent" in route
        text, call = _answer_to(asked, kind, value)
        whole, events = api(text, call, f"call_{len(self.model.requests)}")
        if streams:
            lines = [f"event: {name}\ndata: {data}\n\n" for name, data in events]
            text = "".join(line.removeprefix("event: \n") for line in lines)
            self._send(200, text.encode(), "text/event-stream")
        else:
            self._send(200, _json(whole))

    def _fail(self, how: str) -> None:
        if how.isdigit():
            error = {"message": f"scripted {how}", "type": "error", "code": int(how)}
            self._send(int(how), _json({"type": "error", "error": error}))
        elif how == "garbage":
            self._send(200, b"<html>no answer of a model</html>", "text/html")
        else:  # hang, or drop
            self.model.closing.wait(_SECONDS if how == "hang" else 0)
            self.close_connection = True

    def _send(self, status: int, body: bytes = b"{}", kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


Call = tuple[str, dict[str, Any]]


def _answer_to(asked: Asked, kind: str, value: str) -> tuple[str, Call | None]:
    if kind == "say":
        return value, None
    if kind == "recall":
        told = "\n".join(_STEP.sub("", text) for _, text in asked.messages)
        return " ".join(dict.fromkeys(re.findall(value, told))) or "nothing", None
    call = call_for(asked, kind, value)
    return ("", call) if call else (f"there is no tool for {kind}", None)


Events = list[tuple[str, str]]  # Name ("": none) and data


def _anthropic(text: str, call: Call | None, call_id: str) -> tuple[dict[str, Any], Events]:
    block: dict[str, Any] = {"type": "text", "text": text}
    empty, delta = block | {"text": ""}, {"type": "text_delta", "text": text}
    if call:
        block = {"type": "tool_use", "id": call_id, "name": call[0], "input": call[1]}
        empty = block | {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    usage = {"input_tokens": INPUT - CACHED, "cache_read_input_tokens": CACHED}
    usage["output_tokens"] = OUTPUT
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    whole: dict[str, Any] = {
        "id": f"msg_{call_id}",
        "type": "message",
        "role": "assistant",
        "model": _MODEL,
    }
    whole |= {"content": [block], "usage": usage, **stop}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]
    return whole, [(str(event["type"]), json.dumps(event)) for event in events]


def _responses(text: str, call: Call | None, call_id: str) -> tuple[dict[str, Any], Events]:
    content = {"type": "output_text", "text": text, "annotations": []}
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [content]}
    if call:
        item = {"type": "function_call", "call_id": call_id, "name": call[0]}
        item["arguments"] = json.dumps(call[1])
    item |= {"id": f"item_{call_id}", "status": "completed"}
    usage: dict[str, Any] = {"input_tokens": INPUT}
    usage["input_tokens_details"] = {"cached_tokens": CACHED}
    usage |= {"output_tokens": OUTPUT, "output_tokens_details": {"reasoning_tokens": 0}}
    usage["total_tokens"] = INPUT + OUTPUT
    whole: dict[str, Any] = {"id": f"resp_{call_id}", "object": "response", "status": "completed"}
    whole |= {"model": _MODEL, "output": [item], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": whole | {"output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return whole, [(str(event["type"]), json.dumps(event)) for event in events]


def _chat(text: str, call: Call | None, call_id: str) -> tuple[dict[str, Any], Events]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [
            {"index": 0, "id": call_id, "type": "function", "function": function}
        ]
    counts = INPUT, OUTPUT, INPUT + OUTPUT
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    usage: dict[str, Any] = dict(zip(names, counts, strict=True))
    usage["prompt_tokens_details"] = {"cached_tokens": CACHED}
    whole: dict[str, Any] = {
        "id": call_id,
        "object": "chat.completion",
        "created": 1,
        "model": _MODEL,
    }
    end: dict[str, Any] = {"index": 0, "finish_reason": "tool_calls" if call else "stop"}
    chunk = whole | {"object": "chat.completion.chunk"}
    chunks = [
        chunk | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        chunk | {"choices": [end | {"delta": {}}]},
        chunk | {"choices": [], "usage": usage},
    ]
    events = [("", json.dumps(one)) for one in chunks] + [("", "[DONE]")]
    return whole | {"choices": [end | {"message": message}], "usage": usage}, events


def _gemini(text: str, call: Call | None, _: str) -> tuple[dict[str, Any], Events]:
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": text}
    usage = {"promptTokenCount": INPUT, "cachedContentTokenCount": CACHED}
    usage |= {"candidatesTokenCount": OUTPUT, "totalTokenCount": INPUT + OUTPUT}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": _MODEL}
    return whole, [("", json.dumps(whole))]


_APIS = {
    "/messages": _anthropic,
    "/responses": _responses,
    "/chat/completions": _chat,
    ":generateContent": _gemini,
    ":streamGenerateContent": _gemini,
}
