"""An HTTP server on loopback between the agents of a run and their models.

Requests and answers are passed on as they come, in both directions. An agent's address is its
trial's own, and what it has for a key is worth nothing elsewhere: the real one is put in here.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from skillup.gateway.meter import Mask, Route

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import web

# Of one connection and not of the message; what is packed could not be metered.
_HOP_BY_HOP = frozenset(
    b"""
    connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade host accept-encoding expect
    """.split()
)
_OWN_NAMES = ("localhost", "127.0.0.1")  # Else a name may lead to what is not meant
_IDLE_SECONDS = 4.0  # Servers close connections that they have not used for longer
# Of both sides, in bytes: how much is read before it is passed on, and how long headers may be.
_LIMITS: dict[str, Any] = {"read_bufsize": 1 << 17, "max_line_size": 65_536}
_LIMITS |= {"max_field_size": 65_536, "auto_decompress": False}


class Gateway:
    """Of one run. Made by :func:`open_gateway`."""

    def __init__(self, env: Mapping[str, str], port: int, socket: Path, keep: bool) -> None:
        self.port, self.socket = port, socket
        self._environment, self._keeps = env, keep
        self._routes: WeakValueDictionary[str, Route] = WeakValueDictionary()
        self.client: aiohttp.ClientSession | None = None

    def route(
        self, upstream: str, streams: Any = None, mask: Mask = bytes, hosts: Sequence[str] = ()
    ) -> Route:
        """A new trial's, to the model at that URL and `hosts`; kept bodies go to `streams`."""
        made = Route(upstream, self.port, streams if self._keeps else None, mask, hosts)
        self._routes[made.token] = made
        return made

    async def serve(self, listener: socket.socket) -> None:
        """All agents that come there, until this is cancelled."""
        await anyio.wait_readable(listener)  # It takes long to import, while an agent starts
        await anyio.to_thread.run_sync(import_module, "aiohttp.web")
        from aiohttp import web

        silent: Any = {"access_log": None, "logger": logging.Logger("", logging.CRITICAL + 1)}
        # Where an agent goes, its request is broken off: nobody wants the answer.
        server = web.Server(self._answered, handler_cancellation=True, **_LIMITS, **silent)
        opened = await asyncio.get_running_loop().create_server(server, sock=listener)
        try:
            await anyio.sleep_forever()
        finally:
            opened.close()
            with anyio.CancelScope(shield=True):
                await server.shutdown(0.1)  # Agents have ended before

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        """Pass a request on to the model, and its answer to the agent."""
        import aiohttp
        from aiohttp import web
        from yarl import URL

        if request.method == "CONNECT":
            return await self._connected(request)
        token, _, path = request.raw_path.lstrip("/").partition("/")
        route, has_body = self._routes.get(token), request.body_exists
        if route is None or not route.is_open or ".." in unquote(path):
            return web.Response(status=404, text="skillup: no trial has this address")
        if "upgrade" in request.headers:  # The CLI then asks by plain requests
            return web.Response(status=426, text="skillup: no WebSockets here")
        exchange, answer = route.exchange(f"/{path}"), web.StreamResponse()

        async def body() -> AsyncIterator[bytes]:
            async for part in request.content.iter_any():
                exchange.asked(part)
                yield part
            exchange.asked_all()  # The model has all of it by now, and thinks

        if not has_body:
            exchange.asked_all()
        self.client = self.client or open_client(self._environment)
        asked = route.with_keys(exchange.path.encode(errors="replace"), b"key=").decode()
        try:
            content: Any = body() if has_body else None
            if has_body and route.is_spent():  # Whether this is another attempt, all of it says
                content = b"".join([part async for part in content])
                if refusal := route.refusal(exchange):
                    return web.Response(status=400, text=refusal, content_type="application/json")
            async with self.client.request(
                request.method,
                URL(route.upstream + asked, encoded=True),
                headers=_passed_on(request.raw_headers, route.with_keys),
                data=content,
                proxy=proxy_to(route.upstream, self._environment),
                allow_redirects=False,
            ) as told:
                exchange.answers(told.status, told.raw_headers)
                headers = _passed_on(told.raw_headers, route.without_keys)
                answer = web.StreamResponse(status=told.status, headers=headers)
                if writer := await answer.prepare(request):
                    writer.send_headers()  # They do not wait for the first part
                async for part in route.hidden(told.content.iter_any(), exchange.answered):
                    await answer.write(part)
                exchange.answered_all()  # Before the agent knows that it has ended
                await answer.write_eof()
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as broken:
            if request.transport is not None and not request.transport.is_closing():
                exchange.broken = True
                request.transport.close()  # As it would without us
            why = getattr(broken, "message", broken)  # All of some names a proxy's password
            told_as = f"{route.upstream}: {type(broken).__name__}: {why}".encode(errors="replace")
            route.trouble = route.without_keys(told_as).decode()
        finally:
            exchange.answered_all()
        return answer

    async def _connected(self, request: web.BaseRequest) -> web.StreamResponse:
        """To one of the hosts that the trial may reach; what passes is not looked at."""
        from base64 import b64decode
        from ipaddress import ip_address

        from aiohttp import web

        given = request.headers.get("proxy-authorization", "").rpartition(" ")[2]
        token = b64decode(given).decode(errors="replace").partition(":")[0]
        route, target, near = self._routes.get(token), request.raw_path, request.transport
        host, _, port = target.rpartition(":")
        if near is None or route is None or not route.is_open or not route.allows(target):
            return web.Response(status=403, text=f"skillup: {target} is not in allowed_egress")
        from_far, to_far = await asyncio.open_connection(host.strip("[]"), int(port))
        try:
            ends = to_far.get_extra_info("sockname"), to_far.get_extra_info("peername")
            own, there = (ip_address(end[0]) for end in ends)
            there = getattr(there, "ipv4_mapped", None) or there
            is_here = own == there or there.is_loopback or there.is_link_local
            if is_here and host not in _OWN_NAMES:
                what = f"skillup: {host} is an address of this machine"
                return web.Response(status=403, text=what)
            from_near = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(from_near)
            near.write(b"HTTP/1.1 200 OK\r\n\r\n")
            near.set_protocol(protocol)  # From here on it is no HTTP
            to_near = asyncio.StreamWriter(near, protocol, from_near, asyncio.get_running_loop())
            async with asyncio.TaskGroup() as group:
                group.create_task(_copied(from_near, to_far))
                group.create_task(_copied(from_far, to_near))
        except* OSError:  # Where either breaks, both directions do
            pass
        finally:
            to_far.close()
        near.close()
        request.protocol.connection_lost(None)  # It is not told any more
        return web.Response()  # To nobody


