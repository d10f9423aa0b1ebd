"""The server: a thread on a free loopback port that answers model requests by a script."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from http.server import ThreadingHTTPServer
from string import ascii_lowercase
from types import TracebackType
from typing import Any, Self

from tests.support.model_server.handler import Handler
from tests.support.model_server.replies import Reply, Text
from tests.support.model_server.requests import ModelRequest
from tests.support.model_server.rules import Script, by_rules


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    # Many CLIs connect at the same moment in the concurrency tests.
    request_queue_size = 128

    def __init__(self, handler: type[Handler], problems: list[BaseException]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._problems = problems

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keeps the error, unless it is a client that was killed: an ordinary event here."""
        error = sys.exception()
        if error and not isinstance(error, ConnectionError | TimeoutError):
            self._problems.append(error)


class ModelServer:
    """A context manager around a running server.

    `requests` are the model requests of conversations in order of arrival, `background` the ones
    that a CLI made for itself, `embedded` the texts that embeddings were asked of, `others`
    everything else as `"METHOD PATH"`. A script that raises
    answers 500; the exception, like any other of the server's own, is raised again when the
    context closes, so that it cannot pass for a failure of the CLI.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self.background: list[ModelRequest] = []
        self.others: list[str] = []
        self.embedded: list[list[str]] = []
        self.closing = threading.Event()
        self._script = script or by_rules()
        self._problems: list[BaseException] = []
        self._seen: Counter[object] = Counter()
        self._lock = threading.Lock()
        handler = type("BoundHandler", (Handler,), {"owner": self})
        self._listener = _Listener(handler, self._problems)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The address without a path: `ANTHROPIC_BASE_URL`; codex wants it with `/v1`."""
        return f"http://127.0.0.1:{self._listener.server_port}"

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

    def reply_to(self, request: ModelRequest) -> tuple[ModelRequest, Reply | Exception]:
        """Logs a request and asks the script; used by the handler threads."""
        if request.background:
            with self._lock:
                self.background.append(request)
            return request, Text('{"title": "Scripted session"}')
        with self._lock:
            key = (request.session_id, request.entries)
            request = replace(request, attempt=self._seen[key])
            self._seen[key] += 1
            self.requests.append(request)
        try:
            return request, self._script(request)
        except Exception as problem:  # noqa: BLE001  a test's script may raise anything
            self._problems.append(problem)
            return request, problem

    def log_other(self, line: str) -> None:
        """Logs a request that is not for a model's answer."""
        with self._lock:
            self.others.append(line)

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Vectors that count letters: texts of the same letters point in the same direction."""
        with self._lock:
            self.embedded.append(texts)
        return [[float(text.lower().count(letter)) for letter in ascii_lowercase] for text in texts]
