"""The server: a thread on a free loopback port that answers model requests by a script."""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from tests.support.model_server import anthropic, openai
from tests.support.model_server.batches import BatchServer
from tests.support.model_server.model import (
    Answer,
    CutStream,
    Drop,
    Garbage,
    Hang,
    HttpError,
    ModelRequest,
    Reply,
    Script,
    Text,
    by_rules,
)

_READERS: dict[str, Callable[[str, Mapping[str, str], dict[str, Any]], ModelRequest]] = {
    "/v1/messages": anthropic.read,
    "/v1/responses": openai.read,
    "/v1/chat/completions": openai.read_chat,
}
_WRITERS: dict[str, Callable[[ModelRequest, Answer], dict[str, Any]]] = {
    "anthropic": anthropic.whole,
    "openai": openai.whole,
    "openai_chat": openai.whole_chat,
}
_MODELS = ("claude-opus-4-8", "gpt-5.5")


class ModelServer:
    """A context manager around a running server.

    `requests` are the model requests of conversations in order of arrival, `background` the ones
    that a CLI made for itself, `others` everything else as `"METHOD PATH"`. A script that raises
    answers 500; the exception, like any other of the server's own, is raised again when the
    context closes, so that it cannot pass for a failure of the CLI.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self.background: list[ModelRequest] = []
        self.others: list[str] = []
        self.closing = threading.Event()
        self._script = script or by_rules()
        self._problems: list[BaseException] = []
        self._seen: Counter[object] = Counter()
        self._lock = threading.Lock()
        handler = type("BoundHandler", (_Handler,), {"owner": self})
        self._listener = _Listener(handler, self._problems)
        self.batches = BatchServer(self.url)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The address without a path: `ANTHROPIC_BASE_URL`; codex wants it with `/v1`."""
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if self._problems and error is None:
            raise self._problems[0]

    def close(self) -> None:
        """Stops listening and wakes every answer that is waiting."""
        self.closing.set()
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()

    def requests_of(self, session_id: str) -> list[ModelRequest]:
        """The conversation's requests that one session sent, in order of arrival."""
        return [request for request in self.requests if request.session_id == session_id]

    def wait_for_requests(self, count: int = 1, timeout_s: float = 60.0) -> None:
        """Waits until that many requests of conversations came; TimeoutError if they do not."""
        deadline = time.monotonic() + timeout_s
        while len(self.requests) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.requests)} of {count} requests in {timeout_s} s")
            time.sleep(0.01)

    def reply_to(self, request: ModelRequest) -> tuple[ModelRequest, Reply]:
        """Logs a request and asks the script; used by the handler threads."""
        with self._lock:
            if request.background:
                self.background.append(request)
                return request, Text('{"title": "Scripted session"}')
            key = (request.session_id, request.entries)
            request = replace(request, attempt=self._seen[key])
            self._seen[key] += 1
            self.requests.append(request)
        try:
            return request, self._script(request)
        except Exception as problem:  # noqa: BLE001  a test's script may raise anything
            self._problems.append(problem)
            return request, HttpError(500, f"the script raised {problem!r}")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    # Many CLIs connect at the same moment in the concurrency tests.
    request_queue_size = 128

    def __init__(self, handler: type[_Handler], problems: list[BaseException]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._problems = problems

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keeps the error, unless it is a client that was killed: an ordinary event here."""
        error = sys.exception()
        if error and not isinstance(error, ConnectionError | TimeoutError):
            self._problems.append(error)


class _Handler(BaseHTTPRequestHandler):
    """One connection, kept open: a client that reuses one that is being closed sees it break."""

    owner: ClassVar[ModelServer]
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Silence: the tests read the server's log, not the terminal."""

    def do_HEAD(self) -> None:
        """Answers the reachability check that claude makes at its start."""
        self.owner.others.append(f"HEAD {self.path}")
        self._send(200, b"", {})

    def do_GET(self) -> None:
        """Answers the listing of models; refuses WebSockets so that the client uses HTTP."""
        self.owner.others.append(f"GET {self.path}")
        route = self.path.partition("?")[0]
        if self._batch(b""):
            return
        if self.headers.get("upgrade"):
            self._send_json(426, openai.error_body(426, "no WebSocket here"))
        elif route == "/v1/models":
            models = [{"id": name, "type": "model", "object": "model"} for name in _MODELS]
            self._send_json(200, {"data": models, "has_more": False, "models": []})
        else:
            self._send_json(404, openai.error_body(404, f"no such page: {route}"))

    def do_POST(self) -> None:
        """Answers a model request by the script, and the counting of tokens by a rough number."""
        payload = self.rfile.read(int(self.headers.get("content-length") or 0))
        route = self.path.partition("?")[0]
        if route in _READERS:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._answer(_READERS[route](self.path, headers, json.loads(payload)))
            return
        self.owner.others.append(f"POST {self.path}")
        if self._batch(payload):
            return
        if route == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": len(payload) // 4})
        else:
            self._send_json(404, openai.error_body(404, f"no such page: {route}"))

    def do_DELETE(self) -> None:
        """Takes a file away."""
        self.owner.others.append(f"DELETE {self.path}")
        assert self._batch(b"")

    def _batch(self, payload: bytes) -> bool:
        headers = {name.lower(): value for name, value in self.headers.items()}

        def ask(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
            request, reply = self.owner.reply_to(_READERS[path](path, headers, body))
            if isinstance(reply, Hang):
                return None
            if isinstance(reply, HttpError):
                api = anthropic if request.api == "anthropic" else openai
                return reply.status, api.error_body(reply.status, reply.message)
            assert not isinstance(reply, Drop | Garbage | CutStream)
            answer = reply if isinstance(reply, Answer) else Answer(reply)
            return 200, _WRITERS[request.api](request, answer)

        found = self.owner.batches.answer(self.command, self.path, payload, ask)
        if found is None:
            return False
        status, body = found
        if isinstance(body, bytes):
            self._send(status, body, {"content-type": "application/x-jsonl"})
        else:
            self._send_json(status, body)
        return True

    def _answer(self, request: ModelRequest) -> None:
        request, reply = self.owner.reply_to(request)
        api = anthropic if request.api == "anthropic" else openai
        match reply:
            case HttpError(status, message, more):
                self._send_json(status, api.error_body(status, message), more)
            case Hang(seconds):
                self.owner.closing.wait(seconds)
                self.close_connection = True
            case Drop():
                self.close_connection = True
            case Garbage(body, packed):
                kind = "text/event-stream" if request.stream else "application/json"
                headers = {"content-type": kind} | ({"content-encoding": "gzip"} if packed else {})
                self._send(200, gzip.compress(body.encode()) if packed else body.encode(), headers)
            case _:
                cut = isinstance(reply, CutStream)
                whole = Answer(Text(reply.text)) if isinstance(reply, CutStream) else reply
                answer = whole if isinstance(whole, Answer) else Answer(whole)
                if not request.stream:
                    self._send_json(200, _WRITERS[request.api](request, answer))
                elif request.api == "openai_chat":
                    self._send_stream(openai.chat_events(request, answer), cut=cut)
                else:
                    self._send_stream(api.events(request, answer), cut=cut)

    def _send_stream(self, events: list[dict[str, Any]], *, cut: bool) -> None:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        # The first three events hold the start and the text, not the end. Without the closing
        # chunk the client sees a connection that broke, not a body that was short.
        named = "type" in events[0]  # those of Chat Completions are not
        names = [f"event: {event['type']}\n" if named else "" for event in events]
        texts = (f"data: {json.dumps(event)}\n\n" for event in events)
        chunks = list(map(str.__add__, names, texts)) + ["data: [DONE]\n\n"] * (not named)
        for chunk in chunks[: 3 if named else 1] if cut else [*chunks, ""]:
            data = chunk.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.close_connection = cut

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
        self.end_headers()
