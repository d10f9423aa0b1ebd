"""HTTP for the model server: routes requests, and sends answers and faults."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, Protocol

from tests.support.model_server import write_anthropic, write_openai, write_openai_chat
from tests.support.model_server.read_anthropic import read_anthropic
from tests.support.model_server.read_openai import read_openai
from tests.support.model_server.read_openai_chat import read_openai_chat
from tests.support.model_server.replies import (
    Answer,
    CutStream,
    Drop,
    Garbage,
    Hang,
    HttpError,
    Reply,
    Text,
    whole_answer,
)
from tests.support.model_server.requests import ModelRequest

_READERS: dict[str, Callable[[str, Mapping[str, str], dict[str, Any]], ModelRequest]] = {
    "/v1/messages": read_anthropic,
    "/v1/responses": read_openai,
    "/v1/chat/completions": read_openai_chat,
}
_WHOLE: dict[str, Callable[[ModelRequest, Answer], dict[str, Any]]] = {
    "anthropic": write_anthropic.message,
    "openai": write_openai.response,
    "openai_chat": write_openai_chat.completion,
}
_MODELS = ("claude-opus-4-8", "gpt-5.5")


class Owner(Protocol):
    """What the handler needs of the server."""

    @property
    def closing(self) -> Any:
        """The event that is set when the server closes."""

    def reply_to(self, request: ModelRequest) -> tuple[ModelRequest, Reply | Exception]:
        """Logs a request and asks the script."""

    def log_other(self, line: str) -> None:
        """Logs a request that is not for a model's answer."""

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Logs a request for embeddings, and answers it."""


class Handler(BaseHTTPRequestHandler):
    """One connection; it serves one request, so that no idle connection holds up the end."""

    owner: ClassVar[Owner]
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Silence: the tests read the server's log, not the terminal."""

    def do_HEAD(self) -> None:
        """Answers the reachability check that claude makes at its start."""
        self.owner.log_other(f"HEAD {self.path}")
        self._send(200, b"", {})

    def do_GET(self) -> None:
        """Answers the listing of models; refuses WebSockets so that the client uses HTTP."""
        self.owner.log_other(f"GET {self.path}")
        route = self.path.partition("?")[0]
        if self.headers.get("upgrade"):
            self._send_json(426, write_openai.error_body(426, "no WebSocket here"))
        elif route == "/v1/models":
            models = [{"id": name, "type": "model", "object": "model"} for name in _MODELS]
            self._send_json(200, {"data": models, "has_more": False, "models": []})
        else:
            self._send_json(404, write_openai.error_body(404, f"no such page: {route}"))

    def do_POST(self) -> None:
        """Answers a model request by the script, and the counting of tokens by a rough number."""
        payload = self.rfile.read(int(self.headers.get("content-length") or 0))
        route = self.path.partition("?")[0]
        reader = _READERS.get(route)
        if reader:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._answer(reader(self.path, headers, json.loads(payload)))
            return
        self.owner.log_other(f"POST {self.path}")
        if route == "/v1/embeddings":
            self._embed(json.loads(payload))
        elif route == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": len(payload) // 4})
        else:
            self._send_json(404, write_openai.error_body(404, f"no such page: {route}"))

    def _embed(self, body: dict[str, Any]) -> None:
        given = body["input"]
        texts = [given] if isinstance(given, str) else list(given)
        vectors = self.owner.embed(texts)
        data = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}
        answer = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        self._send_json(200, answer)

    def _answer(self, request: ModelRequest) -> None:
        request, reply = self.owner.reply_to(request)
        match reply:
            case Exception():
                self._send_error(request, HttpError(500, f"the script raised {reply!r}"))
            case HttpError():
                self._send_error(request, reply)
            case Hang(seconds):
                self.owner.closing.wait(seconds)
                self.close_connection = True
            case Drop():
                self.close_connection = True
            case Garbage(body, packed):
                kind = "text/event-stream" if request.stream else "application/json"
                headers = {"content-type": kind} | ({"content-encoding": "gzip"} if packed else {})
                self._send(200, gzip.compress(body.encode()) if packed else body.encode(), headers)
            case CutStream(text):
                self._send_answer(request, Answer(Text(text)), cut=True)
            case _:
                self._send_answer(request, whole_answer(reply))

    def _send_answer(self, request: ModelRequest, answer: Answer, cut: bool = False) -> None:
        if answer.delay_s:
            self.owner.closing.wait(answer.delay_s)
        anthropic = request.api == "anthropic"
        if not request.stream:
            self._send_json(200, _WHOLE[request.api](request, answer))
            return
        events = (write_anthropic if anthropic else write_openai).events(request, answer)
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        # The first three events hold the start and the text, not the end. Without the closing
        # chunk the client sees a connection that broke, not a body that was short.
        for name, data in events[:3] if cut else events:
            self._chunk(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        if not cut:
            self._chunk(b"")

    def _send_error(self, request: ModelRequest, error: HttpError) -> None:
        write = write_anthropic if request.api == "anthropic" else write_openai
        self._send_json(error.status, write.error_body(error.status, error.message), error.headers)

    def _send_json(
        self, status: int, data: object, headers: Mapping[str, str] | None = None
    ) -> None:
        kind = {"content-type": "application/json"}
        self._send(status, json.dumps(data).encode(), kind | dict(headers or {}))

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._head(status, {"content-length": str(len(body)), **headers})
        self.wfile.write(body)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
