"""Running one process from its start until nothing of it is left."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, BinaryIO

import anyio
import anyio.lowlevel

from skillup.process.spawn import (
    Child,
    CompletedOutput,
    EndedBy,
    OnLine,
    ProcessOutcome,
    ProcessRequest,
    StartError,
    start,
)
from skillup.process.tree import ProcessTree, TreeEnding, kill_at_once, new_marker

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


# Helpers that end because their parent did need a moment; they are no leftovers.
_SETTLE_SECONDS = 0.2
# How long the kernel may take to report a process that SIGKILL has hit.
_REPORT_SECONDS = 5.0
_POLL_SECONDS = 0.01
_QUIET_OUTPUT_BYTES = 64 << 20


async def run_process(request: ProcessRequest, on_line: OnLine | None = None) -> ProcessOutcome:
    """Runs a process to its end and ends all that it started.

    ``on_line`` gets each line of stdout as it comes, also a last one without newline; while an
    awaitable it returned is pending, the child has to wait. What it raises ends the tree and is
    raised here. Cancelling this call ends the tree, too, before the cancellation goes on; the raw
    copies are then complete up to that point. Raises OSError if a raw copy cannot be written;
    everything else that can go wrong is in the outcome.
    """
    stdout = OutputStream(request, request.stdout_path)
    try:
        stderr = OutputStream(request, request.stderr_path)
    except OSError:
        stdout.close()
        raise
    return await _supervise(request, stdout, stderr, on_line)


async def run_quiet(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float | None,
    stdin: bytes = b"",
) -> CompletedOutput:
    """Runs a short helper command (git, ``claude --version``) with the same care as an agent.

    ``env`` is the whole environment. A command that floods (over 64 MiB in one stream) is ended and
    has ``exit_code`` None, like one that was killed.
    """
    request = ProcessRequest(
        argv=tuple(argv),
        cwd=cwd,
        env=env,
        stdin=stdin,
        timeout_seconds=timeout_seconds,
        max_output_bytes=_QUIET_OUTPUT_BYTES,
    )
    stdout, stderr = bytearray(), bytearray()
    outcome = await _supervise(
        request,
        OutputStream(request, None, keep=stdout.extend),
        OutputStream(request, None, keep=stderr.extend),
        None,
    )
    return CompletedOutput(
        exit_code=outcome.exit_code if outcome.ended_by == "exit" else None,
        stdout=stdout.decode(errors="replace"),
        stderr=stderr.decode(errors="replace"),
        timed_out=outcome.ended_by == "timeout",
        start_error=outcome.start_error,
    )


async def _supervise(
    request: ProcessRequest, stdout: OutputStream, stderr: OutputStream, on_line: OnLine | None
) -> ProcessOutcome:
    began = time.monotonic()
    try:
        # Nothing is started for a caller who is already cancelled.
        await anyio.lowlevel.checkpoint()
        child, tree = start(request, request.marker or new_marker())
    except BaseException as error:
        stdout.close()
        stderr.close()
        if not isinstance(error, StartError):
            raise
        return ProcessOutcome(None, None, "not_started", start_error=str(error))
    supervision = _Supervision(request, child, tree, stdout, stderr, on_line)
    try:
        await supervision.run()
    finally:
        child.poll()  # clears it away, if there was no time to
        tree.close()
    return supervision.outcome(round((time.monotonic() - began) * 1000))


class _Supervision:
    """One running child and the tasks around it: pumps, stdin feeder."""

    def __init__(
        self,
        request: ProcessRequest,
        child: Child,
        tree: ProcessTree,
        stdout: OutputStream,
        stderr: OutputStream,
        on_line: OnLine | None,
    ) -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        self._request = request
        self._child = child
        self._tree = tree
        self._streams = (stdout, stderr)
        self._on_line = on_line
        self._given_up = False
        watched = on_line if on_line is None or request.has_answered is None else self._watch
        self._pumps = (
            OutputPump(child.stdout, stdout, watched, self._give_up),
            OutputPump(child.stderr, stderr, None, self._give_up),
        )
        self._patience = anyio.CancelScope()
        self._answered = False
        self._time_limit = math.inf
        self._exited = False
        self._exit_status: int | None = None
        self._ended_by: EndedBy = "exit"
        self._ending = TreeEnding(tree, request.grace_seconds)

    async def run(self) -> None:
        """Returns when the tree is gone and the pipes are read; raises what ``on_line`` raised."""
        async with anyio.create_task_group() as helpers:
            for pump in self._pumps:
                helpers.start_soon(pump.run)
            if self._child.stdin is not None:
                helpers.start_soon(feed_stdin, self._child.stdin, self._request.stdin)
            try:
                with anyio.move_on_after(self._request.timeout_seconds) as self._patience:
                    await anyio.lowlevel.checkpoint()  # the pumps begin: it may be at its end
                    while not self._given_up and not self._collect():  # noqa: ASYNC110
                        await anyio.sleep(_POLL_SECONDS)  # no event tells of it
                if self._patience.cancelled_caught and not self._collect():
                    self._ended_by = "answered" if self._answered else "timeout"
            except BaseException:
                for pump in self._pumps:
                    pump.stop_delivering()
                raise
            finally:
                await self._end_tree()
                for pump in self._pumps:
                    pump.expect_end()
                await self._until_read()
            helpers.cancel_scope.cancel()
        for pump in self._pumps:
            if pump.error is not None:
                raise pump.error

    def _give_up(self) -> None:
        self._given_up = True

    def _collect(self) -> bool:
        """Whether the child has ended, and is cleared away."""
        if self._exited:
            return True
        try:
            pid, status = os.waitpid(self._child.pid, os.WNOHANG)
        except ChildProcessError:  # someone else in this program waited for it
            self._child.returncode = 255
        else:
            if not pid:
                return False
            # Popen must know, or it warns and goes on asking for a pid that is no longer ours.
            self._child.returncode = self._exit_status = os.waitstatus_to_exitcode(status)
        self._exited = True
        return True

    async def _watch(self, line: bytes) -> None:
        """Delivers a line, then asks whether the process only has to exit any more."""
        assert self._on_line is not None
        assert self._request.has_answered is not None
        waiting = self._on_line(line)
        if waiting is not None:
            await waiting
        if self._request.has_answered() == self._answered:
            return
        self._answered = not self._answered
        if self._answered:
            self._time_limit = self._patience.deadline
            self._patience.deadline = anyio.current_time() + self._request.answered_grace_seconds
        else:  # it goes on, as with the result of a task in the background
            self._patience.deadline = self._time_limit

    async def _end_tree(self) -> None:
        """Ends whatever is left, whether the main process is still there or not."""
        try:
            with anyio.CancelScope(shield=True):
                settle = _SETTLE_SECONDS if self._exited else 0.0
                grace = self._request.grace_seconds
                self._ending = TreeEnding(self._tree, grace, settle_seconds=settle)
                for pause in self._ending:
                    await anyio.sleep(pause)
                with anyio.move_on_after(_REPORT_SECONDS):
                    while not self._collect():  # noqa: ASYNC110 - a process has no event
                        await anyio.sleep(_POLL_SECONDS)
        except BaseException:
            # A shield keeps cancel scopes out, not a second Ctrl-C: no time for steps then.
            kill_at_once(self._tree)
            raise

    async def _until_read(self) -> None:
        """Waits for the pumps; if cancelled meanwhile, only for what the pipes still hold."""
        try:
            for pump in self._pumps:
                await pump.ended()
        except BaseException:
            for pump in self._pumps:
                pump.stop_delivering()
            with anyio.CancelScope(shield=True):
                for pump in self._pumps:
                    await pump.ended()
            raise

    def outcome(self, duration_ms: int) -> ProcessOutcome:
        stdout, stderr = self._streams
        code = self._exit_status
        over_limit = stdout.over_limit or stderr.over_limit
        return ProcessOutcome(
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            ended_by="output_limit" if over_limit else self._ended_by,
            duration_ms=duration_ms,
            stderr_tail=stderr.tail,
            stdout_bytes=stdout.total_bytes,
            stderr_bytes=stderr.total_bytes,
            leftover=self._ending.leftover,
            survivors=self._ending.survivors,
        )
