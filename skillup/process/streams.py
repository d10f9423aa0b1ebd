"""Moving a child's output and input, in bounded memory and without ever blocking on a pipe."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO

import anyio

from skillup.process.spawn import OnLine, ProcessRequest

_TAIL_BYTES = 8 << 10
_CHUNK_BYTES = 256 << 10
_PIPE_BYTES = 1 << 20  # no pipe holds more, unless its user is privileged and asked for it
_IDLE_SECONDS = 0.5


class OutputStream:
    """One output stream of one process: counted, masked, copied to disk, cut into lines.

    Without ``request.redact`` the copy is of every byte as it comes; with it, of every line when it
    is complete. Beyond ``max_output_bytes`` the rest is counted and dropped. ``keep`` is called
    with what is written. Raises OSError if the file cannot be written.
    """

    def __init__(
        self,
        request: ProcessRequest,
        path: Path | None,
        *,
        keep: Callable[[bytes], object] | None = None,
    ) -> None:
        self.total_bytes = 0
        self._max_bytes = request.max_output_bytes
        self._redact = request.redact
        self._keep = keep
        self._parts: list[bytes] = []  # joined once per line: appending to bytes would be quadratic
        self._tail = b""
        self._file: BinaryIO | None = path.open("wb") if path else None

    @property
    def over_limit(self) -> bool:
        return self.total_bytes > self._max_bytes

    @property
    def tail(self) -> str:
        """The last of what was written, masked and decoded."""
        return self._tail[-_TAIL_BYTES:].decode(errors="replace")

    def feed(self, chunk: bytes) -> list[bytes]:
        """Takes the next chunk; returns the lines it finishes, masked."""
        room = max(0, self._max_bytes - self.total_bytes)
        self.total_bytes += len(chunk)
        chunk = chunk[:room]
        if self._redact is None:
            self._write(chunk)
        *ends, rest = chunk.split(b"\n")
        lines = [self._end_line(end, b"\n") for end in ends]
        self._parts += [rest] if rest else []
        return lines

    def finish(self) -> list[bytes]:
        """The last line, if it had no newline; not one that was cut: half a secret is none."""
        return [self._end_line(b"", b"")] if self._parts and not self.over_limit else []

    def close(self) -> None:
        """Closes the copy; safe to call again, also if the first call raised OSError."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _end_line(self, end: bytes, newline: bytes) -> bytes:
        text = b"".join([*self._parts, end])
        self._parts = []
        if self._redact is not None:
            text = self._redact(text)
            self._write(text + newline)
        return text

    def _write(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data)
        if self._keep is not None:
            self._keep(data)
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-2 * _TAIL_BYTES :]


async def feed_stdin(pipe: IO[bytes], data: bytes) -> None:
    """Writes all and closes; a child that does not read it is no error."""
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
    """Reads one pipe to its end into an :class:`OutputStream` and passes the lines on.

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
                    if self.error is None:
                        try:
                            lines = self._stream.feed(chunk)
                            if self._stream.over_limit:
                                self._on_trouble()
                            await self._deliver(lines)
                        except Exception as error:  # noqa: BLE001 - the pipe is still to be emptied
                            self._fail(error)
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
        self._on_line = None
        self._delivering.cancel()

    def expect_end(self) -> None:
        """All writers should be dead: what the pipe still holds is read, and no more is awaited.

        Otherwise a process that escaped and keeps the pipe open would block us, too.
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

    async def _deliver(self, lines: list[bytes]) -> None:
        if not lines:
            return
        with anyio.CancelScope() as self._delivering:
            for line in lines:
                if self._on_line is None:
                    break
                waiting = self._on_line(line)
                if waiting is not None:
                    await waiting

    def _fail(self, error: Exception) -> None:
        self.error = self.error or error
        self.stop_delivering()
        self._on_trouble()
