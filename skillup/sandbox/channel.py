"""Streams of bytes between us and a container, over the input and output of its first program.

That program is this file, without skillup: `python3 -I -S -c SOURCE PORT`. A connection to that
port of its loopback is a stream that ends at our gateway; a stream that we open is the input of a
Python program of ours. It says `ready`, and ends with its own input.

A frame is a kind, the number of its stream, a length, and so many bytes; an empty one ends a
stream. What is sent must be taken before more of the stream is: so whoever reads frames never
waits, and no more than one of each stream is kept. What comes out of a container is not trusted.
"""

from __future__ import annotations

import itertools
import os
import queue
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

_OPEN, _DATA, _TAKEN = b"O", b"D", b"T"
_HEAD = struct.Struct("!cII")
_FRAME_BYTES = 1 << 17
_MOST_STREAMS = 250


class _Stream:
    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.coming: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.taken = threading.Semaphore(0)


class Channel:
    """One side of it; the numbers of the streams that it opens begin with `first`.

    `accept` makes our end of one that the other side opens.
    """

    def __init__(
        self, source: int, target: int, first: int, accept: Callable[[bytes], socket.socket]
    ) -> None:
        self._source, self._target = os.fdopen(source, "rb"), target
        self._numbers, self._accept = itertools.count(first, 2), accept
        self._sending, self._over = threading.Lock(), False
        self._streams: dict[int, _Stream] = {}

    def open(self, end: socket.socket, payload: bytes = b"") -> None:
        """A new stream, which ends at `end` here; if the other side is gone, at once."""
        if len(self._streams) >= _MOST_STREAMS // 2:  # of either side
            end.close()
            return
        self._begin(next(self._numbers), end, payload)

    def close(self) -> None:
        """Ends the other side, and so this one; waits if that is not reading."""
        with self._sending:
            if self._target >= 0:
                os.close(self._target)
            self._target = -1

    def run(self) -> None:
        """Until the other side is gone, or breaks the rules."""
        with suppress(OSError), self._source:
            while len(head := self._source.read(_HEAD.size)) == _HEAD.size:
                kind, number, length = _HEAD.unpack(head)
                if length > _FRAME_BYTES:
                    break
                self._take(kind, number, self._source.read(length))
        self._over = True
        for number in list(self._streams):
            self._end(number)

    def _send(self, kind: bytes, number: int, content: bytes = b"") -> None:
        frame = memoryview(_HEAD.pack(kind, number, len(content)) + content)
        with self._sending, suppress(OSError):  # `run` sees that the other side is gone
            while frame:
                frame = frame[os.write(self._target, frame) :]

    def _take(self, kind: bytes, number: int, content: bytes) -> None:
        stream = self._streams.get(number)
        if kind == _OPEN:
            if stream is not None or len(self._streams) >= _MOST_STREAMS:
                raise OSError("more streams than there may be")
            try:
                end = self._accept(content)
            except OSError:
                end, gone = socket.socketpair()
                gone.close()
            self._begin(number, end)
        elif stream is not None and kind == _TAKEN:
            stream.taken.release()
        elif stream is not None:
            if stream.coming.qsize() > 1:
                raise OSError("more than was taken")
            stream.coming.put(content)

    def _begin(self, number: int, end: socket.socket, opening: bytes | None = None) -> None:
        stream = self._streams[number] = _Stream(end)  # the answer may come at once
        if opening is not None:
            self._send(_OPEN, number, opening)
        inward = threading.Thread(target=self._pass_in, args=(number, stream), daemon=True)
        args = (number, stream, inward)
        threading.Thread(target=self._pass_out, args=args, daemon=True).start()
        if self._over:
            self._end(number)

    def _end(self, number: int) -> None:
        with suppress(KeyError, OSError):  # it has just ended
            stream = self._streams[number]
            stream.coming.put(b"")
            stream.taken.release()
            stream.end.shutdown(socket.SHUT_RDWR)

    def _pass_out(self, number: int, stream: _Stream, inward: threading.Thread) -> None:
        inward.start()
        with suppress(OSError):
            while data := stream.end.recv(_FRAME_BYTES):
                self._send(_DATA, number, data)
                stream.taken.acquire()
        self._send(_DATA, number)
        inward.join()
        del self._streams[number]
        stream.end.close()

    def _pass_in(self, number: int, stream: _Stream) -> None:
        while content := stream.coming.get():
            with suppress(OSError):  # else nobody reads there any more
                stream.end.sendall(content)
            self._send(_TAKEN, number)
        with suppress(OSError):
            stream.end.shutdown(socket.SHUT_WR)


def _serve(source: bytes) -> socket.socket:
    """Starts a program that was sent; our end of what is its input."""
    near, far = socket.socketpair()
    with far:
        argv, input_of = ("python3", "-I", "-S", "-c", source), os.POSIX_SPAWN_DUP2
        os.posix_spawn(sys.executable, argv, {}, file_actions=[(input_of, far.fileno(), 0)])
    return near


def main() -> None:
    """The first program of a container."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what it started, or adopted
    channel, port = Channel(0, 1, 1, _serve), int(sys.argv[1])
    listener = socket.create_server(("127.0.0.1", port), backlog=64) if port else None

    def listen() -> None:
        while listener is not None:
            end = listener.accept()[0]
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(RuntimeError):  # there may be no more threads
                channel.open(end)

    threading.Thread(target=listen, daemon=True).start()
    os.write(1, b"ready\n")
    channel.run()
    os._exit(0)


if __name__ == "__main__":
    main()
