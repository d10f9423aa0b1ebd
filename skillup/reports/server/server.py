"""The server of `skillup view`: HTTP on loopback, for reading only."""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from skillup.errors import UsageError
from skillup.reports.server.routes import Answer, Answers, Changes, error_answer
from skillup.reports.server.runs import Served

# Who may ask: this machine's own browser, on purpose, and nobody through it.

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_OWN_SITES = ("same-origin", "none")
"""`none`: typed in, from a bookmark, or opened by a program."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What requests to one server must look like."""

    port: int
    token: str

    def refusal(self, headers: Message) -> str | None:
        """Why a request with these headers is not answered; None: it may be."""
        hosts = headers.get_all("Host") or []
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return "this server answers to 127.0.0.1 and localhost only"
        for origin in headers.get_all("Origin") or []:
            scheme, host = urlsplit_or_nothing(origin)
            if scheme != "http" or not self._is_own(host):
                return "requests from other sites are not answered"
        for site in headers.get_all("Sec-Fetch-Site") or []:
            if site.strip().lower() not in _OWN_SITES:
                return "requests from other sites are not answered"
        return None

    def inner_path(self, target: str) -> str | None:
        """What comes after the secret in the path of a request; None: the secret is not there.

        ``/SECRET/api/runs?x=1`` → ``api/runs``.
        """
        path = target.partition("?")[0].partition("#")[0]
        if not path.startswith("/"):
            return None
        first, slash, rest = path[1:].partition("/")
        if not slash or not hmac.compare_digest(first.encode(), self.token.encode()):
            return None
        return rest

    def _is_own(self, host: str) -> bool:
        name, colon, port = host.strip().lower().rpartition(":")
        if not colon or (host.endswith("]") and name.startswith("[")):
            name, port = host.strip().lower(), "80"
        return name in _NAMES and port == str(self.port)


def urlsplit_or_nothing(origin: str) -> tuple[str, str]:
    """Scheme and host of an Origin; empty for what is none (``null``)."""
    try:
        parts = urlsplit(origin.strip())
    except ValueError:
        return "", ""
    return parts.scheme, "" if parts.path or parts.query else parts.netloc


ADDRESS = "127.0.0.1"
USUAL_PORT = 7575
_PATIENCE = 30
"""Seconds to wait for a request to come in whole."""
_MOST_AT_ONCE = 200
"""Connections. Each has a thread, and whoever opens more leaves no files for reading runs."""
_GOES_WITHIN = 2.0
"""Seconds that a connection may take to go, once it is closed for another one."""
_LOOK_EVERY = 0.5
_SAY_EVERY = 10.0
"""Seconds, so that a connection whose other end has gone is noticed."""

_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
# The page says more of its own in itself; what is here holds for everything.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"


