"""From chunks of output to lines, in memory bounded by the longest line that may be held."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import anyio

from skillup.process.request import OnLine, Redact

_TAIL_BYTES = 8 << 10
# A secret cut in two is not recognised; so this much of a cut line's end is never shown.
_SECRET_BYTES = 8 << 10


class OutputLine(NamedTuple):
    """One line without its newline, and whether the rest of it was dropped."""

    text: bytes
    truncated: bool
    complete: bool  # False for a last line that had no newline


class LineSplitter:
    """Splits a stream; holds at most one unfinished line, and of that at most ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []  # joined once per line: appending to bytes would be quadratic
        self._held = 0
        self._overflowed = False

    def feed(self, chunk: bytes) -> list[OutputLine]:
        """The lines that this chunk finishes."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        last = rest.pop()
        self._hold(first)
        lines = [self._take(complete=True)]
        for text in rest:
            if len(text) <= self._max_bytes:
                lines.append(OutputLine(text, False, True))
            else:
                lines.append(OutputLine(text[: self._max_bytes], True, True))
        self._hold(last)
        return lines

    def finish(self) -> list[OutputLine]:
        """The last line, if it had no newline."""
        return [self._take(complete=False)] if self._held or self._overflowed else []

    def _hold(self, part: bytes) -> None:
        room = self._max_bytes - self._held
        if len(part) > room:
            self._overflowed = True
            part = part[:room]
        if part:
            self._parts.append(part)
            self._held += len(part)

    def _take(self, *, complete: bool) -> OutputLine:
        line = OutputLine(b"".join(self._parts), self._overflowed, complete)
        self._parts, self._held, self._overflowed = [], 0, False
        return line


class OutputStream:
    """One output stream of one process: counted, masked, copied to disk, cut into lines.

    Without ``redact`` the copy is of every byte as it comes; with it, of every line when it is
    complete. After ``max_bytes`` the rest is counted and dropped. Raises OSError if the file cannot
    be written. ``keep`` is called with what is written, for callers that want all of it in memory.
    """

    def __init__(
        self,
        *,
        path: Path | None,
        max_bytes: int,
        max_line_bytes: int,
        redact: Redact | None,
        lines_wanted: bool = True,
        keep: Callable[[bytes], object] | None = None,
    ) -> None:
        self.total_bytes = 0
        self.truncated_lines = 0
        self._max_bytes = max_bytes
        self._max_line_bytes = max_line_bytes
        self._redact = redact
        self._lines_wanted = lines_wanted or redact is not None
        self._keep = keep
        self._splitter = LineSplitter(max_line_bytes + (_SECRET_BYTES if redact else 0))
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
        if not chunk:
            return []
        if self._redact is None:
            self._write(chunk)
            if not self._lines_wanted:
                return []
        return [self._finished(line) for line in self._splitter.feed(chunk)]

    def finish(self) -> list[bytes]:
        """The last line, if it had no newline. Nothing may be fed afterwards."""
        return [self._finished(line) for line in self._splitter.finish()]

    def close(self) -> None:
        """Closes the copy; safe to call again, also if the first call raised OSError."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _finished(self, line: OutputLine) -> bytes:
        text, cut = line.text, line.truncated
        if self._redact is not None:
            text = self._redact(text)
            if cut:
                text = text[: max(0, len(text) - _SECRET_BYTES)]
            cut = cut or len(text) > self._max_line_bytes
            text = text[: self._max_line_bytes]
            self._write(text + b"\n" if line.complete else text)
        self.truncated_lines += cut
        return text

    def _write(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data)
        if self._keep is not None:
            self._keep(data)
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-2 * _TAIL_BYTES :]


# Moving bytes between us and a child's pipes without ever blocking on one of them.

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
