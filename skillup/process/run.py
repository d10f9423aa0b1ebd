"""Running a process from its start until nothing of it is left: the only file that starts any.

``subprocess.Popen``, as the waiting is then left to us: what makes adopted orphans possible.
"""

from __future__ import annotations

import errno
import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, TypeAlias

import anyio
import anyio.lowlevel

from skillup.frozen import frozen
from skillup.process.tree import (
    OWNER_VARIABLE,
    TRIAL_VARIABLE,
    ProcessRow,
    ProcessTree,
    TreeEnding,
    end_tree,
    new_marker,
    owner_id,
    read_row,
    running_trees,
)

_TAIL_BYTES = 8 << 10
_CHUNK_BYTES = 256 << 10
_PIPE_BYTES = 1 << 20  # no pipe holds more, unless its user is privileged and asked for it
_QUIET_OUTPUT_BYTES = 64 << 20
_IDLE_SECONDS = 0.5
_POLL_SECONDS = 0.01
# How long a process may go on after its answer was complete.
_ANSWERED_SECONDS = 5.0
# Helpers that end because their parent did need a moment; they are no leftovers.
_SETTLE_SECONDS = 0.2
# How long the kernel may take to report a process that SIGKILL has hit.
_REPORT_SECONDS = 5.0

OnLine: TypeAlias = Callable[[bytes], object]  # Called with each line, without its newline

EndedBy: TypeAlias = Literal[
    "exit", "answered", "kept", "timeout", "cancelled", "output_limit", "not_started"
]
"""``answered``: its answer was complete, and it did not exit within the grace for that.
``kept``: its turn is over, and it goes on to the next (process/live.py)."""


@frozen
class ProcessRequest:
    """One process to run to its end."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]  # The whole environment, but for the variables of process/tree.py
    stdin: bytes = b""  # Written whole and closed
    timeout_seconds: float | None = None
    stdout: Callable[[bytes], object] | None = None  # Gets a raw copy as the output comes
    stderr: Callable[[bytes], object] | None = None
    max_output_bytes: int = 128 << 20  # Per stream; more is cut
    marker: str = ""
    """Descendants are recognised by it: no two at the same time may share one; "": a fresh one."""
    grace_seconds: float = 2.0
    has_answered: Callable[[], bool] | None = None
    """Called after each line: whether the answer is complete, so that the process should exit."""
    redact: Callable[[bytes], bytes] | None = None  # Masks secrets in one line


@frozen
class ProcessOutcome:
    """How it ended; without exit code and signal if it never started or could not be ended."""

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy
    start_error: str | None = None
    stderr_tail: str = ""  # About the last 8 KiB
    leftover: tuple[ProcessRow, ...] = ()  # Descendants that outlived the process and were ended
    survivors: tuple[ProcessRow, ...] = ()  # Those that could not be


@frozen
class CompletedOutput:
    """The output of a short helper command; undecodable bytes are replaced."""

    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool
    start_error: str | None


Child: TypeAlias = subprocess.Popen[bytes]


def start_process(request: ProcessRequest) -> tuple[Child, ProcessTree] | str:
    """Starts it in a session of its own, with unbuffered pipes; or says in a sentence why not."""
    marker = request.marker or new_marker()
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Inherited from whoever started us; the kernel would throw exit statuses away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    env = {**request.env, TRIAL_VARIABLE: marker, OWNER_VARIABLE: owner_id()}
    try:
        popen = subprocess.Popen(
            request.argv,
            cwd=request.cwd,
            env=env,
            stdin=subprocess.PIPE if request.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return _why_not_started(error, request.argv[0], request.cwd)
    pid = popen.pid
    main = read_row(pid) or ProcessRow(pid, "", False, os.getpid(), pid, 0.0)
    return popen, ProcessTree(f"{TRIAL_VARIABLE}={marker}", main=main)


def start_apart(argv: tuple[str, ...], *, cwd: Path, stderr: IO[bytes]) -> Child:
    """Another skillup, the caller's to end: nothing is adopted or watched here. Raises OSError."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        argv, cwd=cwd, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True
    )


def _why_not_started(error: OSError | ValueError, program: str, cwd: Path) -> str:
    if not isinstance(error, OSError):
        return f"{program}: an argument or variable cannot be passed on: {error}"
    if not cwd.is_dir():
        what = "is not a directory" if cwd.exists() else "does not exist"
        return f"the working directory {cwd} {what}"
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"{program}: no such program on the PATH"
        if (cwd / program).exists():
            return f"{program}: the interpreter that its first line names does not exist"
    return f"{program}: {error.strerror or error}"