class ViewServer(ThreadingHTTPServer):
    """Serves until :meth:`stop`; connections that are open do not keep it."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128  # the library's 5 makes a browser with a few tabs wait seconds

    def __init__(self, served: Served, port: int | None, first: str | None = None) -> None:
        """`port`: 0 for any that is free; None: the usual one, or any if that is in use.

        Raises UsageError if the port cannot be had.
        """
        self.answers = Answers(served, first)
        self.stopping = threading.Event()
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self.streams = threading.BoundedSemaphore(_MOST_AT_ONCE // 2)
        """So that however many pages wait for changes, others are answered."""
        self._silent: dict[socket.socket, None] = {}
        """Connections that have not sent a whole request, the one that is so longest first."""
        try:
            super().__init__((ADDRESS, USUAL_PORT if port is None else port), _Handler)
        except OSError as error:
            if port is not None:
                why = (error.strerror or str(error)).lower()
                hint = "choose another one, or leave --port out"
                raise UsageError(f"--port {port}: {why}", hint=hint) from None
            super().__init__((ADDRESS, 0), _Handler)
        self.guard = Guard(self.server_port, secrets.token_urlsafe(12))

    @property
    def url(self) -> str:
        """What to open: the secret is in it."""
        return f"http://{ADDRESS}:{self.server_port}/{self.guard.token}/"

    def stop(self) -> None:
        """End :meth:`serve_forever`, and what tells of changes; from any thread but its own."""
        self.stopping.set()
        self.shutdown()

    def server_bind(self) -> None:
        """Without asking a name server what this machine is called."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own; beyond what there is room for, a silent connection is closed."""
        if not self._room.acquire(blocking=False) and not self._make_room():
            self.shutdown_request(request)
            return
        try:
            self.is_silent(request)
            super().process_request(request, client_address)
        except BaseException:  # no thread could be had
            self.is_heard(request)
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """What the thread does."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.is_heard(request)
            self._room.release()

    def is_silent(self, connection: socket.socket) -> None:
        """A request of it is waited for."""
        self._silent[connection] = None

    def is_heard(self, connection: socket.socket) -> None:
        """Its request is there, or it has gone."""
        self._silent.pop(connection, None)

    def _make_room(self) -> bool:
        """In place of the connection that has been silent longest; whether there was one."""
        for connection in list(self._silent):
            self.is_heard(connection)
            with suppress(OSError):  # it has gone just now
                connection.shutdown(socket.SHUT_RDWR)  # which its thread notices
            return self._room.acquire(timeout=_GOES_WITHIN)
        return False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version = "skillup"
    sys_version = ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def handle_one_request(self) -> None:
        self.server.is_silent(self.connection)
        super().handle_one_request()

    def _answer(self) -> None:
        self.server.is_heard(self.connection)
        refusal = self.server.guard.refusal(self.headers)
        if refusal is not None:
            self.close_connection = True
            self._send(error_answer(403, refusal))
            return
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            self._send(error_answer(400, "a request to read has no body"))
            return
        path = self.server.guard.inner_path(self.path)
        if path is None:
            self._send(error_answer(404, "open the address that `skillup view` printed"))
            return
        answer = self.server.answers.of(path, self.path.partition("?")[2])
        if isinstance(answer, Answer):
            self._send(answer)
        else:
            self._tell_changes(answer)

    def _send(self, answer: Answer) -> None:
        is_page = answer.kind.startswith("text/html")
        try:
            self._head(answer.status, answer.kind, _PAGE_POLICY if is_page else _DATA_POLICY)
            self.send_header("Content-Length", str(answer.length))
            for name, value in answer.headers:
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command == "HEAD":
                return
            if isinstance(answer.body, bytes):
                self.wfile.write(answer.body)
            else:
                self._send_file(answer)
        finally:
            if not isinstance(answer.body, bytes):
                answer.body.close()

    def _send_file(self, answer: Answer) -> None:
        """As much as was promised: a file that is being written grows meanwhile."""
        assert not isinstance(answer.body, bytes)
        left = answer.length
        while left > 0:
            piece = answer.body.read(min(left, 1 << 16))
            if not piece:
                self.close_connection = True  # it became shorter
                return
            self.wfile.write(piece)
            left -= len(piece)

    def _tell_changes(self, changes: Changes) -> None:
        """Server-Sent Events, until the browser or the server goes."""
        self.close_connection = True
        if not self.server.streams.acquire(blocking=False):
            self._send(error_answer(503, "too many pages wait for changes: close some"))
            return
        try:
            self._stream(changes)
        finally:
            self.server.streams.release()

    def _stream(self, changes: Changes) -> None:
        self._head(200, "text/event-stream; charset=utf-8", _DATA_POLICY)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        self._say(b"retry: 2000\n\n")
        seen, said = changes.stamp(), time.monotonic()
        while not self.server.stopping.wait(_LOOK_EVERY):
            now = changes.stamp()
            if now != seen:
                self._say(b"event: changed\ndata: {}\n\n")
            elif time.monotonic() - said > _SAY_EVERY:
                self._say(b": still here\n\n")
            else:
                continue
            seen, said = now, time.monotonic()

    def _say(self, text: bytes) -> None:
        self.wfile.write(text)
        self.wfile.flush()

    def _head(self, status: int, kind: str, policy: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS:
            self.send_header(name, value)

    def send_error(self, code: int, *_: Any, **__: Any) -> None:
        """What is no HTTP, or another method than GET and HEAD: nothing of it is sent back."""
        self.close_connection = True  # what has been sent along is not read
        if getattr(self, "command", None) is None:
            self.command, self.request_version = "GET", "HTTP/1.1"
        if code == 501:
            self._send(error_answer(405, "this server is for reading only", allow="GET, HEAD"))
        else:
            known = code if code in (408, 414, 431, 505) else 400
            self._send(error_answer(known, "this is no request that can be read"))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Nothing: people look at the page, not at its log."""
