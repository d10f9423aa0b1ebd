"""An HTTP server on loopback between the agents of a run and their models.

Requests and answers are passed on as they come, in both directions. An agent's address is its
trial's own, and what it has for a key is worth nothing elsewhere: the real one is put in here.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import anyio
import h11
import httpcore2
from anyio.abc import ByteStream, SocketAttribute

from skillup.gateway.meter import Mask, ModelExchange, Route
from skillup.workspace.disk import do_beside

# Of one connection and not of the message; what is packed could not be metered.
_NOT_PASSED_ON = frozenset(
    b"""
    connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade host accept-encoding expect
    """.split()
)
_CONNECT_SECONDS = 30.0
_IDLE_SECONDS = 15.0  # Servers close connections that they have not used for longer
_READ_BYTES = 1 << 16
_SHORT_BYTES = 1 << 18


class Gateway:
    """Of one run. Made by :func:`open_gateway`."""

    def __init__(self, env: Mapping[str, str], port: int, socket: Path, keep: bool) -> None:
        self.port, self.socket = port, socket
        self._environment, self._keeps = env, keep
        self._routes: dict[str, Route] = {}
        self.pools: dict[str | None, httpcore2.AsyncConnectionPool] = {}

    def route(self, upstream: str, streams: Any = None, mask: Mask = bytes) -> Route:
        """A new trial's, to the model at that URL; bodies go to `streams`, if they are kept."""
        made = Route(self.port, upstream, streams if self._keeps else None, mask)
        self._routes[made.token] = made
        return made

    def pool(self, upstream: str) -> httpcore2.AsyncConnectionPool:
        """Connections to there, by the proxy that the user's variables name."""
        parts, env = urlsplit(upstream), self._environment
        names = (f"{parts.scheme}_proxy", "all_proxy")
        proxy = next(filter(None, (env.get(n) or env.get(n.upper()) for n in names)), None)
        spared = env.get("no_proxy") or env.get("NO_PROXY") or ""
        if proxy and proxy_bypass_environment(parts.hostname or "", {"no": spared}):
            proxy = None
        if proxy not in self.pools:
            context = httpcore2.default_ssl_context()
            for name in ("NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE"):  # of either CLI
                if file := env.get(name):
                    context.load_verify_locations(file)
            self.pools[proxy] = httpcore2.AsyncConnectionPool(
                ssl_context=context,
                proxy=_proxy(proxy) if proxy else None,
                max_connections=None,
                keepalive_expiry=_IDLE_SECONDS,
            )
        return self.pools[proxy]

    async def serve(self, stream: ByteStream) -> None:
        """One connection of an agent's."""
        async with stream:
            connection = _Connection(stream)
            with suppress(Exception):  # of this connection: no other is to know
                while isinstance(request := await connection.event(), h11.Request):
                    if not await self._answer(connection, request):
                        return

    async def _answer(self, connection: _Connection, request: h11.Request) -> bool:
        """Whether another request may follow."""
        token, _, path = request.target.decode("latin-1").lstrip("/").partition("/")
        route = self._routes.get(token)
        if route is None or not route.is_open:
            return await connection.refuse(404, "skillup: no trial has this address")
        if any(name == b"upgrade" for name, _ in request.headers):
            # The CLI then asks by plain requests.
            return await connection.refuse(426, "skillup: no WebSockets here")
        exchange = ModelExchange(f"/{path}", route.prompts)
        route.exchanges.append(exchange)
        async with anyio.create_task_group() as group:
            group.start_soon(connection.watch, group.cancel_scope)
            try:
                await self._pass(connection, request, route, exchange)
            except Exception as broken:  # noqa: BLE001 - as without us: its connection ends
                connection.gone = True
                route.trouble = f"{route.upstream}: {broken or type(broken).__name__}"
            group.cancel_scope.cancel()
        return not connection.gone and connection.next()

    async def _pass(
        self, connection: _Connection, request: h11.Request, route: Route, exchange: ModelExchange
    ) -> None:
        """A request to the model, and its answer to the agent."""
        kept = bytearray(), bytearray()

        async def body() -> AsyncIterator[bytes]:
            async for part in connection.body():
                exchange.asked(part)
                if route.stream:
                    kept[0].extend(part)
                yield part
            # The model has all of it by now, and thinks.
            await do_beside(len(exchange.body) < _SHORT_BYTES, exchange.asked_all)

        given = dict(request.headers)
        has_body = b"content-length" in given or b"transfer-encoding" in given
        if not has_body:
            await anext(body(), None)
        asked = self.pool(route.upstream).stream(
            request.method,
            route.upstream.encode() + route.with_keys(exchange.path.encode("latin-1")),
            headers=[
                (n, route.with_keys(v)) for n, v in request.headers if n not in _NOT_PASSED_ON
            ],
            content=body() if has_body else None,
            extensions={"timeout": {"connect": _CONNECT_SECONDS}},
        )
        try:
            async with asked as answer:
                exchange.answers(answer.status, answer.headers)
                left = [(n, v) for n, v in answer.headers if n.lower() not in _NOT_PASSED_ON]
                await connection.send(h11.Response(status_code=answer.status, headers=left))
                async for part in answer.aiter_stream():
                    # First: when the agent has it all, all of it is counted.
                    exchange.answered(part)
                    if route.stream:
                        kept[1].extend(part)
                    await connection.send(h11.Data(data=part))
                exchange.answered_all()
                await connection.send(h11.EndOfMessage())
        finally:
            route.keep(exchange, *map(bytes, kept))


