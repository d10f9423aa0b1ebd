"""An HTTP server on loopback between the agents of a run and their models.

Requests and answers are passed on as they come, in both directions. An agent's address is its
trial's own, and what it has for a key is worth nothing elsewhere: the real one is put in here.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from anyio.abc import ByteStream, SocketAttribute

from skillup.gateway.meter import Mask, Route

if TYPE_CHECKING:
    import h11
    import httpcore2

# Of one connection and not of the message; what is packed could not be metered.
_HOP_BY_HOP = frozenset(
    b"""
    connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade host accept-encoding expect
    """.split()
)
_CONNECT_SECONDS = 30.0
_OWN_NAMES = ("localhost", "127.0.0.1")  # Else a name may lead to what is not meant
_IDLE_SECONDS = 4.0  # Servers close connections that they have not used for longer


class Gateway:
    """Of one run. Made by :func:`open_gateway`."""

    def __init__(self, env: Mapping[str, str], port: int, socket: Path, keep: bool) -> None:
        self.port, self.socket = port, socket
        self._environment, self._keeps = env, keep
        self._routes: WeakValueDictionary[str, Route] = WeakValueDictionary()
        self.pools: dict[str, httpcore2.AsyncConnectionPool] = {}  # By proxy

    def route(
        self, upstream: str, streams: Any = None, mask: Mask = bytes, hosts: Sequence[str] = ()
    ) -> Route:
        """A new trial's, to the model at that URL; bodies go to `streams`, if they are kept.

        And to `hosts`, for which it is a proxy.
        """
        streams = streams if self._keeps else None
        made = Route(upstream, self.port, streams, mask, hosts)
        self._routes[made.token] = made
        return made

    async def serve(self, stream: ByteStream) -> None:
        """One connection of an agent's."""
        async with stream:
            if "httpcore2" not in sys.modules:  # It takes long, while an agent is waited for
                await anyio.to_thread.run_sync(import_module, "httpcore2")
            connection = _Connection(stream)
            with suppress(Exception):  # It ends as it would without us; no other is to know
                while True:
                    await self._answer(connection, await connection.event())
                    connection.start_next()

    async def _answer(self, connection: _Connection, request: h11.Request) -> None:
        """Pass a request on to the model, and its answer to the agent."""
        import h11

        if request.method == b"CONNECT":
            return await self._connect(connection, request)
        token, _, path = request.target.decode("latin-1").lstrip("/").partition("/")
        route, given = self._routes.get(token), dict(request.headers)
        if route is None or not route.is_open or ".." in unquote(path):
            return await connection.refuse(404, "skillup: no trial has this address")
        if b"upgrade" in given:  # The CLI then asks by plain requests
            return await connection.refuse(426, "skillup: no WebSockets here")
        exchange = route.exchange(f"/{path}")

        async def body() -> AsyncIterator[bytes]:
            while isinstance(event := await connection.event(), h11.Data):
                exchange.asked(event.data)
                yield bytes(event.data)
            exchange.asked_all()  # The model has all of it by now, and thinks
            group.start_soon(connection.watch, group.cancel_scope)

        has_body = b"content-length" in given or b"transfer-encoding" in given
        try:
            async with anyio.create_task_group() as group:
                content: Any = body() if has_body else None
                if not has_body:
                    await anext(body(), None)
                elif route.is_spent():  # Whether this is another attempt, all of it says
                    content = b"".join([part async for part in content])
                    if refusal := route.refusal(exchange):
                        await connection.refuse(400, refusal, "application/json")
                        group.cancel_scope.cancel()
                        return None
                asked = pool_to(route.upstream, self._environment, self.pools).stream(
                    request.method,
                    route.upstream.encode()
                    + route.with_keys(exchange.path.encode("latin-1"), b"key="),
                    headers=[
                        (n, route.with_keys(v)) for n, v in request.headers if n not in _HOP_BY_HOP
                    ],
                    content=content,
                    extensions={"timeout": {"connect": _CONNECT_SECONDS}},
                )
                async with asked as answer:
                    exchange.answers(answer.status, answer.headers)
                    hides, own = route.without_keys, answer.headers
                    left = [(n, hides(v)) for n, v in own if n.lower() not in _HOP_BY_HOP]
                    await connection.send(h11.Response(status_code=answer.status, headers=left))
                    async for part in answer.aiter_stream():
                        exchange.answered(part)
                        await connection.send(h11.Data(data=route.without_keys(part)))
                    exchange.answered_all()  # Before the agent knows that it has ended
                    await connection.send(h11.EndOfMessage())
                group.cancel_scope.cancel()
        except* Exception as broken:
            gone = anyio.BrokenResourceError, anyio.ClosedResourceError  # The agent has
            exchange.broken = not isinstance(broken.exceptions[0], gone)
            route.trouble = f"{route.upstream}: {broken.exceptions[0]!r}"
            raise
        finally:
            exchange.answered_all()

    async def _connect(self, connection: _Connection, request: h11.Request) -> None:
        """To one of the hosts that the trial may reach; what passes is not looked at."""
        from base64 import b64decode
        from ipaddress import ip_address

        import h11

        given = dict(request.headers).get(b"proxy-authorization", b"").rpartition(b" ")[2]
        token = b64decode(given).decode(errors="replace").partition(":")[0]
        route, target = self._routes.get(token), request.target.decode("latin-1")
        host, _, port = target.rpartition(":")
        if route is None or not route.is_open or not route.allows(target):
            await connection.refuse(403, f"skillup: {target} is not in allowed_egress")
            return
        async with await anyio.connect_tcp(host, int(port)) as far:
            ends = (SocketAttribute.local_address, SocketAttribute.remote_address)
            own, there = (ip_address(far.extra(end)[0]) for end in ends)  # noqa: S610
            there = getattr(there, "ipv4_mapped", None) or there
            is_here = own == there or there.is_loopback or there.is_link_local
            if is_here and host not in _OWN_NAMES:
                await connection.refuse(403, f"skillup: {host} is an address of this machine")
                return
            await connection.send(h11.Response(status_code=200, headers=[]))
            async with anyio.create_task_group() as group:
                group.start_soon(_copy, connection.stream, far, group.cancel_scope)
                await _copy(far, connection.stream, group.cancel_scope)