async def run_process(request: ProcessRequest, on_line: OnLine | None = None) -> ProcessOutcome:
    """Runs a process to its end and ends all that it started.

    ``on_line`` gets each line of stdout as it comes, also a last one without newline. What it
    raises ends the tree and is raised here. Cancelling this call ends the tree, too, before the
    cancellation goes on; the raw copies are then complete up to that point. What can go wrong is in
    the outcome, but for what those who take the copies raise.
    """
    streams = OutputStream(request, request.stdout), OutputStream(request, request.stderr)
    return await _supervise(request, *streams, on_line)


async def run_quiet(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float | None,
    stdin: bytes = b"",
) -> CompletedOutput:
    """Runs a short helper command (git, ``claude --version``) with the same care as an agent.

    One that floods (over 64 MiB in one stream) is ended and has ``exit_code`` None, as if killed.
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
    streams = OutputStream(request, stdout.extend), OutputStream(request, stderr.extend)
    outcome = await _supervise(request, *streams, None)
    return CompletedOutput(
        exit_code=outcome.exit_code if outcome.ended_by == "exit" else None,
        stdout=stdout.decode(errors="replace"),
        stderr=stderr.decode(errors="replace"),
        timed_out=outcome.ended_by == "timeout",
        start_error=outcome.start_error,
    )


class OutputStream:
    """One output stream of one process: counted, masked, written down, cut into lines.

    ``write`` gets every byte as it comes, or with ``request.redact`` every line when it is
    complete. Beyond ``max_output_bytes`` the rest is counted and dropped.
    """

    def __init__(self, request: ProcessRequest, write: Callable[[bytes], object] | None) -> None:
        self.total_bytes = 0
        self.error: Exception | None = None  # Of the listener or the disk; the rest is dropped
        self.on_failure: Callable[[], object] = lambda: None  # At an error, or too much
        self._request, self._write_down = request, write
        self._parts: list[bytes] = []  # joined once per line: appending to bytes would be quadratic
        self._tail = b""
        self._reading: anyio.CancelScope | None = None
        self._idle_seconds = math.inf
        self._remaining_bytes = math.inf

    @property
    def over_limit(self) -> bool:
        return self.total_bytes > self._request.max_output_bytes

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
        room = max(0, self._request.max_output_bytes - self.total_bytes)
        self.total_bytes += len(chunk)
        chunk = chunk[:room]
        if self._request.redact is None:
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
        if redact := self._request.redact:
            text = redact(text)
            self._write(text + newline)
        return text

    def _write(self, data: bytes) -> None:
        if self._write_down is not None:
            self._write_down(data)
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-2 * _TAIL_BYTES :]

    async def read(self, pipe: IO[bytes], on_line: OnLine | None) -> None:
        """Until the pipe ends; through cancellation, too: a child that cannot write cannot end."""
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)
        chunk = b"begin"
        with anyio.CancelScope(shield=True):
            while chunk:
                chunk = await self._next_chunk(descriptor)
                if self.error is not None:
                    continue
                try:
                    for line in self.feed(chunk) if chunk else self.finish():
                        if on_line is not None:
                            on_line(line)
                except Exception as error:  # noqa: BLE001 - the pipe is still to be emptied
                    self.error = error
                if self.error is not None or self.over_limit:
                    self.on_failure()

    async def _next_chunk(self, descriptor: int) -> bytes:
        """Empty at the end."""
        while self._remaining_bytes > 0:
            deadline = anyio.current_time() + self._idle_seconds
            with anyio.CancelScope(deadline=deadline) as self._reading:
                await anyio.wait_readable(descriptor)
            if self._reading.cancelled_caught:
                return b""
            try:
                chunk = os.read(descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                continue
            self._remaining_bytes -= len(chunk)
            return chunk
        return b""

    def expect_end(self) -> None:
        """Reads what the pipe holds, and awaits no more: one that escaped may keep it open."""
        self._idle_seconds = _IDLE_SECONDS
        self._remaining_bytes = _PIPE_BYTES
        if self._reading is not None:
            self._reading.deadline = anyio.current_time() + _IDLE_SECONDS


async def _supervise(
    request: ProcessRequest, stdout: OutputStream, stderr: OutputStream, on_line: OnLine | None
) -> ProcessOutcome:
    # Nothing is started for a caller who is already cancelled.
    await anyio.lowlevel.checkpoint()
    started = start_process(request)
    if isinstance(started, str):
        return ProcessOutcome(None, None, "not_started", start_error=started)
    return await supervise(request, *started, stdout, stderr, on_line)


async def supervise(
    request: ProcessRequest,
    child: Child,
    tree: ProcessTree,
    stdout: OutputStream,
    stderr: OutputStream,
    on_line: OnLine | None,
) -> ProcessOutcome:
    """Feeds and reads a process that was started until nothing of it is left."""
    try:
        return await _Supervision(request, child, tree, stdout, stderr).run(on_line)
    finally:
        child.poll()  # clears it away, if there was no time to
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        running_trees.discard(tree)


class _Supervision:
    """One running child and the tasks around it."""

    def __init__(
        self,
        request: ProcessRequest,
        child: Child,
        tree: ProcessTree,
        stdout: OutputStream,
        stderr: OutputStream,
    ) -> None:
        self._request = request
        self._child = child
        self._tree = tree
        self._streams = (stdout, stderr)
        self._feeding = anyio.CancelScope()
        self._patience = anyio.CancelScope()
        self._answered = False
        self._time_limit = math.inf
        self._exit_status: int | None = None
        self._ended_by: EndedBy = "exit"
        self._ending = TreeEnding(tree, request.grace_seconds)

    async def run(self, on_line: OnLine | None) -> ProcessOutcome:
        """Returns when the tree is gone and the pipes are read; raises what ``on_line`` raised."""
        child, (stdout, stderr) = self._child, self._streams
        assert child.stdout is not None
        assert child.stderr is not None

        def watch(line: bytes) -> None:
            """Delivers a line, then asks whether the process only has to exit any more."""
            if on_line is not None:
                on_line(line)
            self._look_at_answer()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stdout.read, child.stdout, watch)
            tasks.start_soon(stderr.read, child.stderr, None)
            tasks.start_soon(self._feed)
            try:
                with anyio.move_on_after(self._request.timeout_seconds) as self._patience:
                    self._look_at_answer()
                    await anyio.lowlevel.checkpoint()  # reading begins: it may be at its end
                    while not self._collect() and not self._failed():
                        await self._wait()
                if self._patience.cancelled_caught and not self._collect():
                    self._ended_by = "answered" if self._answered else "timeout"
            finally:
                try:
                    await self._end_tree()
                finally:  # a second Ctrl-C, too: reading is shielded, and would wait for ever
                    self._feeding.cancel()
                    for stream in self._streams:
                        stream.expect_end()
        for stream in self._streams:
            if stream.error is not None:
                raise stream.error
        code, over_limit = self._exit_status, stdout.over_limit or stderr.over_limit
        return ProcessOutcome(
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            ended_by="output_limit" if over_limit else self._ended_by,
            stderr_tail=stderr.tail,
            leftover=self._ending.leftover,
            survivors=self._ending.survivors,
        )

    def _look_at_answer(self) -> None:
        has_answered = self._request.has_answered
        if has_answered is None or has_answered() == self._answered:
            return
        self._answered = not self._answered
        if self._answered:
            self._time_limit = self._patience.deadline
            self._patience.deadline = anyio.current_time() + _ANSWERED_SECONDS
        else:  # it goes on, as with the result of a task in the background
            self._patience.deadline = self._time_limit

    async def _feed(self) -> None:
        """Writes stdin whole and closes it; a child that does not read it is no error."""
        pipe = self._child.stdin
        if pipe is None:
            return
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)
        rest = memoryview(self._request.stdin)
        with self._feeding:
            while rest:
                await anyio.wait_writable(descriptor)
                try:
                    rest = rest[os.write(descriptor, rest[:_CHUNK_BYTES]) :]
                except BlockingIOError:
                    continue
                except OSError:  # EPIPE: nobody reads any more
                    break
        pipe.close()

    def _failed(self) -> bool:
        return any(stream.error or stream.over_limit for stream in self._streams)

    async def _wait(self) -> None:
        """Until the child may have ended, or reading has failed."""
        try:
            descriptor = os.pidfd_open(self._child.pid)
        except (AttributeError, OSError):  # not on this system: no event tells of it
            await anyio.sleep(_POLL_SECONDS)
            return
        try:
            with anyio.CancelScope() as waiting:
                for stream in self._streams:
                    stream.on_failure = waiting.cancel
                if not self._failed():
                    await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)

    def _collect(self) -> bool:
        """Whether the child has ended, and is cleared away."""
        if self._child.returncode is not None:
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
        return True

    async def _end_tree(self) -> None:
        """Ends whatever is left, whether the main process is still there or not."""
        try:
            with anyio.CancelScope(shield=True):
                settle = 0.0 if self._child.returncode is None else _SETTLE_SECONDS
                grace = self._request.grace_seconds
                self._ending = TreeEnding(self._tree, grace, settle_seconds=settle)
                for pause in self._ending:
                    await anyio.sleep(pause)
                with anyio.move_on_after(_REPORT_SECONDS):
                    while not self._collect():
                        await self._wait()
        except BaseException:
            # A shield keeps cancel scopes out, not a second Ctrl-C: no time for steps then.
            end_tree(self._tree, 0.0)
            raise
