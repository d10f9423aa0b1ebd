"""What the gateway costs: the first byte of an answer, and how fast an answer passes.

Run as `python -m tests.benchmarks.bench_gateway [REQUESTS]`. Provider, gateway and agent are
processes of their own. It prints for direct requests and for those through the gateway the median
time to the first byte in ms; and the time of 32 answers at once, of 50 events a second each, of
one with 1,000 events a second, then of one of 64 MB, as fast as the processor can, with their
ratios; and the processor time of provider, gateway and agent for 64 MB, with the gateway between.
Models write up to about 100 events a second.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from statistics import median

import anyio
import httpcore2
import psutil

from skillup.gateway.server import open_gateway

EVENT = b"data: %s\n\n" % json.dumps({"type": "content_block_delta", "text": "x" * 60}).encode()
BODY = json.dumps({"messages": [{"role": "user", "content": "x" * 76_000}], "tools": [1]}).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LARGE = 64 << 20
PACES = {b"/paced": (150, 0.02), b"/fast": (3000, 0.001)}


async def provide(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers requests with one event, by :data:`PACES`, or to `/large` with 64 MB."""
    with suppress(asyncio.IncompleteReadError), closing(writer):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
            writer.write(HEAD)
            part = EVENT * (65_536 // len(EVENT))
            for _ in range(LARGE // len(part) if b"/large" in head else 0):
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()
            count, pause = next((PACES[name] for name in PACES if name in head), (1, 0))
            for _ in range(count):
                writer.write(b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
                await asyncio.sleep(pause)
            writer.write(b"0\r\n\r\n")


async def serve_provider() -> None:
    server = await asyncio.start_server(provide, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def serve_gateway(url: str) -> None:
    async with open_gateway({}) as gateway:
        route = gateway.route(url)
        route.begin("turn-01", ["x"])
        print(route.url, flush=True)
        await anyio.sleep_forever()


async def asked(pool: httpcore2.AsyncConnectionPool, url: str) -> float:
    """Seconds to the first byte of the answer's body; all of it is read."""
    began = time.perf_counter()
    first = 0.0
    async with pool.stream("POST", url, content=BODY) as got:
        async for _ in got.aiter_stream():
            first = first or time.perf_counter() - began
    return first


async def first_bytes(urls: Sequence[str], requests: int) -> list[float]:
    """The median for each, taken in turns, in ms."""
    async with httpcore2.AsyncConnectionPool() as pool:
        rounds = [[await asked(pool, f"{u}/v1/messages") for u in urls] for _ in range(requests)]
    return [median(times) * 1000 for times in zip(*rounds, strict=True)]


async def seconds(url: str, at_once: int) -> float:
    """Until so many answers at once are there."""
    async with httpcore2.AsyncConnectionPool(max_connections=None) as pool:
        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(at_once):
                group.start_soon(asked, pool, url)
        return time.perf_counter() - began


def main(requests: int) -> None:
    def start(*arguments: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "tests.benchmarks.bench_gateway", *arguments]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    with start("provider") as provider:
        direct = provider.stdout.readline().strip() if provider.stdout else ""
        with start("gateway", direct) as gateway:
            through = gateway.stdout.readline().strip() if gateway.stdout else ""
            ahead, behind = anyio.run(first_bytes, (direct, through), requests)
            print(f"first byte: {ahead:.2f} ms, {behind:.2f} ms: {behind - ahead:.2f} ms behind")
            for path, at_once in (("paced", 32), ("fast", 1), ("large", 1)):
                urls = f"{direct}/{path}", f"{through}/{path}"
                rounds = [[anyio.run(seconds, url, at_once) for url in urls] for _ in range(5)]
                one, other = (median(times) for times in zip(*rounds, strict=True))
                print(f"{at_once} {path}: {one:.2f} s, {other:.2f} s: {one / other:.2f} as fast")
            taking = [psutil.Process(pid) for pid in (provider.pid, gateway.pid, None)]
            before = [sum(process.cpu_times()[:2]) for process in taking]
            for _ in range(10):
                anyio.run(seconds, f"{through}/large", 1)
            taken = [sum(p.cpu_times()[:2]) - b for p, b in zip(taking, before, strict=True)]
            print("processor time, ms:", ", ".join(f"{one * 100:.0f}" for one in taken))
            gateway.kill()
        provider.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["provider"]:
        anyio.run(serve_provider)
    elif sys.argv[1:2] == ["gateway"]:
        anyio.run(serve_gateway, sys.argv[2])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 200)
