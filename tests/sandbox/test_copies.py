"""What passes between us and a container that has not our files, where that is hostile."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.sandbox.channel import Channel
from skillup.sandbox.containers import Copies

PART = 1 << 17
Accept = Callable[[bytes], socket.socket]


def serve(source: int, target: int, first: int, accept: Accept) -> Channel:
    way = Channel(source, target, first, accept)

    def run() -> None:
        way.run()
        way.close()

    threading.Thread(target=run, daemon=True).start()
    return way


def way_to(accept: Accept) -> Channel:
    """Our side of a channel whose other side takes what we open so."""
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    serve(their_in, their_out, 1, accept)
    return serve(our_in, our_out, 2, accept)


def begun(way: Channel) -> socket.socket:
    near, far = socket.socketpair()
    way.open(far)
    return near


def by(answer: Callable[[socket.socket], None]) -> Accept:
    def accept(_payload: bytes) -> socket.socket:
        near, far = socket.socketpair()

        def work() -> None:
            with far, suppress(OSError):
                answer(far)

        threading.Thread(target=work, daemon=True).start()
        return near

    return accept


FILE, LINK = (["file", 0o644, 1, 0, 0, 0], ["link", 0o777, 0, 0, 0, 0])
HOSTILE: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "outside": ({"/etc/x": FILE}, [], "is not in its directories"),
    "upwards": ({"WS/../x": FILE}, [], "is not in its directories"),
    "beside": ({"WSx": FILE}, [], "is not in its directories"),
    "replaced": ({"WS": LINK}, [], "was replaced"),
    "never asked for": ({"WS/a": FILE}, [["WS/b", "file", 0, 1, 0]], "was not asked for"),
    "through a link": (
        {"WS/a": LINK, "WS/a/x": FILE},
        [["WS/a", "link", 0, 0, "OUTSIDE"], ["WS/a/x", "file", 0, 1, 0]],
        "another place by a link",
    ),
    "through a link that was a directory": (
        {"WS/a": LINK, "WS/a/x": FILE, "WS/a/y": LINK},
        [
            ["WS/a", "directory", 0, 0, ""],
            ["WS/a/y", "link", 0, 0, "x"],
            ["WS/a", "link", 0, 0, "OUTSIDE"],
            ["WS/a/x", "file", 0, 1, 0],
        ],
        "another place by a link",
    ),
    "too much": ({"WS/a": FILE}, [["WS/a", "file", 0, 2 << 30, 0]], "more than 1 GiB"),
    "broken off": ({"WS/a": FILE}, [["WS/a", "file", 0, 9, 0]], "has ended"),
    "nonsense": ({"WS/a": FILE}, [7], "not copied"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_comes_out_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    listed, sent, words = HOSTILE[name]
    ws, outside = tmp_path / "ws", tmp_path / "outside"
    ws.mkdir()
    outside.mkdir()

    def answer(end: socket.socket) -> None:
        with end.makefile("rwb") as stream:
            while stream.readline() != b"null\n":
                pass
            for value in ({"WS": ["directory", 0, 0], **listed}, *sent):
                line = json.dumps(value).replace("WS", str(ws)).replace("OUTSIDE", str(outside))
                stream.write(line.encode() + b"\n")
            stream.write(b"x")

    with pytest.raises(OSError, match=words):
        anyio.run(Copies(way_to(by(answer)), [ws], [], 0).sync)
    assert not list(outside.iterdir())


def echo(end: socket.socket) -> None:
    while data := end.recv(PART):
        end.sendall(data)


def test_streams_pass_side_by_side_and_one_that_nobody_reads_stops_none() -> None:
    way, data = way_to(by(echo)), os.urandom(20 * PART)

    def exchange(_: int) -> bytes:
        with begun(way) as end, end.makefile("rb") as answer:
            threading.Thread(target=end.sendall, args=(data,)).start()
            return answer.read(len(data))

    with begun(way) as stuck:
        stuck.settimeout(0.2)
        with suppress(TimeoutError):
            while True:
                stuck.send(data)
        with ThreadPoolExecutor(12) as pool:
            assert list(pool.map(exchange, range(12))) == [data] * 12
        way.close()
        stuck.settimeout(None)
        while stuck.recv(PART):
            pass
    with begun(way) as late:
        assert late.recv(1) == b""


BREACHES = {
    "long": b"D\0\0\0\1\xff\xff\xff\xff",
    "many": b"".join(b"O" + n.to_bytes(4, "big") + bytes(4) for n in range(1, 2000, 2)),
    "not asked for": b"O\0\0\0\1" + bytes(4) + (b"D\0\0\0\1\0\2\0\0" + bytes(PART)) * 9,
}


@pytest.mark.parametrize("breach", BREACHES)
def test_who_breaks_the_rules_is_left(breach: str) -> None:
    (ours, theirs), null = os.pipe(), os.open(os.devnull, os.O_WRONLY)
    unread, full = socket.socketpair()
    free = [full]
    way = serve(ours, null, 2, lambda _: free.pop() if free else socket.socket())
    with begun(way) as waiting, unread, full, os.fdopen(theirs, "wb") as target:
        with suppress(BrokenPipeError):
            target.write(BREACHES[breach])
            target.flush()
        assert waiting.recv(1) == b""
