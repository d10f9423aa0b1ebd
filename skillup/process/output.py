"""What a process writes, read by the event loop."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

CHUNK_BYTES = 64 << 10  # What a pipe holds; larger reads take a page table of their own
_TAIL_BYTES = 8 << 10
_PIPE_BYTES = 1 << 20  # no pipe holds more, unless its user is privileged and asked for it
_IDLE_SECONDS = 0.5

OnLine: TypeAlias = Callable[[bytes], object]  # Called with each line, without its newline
Write: TypeAlias = Callable[[bytes], object]


@dataclass(slots=True, eq=False)
class OutputStream:
    """One output stream of one process: counted, masked, written down, cut into lines.

    ``write`` gets every byte as it comes, or with ``redact`` every line when it is
    complete. Beyond ``max_bytes`` the rest is counted and dropped.
    """

    write: Write | None = None
    max_bytes: int = sys.maxsize
    redact: Callable[[bytes], bytes] | None = None
    total_bytes: int = 0
    error: Exception | None = None  # Of the listener or the disk; the rest is dropped
    on_change: Callable[[], object] = lambda: None  # At an error, too much, or the end
    _parts: list[bytes] = field(default_factory=list)
    """Joined once per line: appending to bytes would be quadratic."""
    _tail: bytes = b""
    _descriptor: int | None = None  # While it is read
    _on_line: OnLine | None = None
    _idle: asyncio.TimerHandle | None = None
    _remaining_bytes: float = math.inf

    @property
    def over_limit(self) -> bool:
        return self.total_bytes > self.max_bytes

    @property
    def in_line(self) -> bool:
        """Whether the latest line is not complete."""
        return bool(self._parts)

    @property
    def tail(self) -> str:
        """The last of what was written, masked and decoded."""
        return self._tail[-_TAIL_BYTES:].decode(errors="replace")

    def feed(self, chunk: bytes) -> list[bytes]:
        """Takes the next chunk; returns the lines it finishes, masked."""
        room = max(0, self.max_bytes - self.total_bytes)
        self.total_bytes += len(chunk)
        chunk = chunk[:room]
        if self.redact is None:
            self._write(chunk)
        *ends, rest = chunk.split(b"\n")
        lines = [self._end_line(end, b"\n") for end in ends]
        self._parts += [rest] if rest else []
        return lines

    def finish(self) -> list[bytes]:
        """The last line, if it had no newline; not one that was cut: half a secret is none."""
        return [self._end_line(b"", b"")] if self._parts and not self.over_limit else []

    def _end_line(self, end: bytes, newline: bytes) -> bytes:
        text = b"".join([*self._parts, end])
        self._parts = []
        if self.redact is not None:
            text = self.redact(text)
            self._write(text + newline)
        return text

    def _write(self, data: bytes) -> None:
        if self.write is not None:
            self.write(data)
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-2 * _TAIL_BYTES :]

    @property
    def is_read(self) -> bool:
        """Whether more is to come."""
        return self._descriptor is not None

    def begin(self, pipe: int, on_line: OnLine | None) -> None:
        """Reads from now on until the pipe ends, whatever the listener or the disk refuse.

        For a child that cannot write cannot end.
        """
        self._descriptor, self._on_line = pipe, on_line
        os.set_blocking(pipe, False)
        asyncio.get_running_loop().add_reader(pipe, self._read)

    def _read(self) -> bool:
        """Takes what is there; whether there may be more."""
        assert self._descriptor is not None
        try:
            chunk = os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # nothing more is to come from there
            chunk = b""
        self._remaining_bytes -= len(chunk)
        if chunk:
            self._deliver(chunk)
        if not chunk or self._remaining_bytes <= 0:
            self._end()
        elif self._idle is not None:
            self._await_idle()
        return self.is_read

    def _deliver(self, chunk: bytes) -> None:
        """The lines that `chunk` finishes; an empty one is the end."""
        if self.error is None:
            try:
                for line in self.feed(chunk) if chunk else self.finish():
                    if self._on_line is not None:
                        self._on_line(line)
            except Exception as error:  # noqa: BLE001 - the pipe is still to be emptied
                self.error = error
        if self.error is not None or self.over_limit:
            self.on_change()

    def _end(self) -> None:
        self.stop()
        self._deliver(b"")
        self.on_change()

    def _await_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._end)

    def drain(self) -> None:
        """Reads what the pipe holds."""
        while self.is_read and self._read():
            pass

    def expect_end(self) -> None:
        """Reads what the pipe holds, and awaits no more: one that escaped may keep it open."""
        if self._descriptor is not None:
            self._remaining_bytes = _PIPE_BYTES
            self.drain()  # mostly all is there, and its end
        if self._descriptor is not None:
            self._await_idle()

    def stop(self) -> None:
        """Reads no more; may be called again."""
        if self._idle is not None:
            self._idle.cancel()
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._descriptor = None