def pool_to(
    upstream: str, env: Mapping[str, str], pools: dict[str, httpcore2.AsyncConnectionPool]
) -> httpcore2.AsyncConnectionPool:
    """Connections to there, by the proxy that the user's variables `env` name."""
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    import httpcore2

    parts = urlsplit(upstream)
    names = (f"{parts.scheme}_proxy", "all_proxy")
    proxy = next(filter(None, (env.get(n) or env.get(n.upper()) for n in names)), "")
    spared = {"no": env.get("no_proxy") or env.get("NO_PROXY") or ""}
    if proxy_bypass_environment(parts.hostname or "", spared):
        proxy = ""
    if proxy not in pools:
        context = httpcore2.default_ssl_context()
        for name in ("NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE"):  # of either CLI
            if file := env.get(name):
                context.load_verify_locations(file)
        by = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        auth = (unquote(by.username), unquote(by.password or "")) if by.username else None
        pools[proxy] = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            proxy=httpcore2.Proxy(by.geturl(), auth) if proxy else None,
            max_connections=None,
            keepalive_expiry=_IDLE_SECONDS,
        )
    return pools[proxy]


class _UnixStream(ByteStream):
    """A connection to the Unix socket. anyio's own makes an error of a read that is broken off."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not (data := await self._reader.read(max_bytes)):
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        self._writer.write(item)
        await self._writer.drain()

    async def send_eof(self) -> None:
        self._writer.write_eof()

    async def aclose(self) -> None:
        self._writer.close()


class _Connection:
    """What h11 knows of a connection of an agent's."""

    def __init__(self, stream: ByteStream) -> None:
        import h11

        self.stream, self._state = stream, h11.Connection(h11.SERVER)
        self._more: object = h11.NEED_DATA
        self.start_next = self._state.start_next_cycle  # Raises if one side has not ended, or left

    async def event(self) -> Any:
        """The next one. Raises what h11 and the stream do."""
        while (event := self._state.next_event()) is self._more:
            self._state.receive_data(await self.stream.receive())
        return event

    async def watch(self, scope: anyio.CancelScope) -> None:
        """Breaks the request off when the agent has gone: nobody wants its answer."""
        try:
            self._state.receive_data(await self.stream.receive())
        except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
            scope.cancel()

    async def send(self, event: h11.Event) -> None:
        if data := self._state.send(event):
            await self.stream.send(data)

    async def refuse(self, status: int, why: str, kind: str = "text/plain") -> None:
        import h11

        headers = {"content-length": str(len(why)), "content-type": kind, "connection": "close"}
        await self.send(h11.Response(status_code=status, headers=[*headers.items()]))
        await self.send(h11.Data(data=why.encode()))


async def _copy(source: ByteStream, target: ByteStream, scope: anyio.CancelScope) -> None:
    """Until `source` ends; where either breaks, both directions do."""
    try:
        while True:
            await target.send(await source.receive())
    except anyio.EndOfStream:
        await target.send_eof()
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        scope.cancel()


@asynccontextmanager
async def open_gateway(env: Mapping[str, str], keep: bool = False) -> AsyncIterator[Gateway]:
    """A gateway that serves while this lasts; `env` is the user's own, `keep`: bodies, too."""
    short = None if len(tempfile.gettempdir()) < 60 else "/tmp"  # noqa: S108 - a socket's path is
    with tempfile.TemporaryDirectory("-skillup", dir=short, ignore_cleanup_errors=True) as folder:
        socket = Path(folder, "model.sock")
        loopback = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = loopback.extra(SocketAttribute.local_port)  # noqa: S610
        gateway = Gateway(env, port, socket, keep)
        async with loopback, anyio.create_task_group() as group:
            group.start_soon(loopback.serve, gateway.serve)
            local = await asyncio.start_unix_server(
                lambda *ends: group.start_soon(gateway.serve, _UnixStream(*ends)), socket
            )
            socket.chmod(0o600)
            try:
                yield gateway
            finally:
                local.close()
                group.cancel_scope.cancel()
                for pool in gateway.pools.values():
                    await pool.aclose()
