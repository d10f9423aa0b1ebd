"""A process that stays from turn to turn: fed a message, and read until its turn is over.

Between turns nothing of it is read. Whatever else happens than a turn that ends well, it is ended
as any other process (process/run.py), and its outcome is that of one.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeAlias

import anyio
import anyio.lowlevel

from skillup.process.output import OutputStream
from skillup.process.run import (
    Child,
    ProcessOutcome,
    ProcessRequest,
    start_process,
    streams_of,
    supervise,
)
from skillup.process.tree import ProcessTree, read_row

_CHUNK_BYTES = 256 << 10
_POLL_SECONDS = 0.01
# Helpers of the CLI's own may need a moment more: codex asks the user's shell for its settings.
_SETTLE_SECONDS = 2.0
_CLOSE_SECONDS = 5.0  # How long it may take to end when no more messages come

OnLine: TypeAlias = Callable[[bytes], bytes]  # Called with each line; what it is to read then


@dataclass(slots=True)
class LiveSlot:
    """The process of a conversation, if it has one at the moment."""

    process: LiveProcess | None = None
    argv: tuple[str, ...] = ()  # It was started so
    session: str | None = None
    parser: Any = None  # Of its latest turn

    async def run(
        self, request: ProcessRequest, on_line: OnLine, may_stay: Callable[[], bool]
    ) -> ProcessOutcome:
        """One turn, in a new process if there is none; `stdin` is the message.

        The turn is over when the request's `has_answered` says so. Then the process stays if it
        `may_stay` and nothing that it started apart from itself is left. Raises as `run_process`.
        """
        await anyio.lowlevel.checkpoint()
        process, self.process = self.process, None
        if process is None:
            started = start_process(request)
            if isinstance(started, str):
                return ProcessOutcome(None, None, "not_started", start_error=started)
            process, self.argv = LiveProcess(*started), request.argv
        outcome = await process.turn(request, on_line, may_stay)
        if outcome.ended_by == "kept":
            self.process = process
        return outcome

    async def end(self) -> None:
        """Ends the process, also for whoever is cancelled."""
        process, self.process = self.process, None
        if process is not None:
            with anyio.CancelScope(shield=True):
                await process.end()


class LiveProcess:
    """One that runs."""

    def __init__(self, child: Child, tree: ProcessTree) -> None:
        self._child, self._tree = child, tree
        self._unwritten = bytearray()
        self._over: Callable[[], object] = lambda: None
        self._more = anyio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether it still runs, and has been silent since its turn."""
        assert self._child.stdout is not None
        row = read_row(self._child.pid)
        waiting = select.poll()
        waiting.register(self._child.stdout.fileno(), select.POLLIN)
        return row is not None and not row.zombie and not waiting.poll(0)

    async def turn(
        self, request: ProcessRequest, on_line: OnLine, may_stay: Callable[[], bool]
    ) -> ProcessOutcome:
        assert self._child.stderr is not None
        stdout, stderr = streams_of(request)
        self._unwritten = bytearray(request.stdin)

        def take(line: bytes) -> None:
            self._unwritten += on_line(line)
            self._more.set()

        seconds = request.timeout_seconds
        kept = False
        try:
            with anyio.move_on_after(seconds) as limit:
                await self._talk(request, stdout, stderr, take)
            broken = stdout.error or stderr.error or stdout.over_limit or stderr.over_limit
            kept = not (broken or self._unwritten) and may_stay() and not await self._left_any()
        finally:
            if not kept:
                left = None if seconds is None else max(0.0, limit.deadline - anyio.current_time())
                rest = replace(request, stdin=bytes(self._unwritten), timeout_seconds=left)
                streams = stdout, stderr
                outcome = await supervise(rest, self._child, self._tree, *streams, on_line)
        if not kept:
            return outcome
        with suppress(BlockingIOError):
            while chunk := os.read(self._child.stderr.fileno(), _CHUNK_BYTES):
                stderr.feed(chunk)
        stderr.finish()
        return ProcessOutcome(None, None, "kept", stderr_tail=stderr.tail)

    async def _talk(
        self,
        request: ProcessRequest,
        stdout: OutputStream,
        stderr: OutputStream,
        take: Callable[[bytes], None],
    ) -> None:
        """Until the turn is over, or cannot be."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        has_answered = request.has_answered or (lambda: False)
        async with anyio.create_task_group() as tasks:
            self._over = tasks.cancel_scope.cancel
            tasks.start_soon(self._read, child.stdout, stdout, take, has_answered)
            tasks.start_soon(self._read, child.stderr, stderr, lambda _: None, lambda: False)
            tasks.start_soon(self._write, child.stdin)
            tasks.start_soon(self._watch)

    async def _read(
        self,
        pipe: IO[bytes],
        stream: OutputStream,
        take: Callable[[bytes], None],
        is_over: Callable[[], bool],
    ) -> None:
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)
        while True:
            await anyio.wait_readable(descriptor)
            try:
                chunk = os.read(descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                continue
            if not chunk:  # it ends: its exit is waited for
                return
            try:
                for line in stream.feed(chunk):
                    take(line)
            except Exception as error:  # noqa: BLE001 - raised when the tree has been ended
                stream.error = error
            if stream.error or stream.over_limit or (is_over() and not stream.in_line):
                self._over()
                return

    async def _write(self, pipe: IO[bytes]) -> None:
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)
        while True:
            self._more = anyio.Event()
            while self._unwritten:
                await anyio.wait_writable(descriptor)
                try:
                    del self._unwritten[: os.write(descriptor, self._unwritten[:_CHUNK_BYTES])]
                except BlockingIOError:
                    continue
                except OSError:  # EPIPE: nobody reads any more
                    return
            await self._more.wait()

    async def _watch(self) -> None:
        """Until it has ended; whoever supervises it then finds out how."""
        try:
            descriptor = os.pidfd_open(self._child.pid)
        except (AttributeError, OSError):  # not on this system: no event tells of it
            while (row := read_row(self._child.pid)) is not None and not row.zombie:  # noqa: ASYNC110
                await anyio.sleep(_POLL_SECONDS)
        else:
            try:
                await anyio.wait_readable(descriptor)
            finally:
                os.close(descriptor)
        self._over()

    async def _left_any(self) -> bool:
        """Whether something of the turn goes on: agents start their tools in other sessions."""
        main, pause = self._child.pid, _POLL_SECONDS
        deadline = anyio.current_time() + _SETTLE_SECONDS
        while not self._tree.is_in_one_session():
            if all(main in (row.pid, row.session) for row in self._tree.living()):
                return False
            if anyio.current_time() >= deadline:
                return True
            await anyio.sleep(pause)
            pause = min(2 * pause, 0.1)
        return False

    async def end(self) -> None:
        request = ProcessRequest((), Path(), {}, timeout_seconds=_CLOSE_SECONDS)
        await supervise(request, self._child, self._tree, *streams_of(request), None)