class _Connection:
    """What h11 knows of a connection of an agent's."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._state = stream, h11.Connection(h11.SERVER)
        self._is_whole = anyio.Event()
        self.gone = False

    async def event(self) -> Any:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            if self._state.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            try:
                data = await self._stream.receive(_READ_BYTES)
            except anyio.EndOfStream:
                data = b""
            self._state.receive_data(data)
        return event

    async def body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self.event(), h11.Data):
            yield bytes(event.data)
        self._is_whole.set()

    async def watch(self, scope: anyio.CancelScope) -> None:
        """Break the request off when the agent has gone: nobody wants its answer."""
        await self._is_whole.wait()
        with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                self._state.receive_data(await self._stream.receive(_READ_BYTES))
        self.gone = True
        scope.cancel()

    async def send(self, event: h11.Event) -> None:
        if data := self._state.send(event):
            await self._stream.send(data)

    def next(self) -> bool:
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        self._is_whole = anyio.Event()
        return True

    async def refuse(self, status: int, why: str) -> bool:
        headers = [("content-length", str(len(why))), ("connection", "close")]
        await self.send(h11.Response(status_code=status, headers=headers))
        await self.send(h11.Data(data=why.encode()))
        return False


def _proxy(url: str) -> httpcore2.Proxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    port = f":{parts.port}" if parts.port else ""
    auth = (parts.username or "", parts.password or "") if parts.username else None
    return httpcore2.Proxy(f"{parts.scheme}://{parts.hostname}{port}", auth=auth)


@asynccontextmanager
async def open_gateway(env: Mapping[str, str], keep: bool = False) -> AsyncIterator[Gateway]:
    """A gateway that serves while this lasts; `env` is the user's own, `keep`: bodies, too."""
    short = None if len(tempfile.gettempdir()) < 60 else "/tmp"  # noqa: S108 - a socket's path is
    with tempfile.TemporaryDirectory("-skillup", dir=short, ignore_cleanup_errors=True) as folder:
        socket = Path(folder, "model.sock")
        loopback = await anyio.create_tcp_listener(local_host="127.0.0.1")
        local = await anyio.create_unix_listener(socket, mode=0o600)
        port = loopback.extra(SocketAttribute.local_port)  # noqa: S610
        gateway = Gateway(env, port, socket, keep)
        async with loopback, local, anyio.create_task_group() as group:
            group.start_soon(loopback.serve, gateway.serve)
            group.start_soon(local.serve, gateway.serve)
            try:
                yield gateway
            finally:
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    for pool in gateway.pools.values():
                        await pool.aclose()
