"""The gateway between scripted agents and scripted providers, with real sockets."""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpcore2
import pytest
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSListener

from skillup.engines.base import EngineTurn
from skillup.engines.events import Failure, failure_of_model
from skillup.gateway.meter import Route
from skillup.gateway.server import Gateway, open_gateway
from skillup.schema.profile import Price, Profile
from skillup.schema.record import Traffic, TurnError, Usage
from skillup.trial.session import compared
from tests.support.model_server import Answer, Drop, HttpError, ModelServer, Reply, Text, by_rules
from tests.support.model_server import Usage as Counts

pytestmark = pytest.mark.anyio

Handler = Callable[[ByteStream, bytes], Awaitable[None]]
"""Answers on a connection the first bytes that came."""
TOOL = {"name": "shell"}
ANSWER = Answer(Text("fine"), Counts(input=90, cached=40, output=12, reasoning=5, cache_write=3))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def upstream(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A provider that answers with raw bytes."""

    async def serve(stream: ByteStream) -> None:
        async with stream:
            await handler(stream, await stream.receive())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon((TLSListener(listener, tls) if tls else listener).serve, serve)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


async def post(route: Route, path: str, body: Any, headers: Any = None) -> httpcore2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpcore2.AsyncConnectionPool() as pool:
        return await pool.request("POST", route.url + path, headers=headers or {}, content=content)


def said(*texts: str, tools: bool = True, **more: Any) -> dict[str, Any]:
    """A request in the form of Anthropic's and of Chat Completions."""
    messages = []
    for text in texts:
        messages += [{"role": "user", "content": [{"type": "text", "text": text}]}]
        messages += [{"role": "assistant", "content": "fine"}]
    return {"model": "m", "messages": messages[:-1], "tools": [TOOL] if tools else [], **more}


BOTH = {"cached_input_tokens": 40, "output_tokens": 12, "requests": 1}
SEEN = Usage(input_tokens=90, reasoning_tokens=5, **BOTH)
DIALECTS = {
    "anthropic": (
        "/v1/messages?beta=true",
        said("one", "two"),
        # Anthropic counts what is cached apart.
        Usage(input_tokens=133, cache_write_tokens=3, **BOTH),
    ),
    "responses": (
        "/v1/responses",
        {
            "model": "m",
            "tools": [TOOL],
            "input": [
                {"role": role, "type": "message", "content": [{"type": "input_text", "text": text}]}
                for role, text in (("user", "one"), ("assistant", "fine"), ("user", "two"))
            ],
        },
        SEEN,
    ),
    "chat": (
        "/v1/chat/completions",
        {**said("one", "two"), "tools": [{"type": "function", "function": TOOL}]},
        SEEN,
    ),
}


async def chat_events(stream: ByteStream, _: bytes) -> None:
    """What the model server has not."""
    counts = {"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 40}}
    counts |= {"completion_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 5}}
    events = [{"choices": [{"delta": {"content": "fine"}}], "usage": None}, {"usage": counts}]
    body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:"
    await stream.send(f"{head} {len(body) + 14}\r\n\r\n".encode() + body + b"data: [DONE]\n\n")


@pytest.mark.parametrize("stream", [False, True], ids=["json", "events"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_turn_is_metered_and_proves_that_it_went_on(dialect: str, stream: bool) -> None:
    path, body, seen = DIALECTS[dialect]
    with ModelServer(by_rules(otherwise=lambda _: ANSWER)) as server:
        async with open_gateway({}) as gateway, upstream(chat_events) as other:
            route = gateway.route(other if (dialect, stream) == ("chat", True) else server.url)
            route.begin("turn-02", ["one", "two"])
            answer = await post(route, path, {**body, "stream": stream})
            assert answer.status == 200
            assert b"fine" in answer.content
            traffic = route.end()
            route.begin("turn-03", ["something else", "two"])
            await post(route, path, {**body, "stream": stream})
            forgot = route.end()
    assert traffic.usage == seen
    assert (traffic.requests, traffic.side_requests, traffic.continued) == (1, 0, True)
    assert len(traffic.sha256[0]) == 16
    assert forgot.continued is False


async def test_gemini_is_metered_and_its_key_in_the_address_is_replaced() -> None:
    asked: list[bytes] = []
    counts = {"promptTokenCount": 20, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}
    body = f"data: {json.dumps({'usageMetadata': counts, 'modelVersion': 'g'})}\r\n\r\n".encode()

    async def answer(stream: ByteStream, first: bytes) -> None:
        asked.append(first)
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        await stream.send(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)

    async with upstream(answer) as url, open_gateway({}) as gateway:
        route = gateway.route(url)
        key = route.placeholder("real-key")
        route.begin("turn-01", ["hi"])
        contents = [{"role": "user", "parts": [{"text": "hi"}]}]
        path = f"/v1beta/models/g:streamGenerateContent?alt=sse&key={key}"
        given = {"x-goog-api-key": key, "authorization": f"Bearer {key}", "x-other": "oauth"}
        await post(route, path, {"contents": contents, "tools": [TOOL]}, given)
        traffic = route.end()
    assert traffic.usage is not None
    assert (traffic.usage.input_tokens, traffic.usage.output_tokens) == (20, 7)
    head = asked[0].decode()
    assert "alt=sse&key=real-key " in head
    assert "x-goog-api-key: real-key\r\nauthorization: Bearer real-key\r\nx-other: oauth" in head
    assert key not in head


async def test_a_server_that_repeats_what_it_was_asked_gives_no_key_away() -> None:
    async def repeat(stream: ByteStream, first: bytes) -> None:
        path, query = first.split(b"\r\n")[0].split(b"?")
        head = b"HTTP/1.1 404 no\r\nx: %s\r\ny: %s\r\ncontent-length: %d\r\n\r\n"
        cut = first.find(b"real-key") + 4  # Of those that read on, nobody gets it in two parts
        await stream.send(head % (path, query, len(first)) + first[:cut])
        await anyio.sleep(0.05)
        await stream.send(first[cut:])

    async with upstream(repeat) as url, open_gateway({}) as gateway:
        route = gateway.route(f"{url}/team/v1")
        key = route.placeholder("real-key")
        answer = await post(route, f"/{key}?key={key}", b"", {"x-api-key": key})
        up = await post(route, "/%2e%2e/other", b"")
    assert f"POST /team/v1/{key}?key=********" in answer.content.decode()
    assert b"real-key" not in answer.content + repr(answer.headers).encode()
    assert "key=********" in repr(answer.headers)
    assert b"no trial has this address" in up.content


@pytest.mark.parametrize("host", ["localhost", "[::ffff:127.0.0.1]"])
async def test_no_name_but_its_own_leads_to_this_machine(host: str) -> None:
    """Wherever it is resolved to: in `*.example.com` is what its owner says."""
    with ModelServer() as server:
        async with open_gateway({}) as gateway:
            target = f"{host}:{server.url.rpartition(':')[2]}"
            route = gateway.route("", hosts=[target])
            key = b64encode(f"{route.token}:".encode()).decode()
            async with await anyio.connect_tcp("127.0.0.1", gateway.port) as way:
                given = f"Host: x\r\nProxy-Authorization: Basic {key}\r\n\r\n"
                await way.send(f"CONNECT {target} HTTP/1.1\r\n{given}".encode())
                answer = await way.receive()
    assert answer.split()[1] == (b"200" if host == "localhost" else b"403")


async def test_requests_of_the_clis_own_are_counted_apart_and_refusals_say_how_long() -> None:
    no = HttpError(429, headers={"retry-after": "17"})
    with ModelServer(lambda asked: no if "refuse" in asked.latest else Text("fine")) as server:
        async with open_gateway({}) as gateway:
            route = gateway.route(server.url)
            route.begin("turn-01", ["do it"])
            await post(route, "/v1/messages", said("do it"))
            await post(route, "/v1/messages", said("do it", tools=False))  # a title
            await post(route, "/v1/messages", said("a sub-agent's task"))
            await post(route, "/v1/messages/count_tokens", said("do it"))
            assert (await post(route, "/v1/messages", said("do it: refuse"))).status == 429
            traffic = route.end()
            route.begin("turn-02", ["do it", "yes"])
            await post(route, "/v1/messages", said("do it", "yes"))
            await post(route, "/v1/messages", said("a sub-agent's task: say yes"))
            second = route.end()
    assert (traffic.requests, traffic.side_requests) == (2, 2)
    assert [(one.status, one.retry_after_seconds) for one in traffic.refused] == [(429, 17)]
    assert (second.requests, second.side_requests, second.continued) == (1, 1, True)


async def test_after_its_retries_one_more_attempt_is_answered_and_not_passed_on() -> None:
    """None: the provider breaks it off; 400: it is not asked. A title, another model is."""
    own, title, other = said("do it"), said("do it", tools=False), said("do it", model="other")
    plan = [(own, 529), (own, 200), (own, 500), (own, None), (own, 400), (own, 400), (title, 503)]
    replies: dict[int | None, Reply] = {200: Text("fine"), None: Drop()}
    replies |= {status: HttpError(status, "no") for status in (500, 503, 529)}
    failures = []
    with ModelServer(lambda _: replies[status]) as server:
        async with open_gateway({}) as gateway:
            route = gateway.route(server.url)
            for turn in ([*plan, (other, 503)], [(own, 529)]):
                route.begin("turn", ["do it"], 1)
                for body, status in turn:
                    with suppress(httpcore2.RemoteProtocolError):
                        assert (await post(route, "/v1/messages", body)).status == status
                    last = route.final_failure(waited=False)
                    failures.append(last and failure_of_model(last))
            assert route.final_failure(waited=True), "its CLI waited too long to ask again"
    broken = Failure("network", "its model did not answer to the end")
    assert failures == [*[None] * 4, *[broken] * 3, None, None]
    assert len(server.requests) == 7


@pytest.mark.parametrize(
    ("told", "error", "notes"),
    [
        (Usage(input_tokens=1000, output_tokens=100), None, []),
        (Usage(input_tokens=1049, output_tokens=110), None, []),
        (Usage(input_tokens=2000, output_tokens=200), None, []),  # with what the CLI asks besides
        (Usage(input_tokens=1060, output_tokens=100), None, ["1060 input and 100 output tokens"]),
        (None, TurnError(kind="rate_limit", message="try again in 1 s", evidence="x"), []),
    ],
)
async def test_a_turn_is_compared_with_what_passed(
    told: Usage | None, error: TurnError | None, notes: list[str]
) -> None:
    refusal = HttpError(429, headers={"retry-after": "17"})
    count = Counts(input=1000, cached=0, output=100)
    with ModelServer(lambda _: refusal if error else Answer(Text("fine"), count)) as server:
        async with open_gateway({}) as gateway:
            route = gateway.route(server.url)
            route.begin("turn-02", ["one", "two"])
            for has_tools in (True, False):
                await post(route, "/v1/messages", said("one", "two", tools=has_tools))
            profile = Profile(name="p", engine="e", prices={"": Price(input=1, output=10)})
            turn = compared(EngineTurn(usage=told, error=error), route, profile)
    assert turn.traffic is not None
    assert turn.traffic.usage_differs == bool(notes)
    assert all(part in note for part, note in zip(notes, turn.notices, strict=True))
    assert turn.cost_usd == (None if error else pytest.approx(0.004))
    assert (turn.error and turn.error.retry_after_seconds) == (error and 17)


async def test_an_unknown_or_closed_address_leads_nowhere() -> None:
    with ModelServer() as server:
        async with open_gateway({}) as gateway:
            route = gateway.route(server.url)
            assert (await post(route, "/v1/messages", said("hi"))).status == 200
            upgrade = await post(route, "/v1/responses", {}, {"upgrade": "websocket"})
            route.is_open = False
            closed = await post(route, "/v1/messages", said("hi"))
            async with httpcore2.AsyncConnectionPool(uds=str(gateway.socket)) as pool:
                local = await pool.request("GET", "http://model/v1/models")
    assert (upgrade.status, closed.status, local.status) == (426, 404, 404)
    assert len(server.requests) == 1


@asynccontextmanager
async def streamed(route: Route) -> AsyncIterator[AsyncIterator[bytes]]:
    """The parts of an answer."""
    asked = json.dumps(said("hi")).encode()
    pool = httpcore2.AsyncConnectionPool()
    async with pool, pool.stream("POST", f"{route.url}/messages", content=asked) as got:
        yield got.aiter_stream()


def dripping(ends: str) -> Handler:
    """Events, one each 50 ms, and a whole end, or none."""

    async def answer(stream: ByteStream, _: bytes) -> None:
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
        await stream.send(f"{head}\r\n\r\n".encode())
        for number in range(5):
            event = b'data: {"usage": {"input_tokens": 9, "output_tokens": %d}}\n\n' % number
            for part in (event[:10], event[10:]):
                await stream.send(b"%x\r\n%s\r\n" % (len(part), part))
            await anyio.sleep(0.05)
        if ends == "whole":
            await stream.send(b"0\r\n\r\n")

    return answer


@pytest.mark.parametrize("ends", ["whole", "dead"])
async def test_a_dripping_answer_arrives_drop_by_drop_and_a_dying_one_dies(ends: str) -> None:
    times: list[float] = []
    async with upstream(dripping(ends)) as url, open_gateway({}) as gateway:
        route = gateway.route(url)
        route.begin("turn-01", ["hi"])
        died = False
        async with streamed(route) as parts:
            try:
                async for _ in parts:
                    times.append(time.monotonic())
            except httpcore2.RemoteProtocolError:
                died = True
        traffic = route.end()
    assert died == (ends == "dead")
    assert times[-1] - times[0] > 0.15
    assert traffic.usage is not None
    assert traffic.usage.output_tokens == 4, "what came before it died is counted"
    assert bool(route.trouble) == died


async def test_what_a_turn_used_that_is_ended_in_the_middle_of_an_answer_is_counted() -> None:
    async with upstream(dripping("dead")) as url, open_gateway({}) as gateway:
        route = gateway.route(url)
        route.begin("turn-01", ["hi"])
        async with streamed(route) as parts:
            while b"\n\n" not in await anext(parts):
                pass
            traffic = route.end()
    assert traffic.usage is not None
    assert traffic.usage.input_tokens == 9


async def test_an_agent_that_goes_ends_the_request_to_the_model() -> None:
    gone = anyio.Event()

    async def silent(stream: ByteStream, _: bytes) -> None:
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()
        gone.set()

    async with upstream(silent) as url, open_gateway({}) as gateway:
        route = gateway.route(url)
        with anyio.move_on_after(0.3):
            await post(route, "/v1/messages", said("hi"))
        with anyio.fail_after(5):
            await gone.wait()
        assert route.final_failure(waited=True) is None, "a model that hangs refuses nothing"
        traffic = route.end()
        # As without a gateway, who cannot be reached gives no answer at all.
        nobody = gateway.route("http://127.0.0.1:9")
        with pytest.raises(httpcore2.RemoteProtocolError):
            await post(nobody, "/v1/messages", said("hi"))
    assert (traffic.requests + traffic.side_requests, traffic.usage) == (1, None)
    assert "127.0.0.1:9" in nobody.trouble


async def test_a_request_that_an_agent_breaks_off_is_none() -> None:
    async def asked(*_: object) -> None:
        agent.cancel()

    async with upstream(asked) as url, open_gateway({}) as gateway:
        route = gateway.route(url)
        head = (
            f"POST /{route.token}/v1/messages HTTP/1.1\r\nhost: us\r\ncontent-length: 99\r\n\r\n{{"
        )
        with anyio.CancelScope() as agent:
            async with await anyio.connect_tcp("127.0.0.1", gateway.port) as stream:
                await stream.send(head.encode())
                await anyio.sleep_forever()
        traffic = route.end()
    assert (traffic.requests, traffic.side_requests) == (0, 0)


async def test_32_trials_at_once_do_not_mix() -> None:
    def count(request: Any) -> Answer:
        number = int(request.latest.split()[-1])
        return Answer(Text("fine"), Counts(input=number, cached=0, output=number))

    found: dict[int, Traffic] = {}

    async def trial(gateway: Gateway, url: str, number: int) -> None:
        route = gateway.route(url)
        for turn in (1, 2, 3):
            route.begin(f"turn-{turn:02d}", [f"trial {number}"])
            await post(route, "/v1/messages", said(f"trial {number}", stream=turn > 1))
            found[number] = route.end()

    with ModelServer(count) as server:
        async with open_gateway({}) as gateway, anyio.create_task_group() as group:
            for number in range(32):
                group.start_soon(trial, gateway, server.url, number)
    for number, traffic in found.items():
        assert traffic.usage is not None
        counted = traffic.requests, traffic.usage.input_tokens, traffic.usage.output_tokens
        assert counted == (1, number, number)
    assert len(found) == 32


async def hi(stream: ByteStream, _: bytes) -> None:
    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")


async def test_a_certificate_is_trusted_that_the_user_names(tmp_path: Path) -> None:
    made = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=localhost"
    await anyio.run_process(f"{made} -addext subjectAltName=DNS:localhost", cwd=tmp_path)
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    async with upstream(hi, own) as url:
        secure = url.replace("http://127.0.0.1", "https://localhost")
        async with open_gateway({"NODE_EXTRA_CA_CERTS": f"{tmp_path}/cert"}) as gateway:
            assert (await post(gateway.route(secure), "/v1", b"")).content == b"hi"
        async with open_gateway({}) as gateway:
            with pytest.raises(httpcore2.RemoteProtocolError):
                await post(route := gateway.route(secure), "/v1", b"")
    assert "CERTIFICATE_VERIFY_FAILED" in route.trouble


async def test_the_users_proxy_is_asked_but_for_what_it_spares() -> None:
    asked: list[bytes] = []

    async def proxy(stream: ByteStream, first: bytes) -> None:
        asked.append(first)
        await hi(stream, first)

    async with upstream(proxy) as url:
        mine = {"http_proxy": url.replace("://", "://me:secret@"), "NO_PROXY": "localhost"}
        async with open_gateway(mine) as gateway:
            far = await post(gateway.route("http://model.test/v1"), "/messages", said("hi"))
            with ModelServer() as server:
                near = gateway.route(server.url.replace("127.0.0.1", "localhost"))
                assert (await post(near, "/v1/messages", said("hi"))).status == 200
    assert far.content == b"hi"
    assert asked[0].startswith(b"POST http://model.test/v1/messages HTTP/1.1\r\n")
    assert b"Basic bWU6c2VjcmV0" in asked[0]
    assert len(asked) == 1
