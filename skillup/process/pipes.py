"""Moving bytes between us and a child's pipes without ever blocking on one of them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import IO

import anyio

from skillup.process.lines import OutputStream
from skillup.process.request import OnLine

_CHUNK_BYTES = 256 << 10
_PIPE_BYTES = 1 << 20  # no pipe holds more, unless its user is privileged and asked for it
_IDLE_SECONDS = 0.5


async def feed_stdin(pipe: IO[bytes], data: bytes) -> None:
    """Writes all and closes. That the child does not want it is the child's business."""
    descriptor = pipe.fileno()
    os.set_blocking(descriptor, False)
    rest = memoryview(data)
    try:
        while rest:
            await anyio.wait_writable(descriptor)
            try:
                rest = rest[os.write(descriptor, rest[:_CHUNK_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError:  # EPIPE: nobody reads any more
                return
    finally:
        pipe.close()


class OutputPump:
    """Reads one pipe to its end into an :class:`OutputStream` and hands the lines on.

    Reading goes on through cancellation, because a child that cannot write cannot end either;
    delivering does not. Both end soon after :meth:`expect_end`.
    """

    def __init__(
        self,
        pipe: IO[bytes],
        stream: OutputStream,
        on_line: OnLine | None,
        on_trouble: Callable[[], None],
    ) -> None:
        self.error: Exception | None = None
        self._begun = False
        self._done = anyio.Event()
        self._pipe = pipe
        self._descriptor = pipe.fileno()
        os.set_blocking(self._descriptor, False)
        self._stream = stream
        self._on_line = on_line
        self._silenced = False
        self._on_trouble = on_trouble
        self._reading = anyio.CancelScope()
        self._delivering = anyio.CancelScope()
        self._idle_seconds = math.inf
        self._remaining_bytes = math.inf

    async def run(self) -> None:
        """Until the pipe ends. An error of ``on_line`` or of the disk is kept in ``error``."""
        self._begun = True
        try:
            with anyio.CancelScope(shield=True):
                while chunk := await self._read():
                    await self._take(chunk)
                await self._deliver(self._stream.finish() if self.error is None else [])
        except Exception as error:  # noqa: BLE001 - the supervisor raises it when the tree is gone
            self._fail(error)
        finally:
            self._pipe.close()
            try:
                self._stream.close()
            except OSError as error:  # no room for what was still in memory
                self._fail(error)
            self._done.set()

    async def ended(self) -> None:
        """Waits until :meth:`run` has ended.

        Not for one that was never begun: a loop that is broken off cancels tasks before their first
        step, and whoever waited for them would wait for ever.
        """
        if self._begun:
            await self._done.wait()
        else:
            self._pipe.close()
            self._stream.close()

    def stop_delivering(self) -> None:
        """No further line reaches ``on_line``; one that is being awaited is cancelled."""
        self._silenced = True
        self._delivering.cancel()

    def expect_end(self) -> None:
        """All who should write are dead: what the pipe still holds is read, and no more is awaited.

        Otherwise a process that escaped us and holds the pipe open would hold us, too.
        """
        self._idle_seconds = _IDLE_SECONDS
        self._remaining_bytes = _PIPE_BYTES
        self._reading.deadline = anyio.current_time() + _IDLE_SECONDS

    async def _read(self) -> bytes:
        """The next chunk; empty at the end."""
        while self._remaining_bytes > 0:
            deadline = anyio.current_time() + self._idle_seconds
            with anyio.CancelScope(deadline=deadline) as self._reading:
                await anyio.wait_readable(self._descriptor)
            if self._reading.cancelled_caught:
                return b""
            try:
                chunk = os.read(self._descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                continue
            self._remaining_bytes -= len(chunk)
            return chunk
        return b""

    async def _take(self, chunk: bytes) -> None:
        if self.error is not None:
            return
        try:
            lines = self._stream.feed(chunk)
            if self._stream.over_limit:
                self._on_trouble()
            await self._deliver(lines)
        except Exception as error:  # noqa: BLE001 - see run(); the pipe is still to be emptied
            self._fail(error)

    async def _deliver(self, lines: list[bytes]) -> None:
        if self._on_line is None or self._silenced or not lines:
            return
        with anyio.CancelScope() as self._delivering:
            for line in lines:
                if self._delivering.cancel_called:
                    break
                waiting = self._on_line(line)
                if waiting is not None:
                    await waiting

    def _fail(self, error: Exception) -> None:
        self.error = self.error or error
        self.stop_delivering()
        self._on_trouble()