def open_client(env: Mapping[str, str]) -> aiohttp.ClientSession:
    """Asks models; trusts what the system does and what `env`, the user's variables, names."""
    import aiohttp

    context = ssl.create_default_context()
    if sys.platform == "darwin":  # OpenSSL does not find the system's there
        import truststore

        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE"):  # of either CLI
        if file := env.get(name):
            context.load_verify_locations(file)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=0, keepalive_timeout=_IDLE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),  # Trials share none
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        timeout=aiohttp.ClientTimeout(sock_connect=30),
        **_LIMITS,
    )


def proxy_to(upstream: str, env: Mapping[str, str]) -> str | None:
    """The proxy that the user's variables `env` name for it. Raises ValueError."""
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    parts = urlsplit(upstream)
    names = (f"{parts.scheme}_proxy", "all_proxy")
    proxy = next(filter(None, (env.get(n) or env.get(n.upper()) for n in names)), "")
    spared = {"no": env.get("no_proxy") or env.get("NO_PROXY") or ""}
    if not proxy or proxy_bypass_environment(parts.hostname or "", spared):
        return None
    by = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if by.scheme not in ("http", "https") or not by.hostname or by.port == 0:
        raise ValueError(f"a proxy of {by.scheme}:// cannot be asked, only http://HOST:PORT")
    return by.geturl()


def _passed_on(
    headers: Iterable[tuple[bytes, bytes]], change: Callable[[bytes], bytes]
) -> list[tuple[str, str]]:
    left = ((n, change(v)) for n, v in headers if n.lower() not in _HOP_BY_HOP)
    return [(name.decode(), value.decode(errors="replace")) for name, value in left]


async def _copied(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Until `source` ends."""
    while part := await source.read(65_536):
        target.write(part)
        await target.drain()
    target.write_eof()


@asynccontextmanager
async def open_gateway(env: Mapping[str, str], keep: bool = False) -> AsyncIterator[Gateway]:
    """A gateway that serves while this lasts; `env` is the user's own, `keep`: bodies, too."""
    short = None if len(tempfile.gettempdir()) < 60 else "/tmp"  # noqa: S108 - a socket's path is
    with (
        tempfile.TemporaryDirectory("-skillup", dir=short, ignore_cleanup_errors=True) as folder,
        socket.create_server(("127.0.0.1", 0)) as loopback,
        socket.socket(socket.AF_UNIX) as local,
    ):
        path = Path(folder, "model.sock")
        local.bind(str(path))
        path.chmod(0o600)
        local.listen()
        gateway = Gateway(env, loopback.getsockname()[1], path, keep)
        async with anyio.create_task_group() as group:
            group.start_soon(gateway.serve, loopback)
            group.start_soon(gateway.serve, local)
            try:
                yield gateway
            finally:
                group.cancel_scope.cancel()
                if gateway.client is not None:
                    with anyio.CancelScope(shield=True):
                        await gateway.client.close()
