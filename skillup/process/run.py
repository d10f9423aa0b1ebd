"""Running a process from its start until nothing of it is left: the only file that starts any.

``subprocess.Popen``, as the waiting is then left to us: what makes adopted orphans possible.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, TypeAlias

import anyio
import anyio.lowlevel

from skillup.dataclass import frozen, mutable
from skillup.process.output import CHUNK_BYTES, OnLine, OutputStream, Write
from skillup.process.tree import (
    OWNER_VARIABLE,
    TRIAL_VARIABLE,
    ProcessRow,
    ProcessTree,
    TreeEnding,
    end_tree,
    new_marker,
    now_as_started,
    owner_id,
    read_row,
    running_trees,
)

_QUIET_OUTPUT_BYTES = 64 << 20
_POLL_SECONDS = 0.01
_ANSWERED_SECONDS = 5.0  # How long a process may go on after its answer was complete
# One that goes on for ever if nobody ends it; or what has been told that it is to end.
_LINGERS_SECONDS = 1.0
_SETTLE_SECONDS = 0.2  # For helpers that end because their parent did; they are no leftovers
_REPORT_SECONDS = 5.0  # How long the kernel may take to report a process that SIGKILL has hit
# Helpers of a CLI that stays may need more: codex asks the user's shell for its settings.
_KEPT_SETTLE_SECONDS = 2.0

EndedBy: TypeAlias = Literal["exit", "answered", "kept", "timeout", "output_limit", "not_started"]
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
    stdout: Write | None = None  # Gets a raw copy as the output comes
    stderr: Write | None = None
    max_output_bytes: int = 128 << 20  # Per stream; more is cut
    marker: str = ""
    """Descendants are recognised by it: no two at the same time may share one; "": a fresh one."""
    grace_seconds: float = 2.0
    has_answered: Callable[[], bool] | None = None
    """Called after each line: whether the answer is complete, so that the process should exit."""
    redact: Callable[[bytes], bytes] | None = None  # Masks secrets in one line
    spared: frozenset[str] = frozenset()  # Names of programs that only SIGKILL is sent to
    lingers: bool = False  # It need not exit then: it is given less time
    farewell: Callable[[], bytes] = bytes  # What one that still reads is told before its end


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


@mutable
class Child:
    """A process that was started, all that comes of it, and our ends of its pipes."""

    pid: int
    tree: ProcessTree
    stdout: int
    stderr: int
    stdin: int = -1  # -1: there is none, or it is closed
    returncode: int | None = None  # As Popen has it; None: it is not known to have ended


def start_process(request: ProcessRequest) -> Child | str:
    """Starts it in a session of its own; or says in a sentence why not."""
    marker = request.marker or new_marker()
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Inherited from whoever started us; the kernel would throw exit statuses away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    env = {**request.env, TRIAL_VARIABLE: marker, OWNER_VARIABLE: owner_id()}
    since = now_as_started()
    theirs, ours = list[int](), list[int]()
    try:
        # Popen's own pipes come as files, which take longer than to start the process.
        for there, here in ((1, 0), (1, 0), (0, 1))[: 3 if request.stdin else 2]:
            ends = os.pipe()
            theirs.append(ends[there])
            ours.append(ends[here])
        popen = subprocess.Popen(
            request.argv,
            cwd=request.cwd,
            env=env,
            stdin=theirs[2] if request.stdin else subprocess.DEVNULL,
            stdout=theirs[0],
            stderr=theirs[1],
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        for end in ours:
            os.close(end)
        return _why_not_started(error, request.argv[0], request.cwd)
    finally:
        for end in theirs:
            os.close(end)
    popen.returncode = 0  # Waiting is ours: else it warns, and goes on asking for the pid
    about = f"{TRIAL_VARIABLE}={marker}"
    tree = ProcessTree(about, main=popen.pid, started_after=since, spared=request.spared)
    return Child(popen.pid, tree, *ours)


def start_apart(argv: tuple[str, ...], *, cwd: Path, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    """Another skillup, the caller's to end: nothing is adopted or watched here. Raises OSError."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        argv, cwd=cwd, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True
    )


def _why_not_started(error: OSError | ValueError, program: str, cwd: Path) -> str:
    if not isinstance(error, OSError):
        return f"{program}: an argument or variable cannot be passed on: {error}"
    if error.errno == errno.ENOENT and cwd.is_dir() and (cwd / program).exists():
        return f"{program}: the interpreter that its first line names does not exist"
    # Its name is the program's, or that of the directory.
    return f"{error.filename or program}: {error.strerror or error}"


async def run_process(request: ProcessRequest, on_line: OnLine | None = None) -> ProcessOutcome:
    """Runs a process to its end and ends all that it started.

    ``on_line`` gets each line of stdout as it comes, also a last one without newline. What it
    raises ends the tree and is raised here. Cancelling this call ends the tree, too, before the
    cancellation goes on; the raw copies are then complete up to that point. What can go wrong is in
    the outcome, but for what those who take the copies raise.
    """
    # Nothing is started for a caller who is already cancelled.
    await anyio.lowlevel.checkpoint_if_cancelled()
    started = start_process(request)
    if isinstance(started, str):
        return ProcessOutcome(None, None, "not_started", start_error=started)
    return await supervise(request, started, on_line)


async def run_quiet(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float | None,
    stdin: bytes = b"",
    run: Callable[[ProcessRequest], Awaitable[ProcessOutcome]] = run_process,
) -> CompletedOutput:
    """Runs a short helper command (git, ``claude --version``) with the same care as an agent.

    `run` may do so in a box. One that floods (over 64 MiB in one stream) is ended and has
    ``exit_code`` None, as if killed.
    """
    stdout, stderr = bytearray(), bytearray()
    outputs = stdout.extend, stderr.extend, _QUIET_OUTPUT_BYTES
    outcome = await run(ProcessRequest(tuple(argv), cwd, env, stdin, timeout_seconds, *outputs))
    return CompletedOutput(
        exit_code=outcome.exit_code if outcome.ended_by == "exit" else None,
        stdout=stdout.decode(errors="replace"),
        stderr=stderr.decode(errors="replace"),
        timed_out=outcome.ended_by == "timeout",
        start_error=outcome.start_error,
    )


async def supervise(
    request: ProcessRequest,
    child: Child,
    on_line: OnLine | None,
    may_stay: Callable[[], bool] | None = None,
) -> ProcessOutcome:
    """Feeds and reads a process that was started until nothing of it is left.

    With `may_stay` (process/live.py) only until its turn is over, if that and nothing that it
    started apart from itself allows; it is then to read what ``on_line`` returns.
    """
    supervision = _Supervision(request, child)
    try:
        return await supervision.run(on_line, may_stay)
    finally:
        supervision.close()


class _Supervision:
    """One running child: what the event loop sees of it changes its state and wakes :meth:`run`.

    No task, scope or thread of its own: with agents that answer at once they were most of a trial.
    """

    def __init__(self, request: ProcessRequest, child: Child) -> None:
        self._request, self._child, self._tree = request, child, child.tree
        limit, redact = request.max_output_bytes, request.redact
        self._streams = (
            OutputStream(request.stdout, limit, redact),
            OutputStream(request.stderr, limit, redact),
        )
        self._loop = asyncio.get_running_loop()
        self._change: asyncio.Future[None] | None = None  # While somebody waits for one
        self._pidfd: int | None = None  # While the loop looks whether the child has ended
        self._unsent = bytearray(request.stdin)
        self._timer: asyncio.TimerHandle | None = None
        seconds = request.timeout_seconds
        self._time_limit = math.inf if seconds is None else self._loop.time() + seconds
        self._timed_out = self._answered = False
        self._stays = self._kept = False  # It may stay after its turn; it does
        self._exit_status: int | None = None
        self._ended_by: EndedBy = "exit"
        self._ending = TreeEnding(child.tree, request.grace_seconds)

    async def run(
        self, on_line: OnLine | None, may_stay: Callable[[], bool] | None
    ) -> ProcessOutcome:
        """Returns when the tree is gone and the pipes are read; raises what ``on_line`` raised."""
        stdout, stderr = self._streams

        def watch(line: bytes) -> None:
            """Delivers a line, then asks whether the process only has to exit any more."""
            if on_line is not None:
                on_line(line)
            self._look_at_answer()

        try:
            self._set_timer(self._time_limit)
            if on_line is not None and may_stay is not None:
                self._kept = await self._turn(on_line, may_stay)
                if self._kept:
                    return ProcessOutcome(None, None, "kept", stderr_tail=stderr.tail)
                self._set_timer(self._time_limit)
            self._timed_out = False
            self._look_at_answer()
            self._begin(watch)
            while not (self._collect() or self._failed() or self._timed_out):
                await self._next_change()
            if self._timed_out and not self._collect():
                self._ended_by = "answered" if self._answered else "timeout"
        finally:
            if not self._kept:
                await self._end()
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

    async def _turn(self, on_line: OnLine, may_stay: Callable[[], bool]) -> bool:
        """Until its turn is over, or cannot be; whether it goes on to the next."""
        (stdout, stderr), has_answered = self._streams, self._request.has_answered
        assert has_answered is not None

        def take(line: bytes) -> None:
            answer = on_line(line)
            self._unsent += answer if isinstance(answer, bytes) else b""
            self._feed()
            if has_answered():
                self._wake()

        self._stays = True
        self._begin(take)
        over = False
        while not (over or self._collect() or self._failed() or self._timed_out):
            await self._next_change()
            over = has_answered() and not stdout.in_line
        stdout.stop()
        self._stays = self._timed_out  # It still reads
        kept = over and not (self._failed() or self._unsent or not may_stay())
        kept = kept and not await self._left_any()
        stderr.drain()
        self._let_go()
        if kept:
            stderr.finish()
        return kept

    async def _left_any(self) -> bool:
        """Whether something of the turn goes on: agents start their tools in other sessions."""
        main, pause = self._child.pid, _POLL_SECONDS
        deadline = anyio.current_time() + _KEPT_SETTLE_SECONDS
        while not self._tree.is_in_one_session():
            alive, own = self._tree.living(), {main}
            for row in alive if self._tree.spared else ():  # What started the program in a box
                parent = read_row(row.parent)
                if parent is not None and parent.name in self._tree.spared:
                    own.add(row.session)
            if not any(own.isdisjoint((row.pid, row.session)) for row in alive):
                return False
            if anyio.current_time() >= deadline:
                return True
            await anyio.sleep(pause)
            pause = min(2 * pause, 0.1)
        return False

    def _let_go(self) -> None:
        self._set_timer(math.inf)
        self._stop_watching()
        for stream in self._streams:
            stream.stop()

    def close(self) -> None:
        """Lets go of all that is the child's, unless it stays."""
        self._let_go()
        if self._kept:
            return
        self._stop_feeding()
        self._collect()  # clears it away, if there was no time to
        os.close(self._child.stdout)
        os.close(self._child.stderr)
        running_trees.discard(self._tree)
        del self._streams  # They know this one: all of a turn would stay for the garbage collector

    def _begin(self, on_line: OnLine) -> None:
        stdout, stderr = self._streams
        stdout.on_change = stderr.on_change = self._wake
        stdout.begin(self._child.stdout, on_line)
        stderr.begin(self._child.stderr, None)
        with suppress(AttributeError, OSError):  # not on this system: no event tells of its end
            if self._child.returncode is None:
                self._pidfd = os.pidfd_open(self._child.pid)
                self._loop.add_reader(self._pidfd, self._child_ended)
        if self._child.stdin >= 0:
            os.set_blocking(self._child.stdin, False)
        self._feed()

    # What happens, and who waits for it.

    def _look_at_answer(self) -> None:
        has_answered = self._request.has_answered
        if has_answered is None or has_answered() == self._answered:
            return
        self._answered = not self._answered
        # It may go on, as with the result of a task in the background.
        seconds = _LINGERS_SECONDS if self._request.lingers else _ANSWERED_SECONDS
        grace = self._loop.time() + seconds
        self._set_timer(grace if self._answered else self._time_limit)

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def _next_change(self) -> None:
        """Until the child may have ended, time is over, or reading has ended or failed."""
        if self._pidfd is None and self._child.returncode is None:
            self._loop.call_later(_POLL_SECONDS, self._wake)
        self._change = self._loop.create_future()
        await self._change

    def _child_ended(self) -> None:
        self._stop_watching()
        self._wake()

    def _stop_watching(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._time_is_over) if due < math.inf else None

    def _time_is_over(self) -> None:
        self._timed_out = True
        self._wake()

    def _feed(self) -> None:
        """Writes stdin and closes it, unless more may come; who does not read it makes no error."""
        pipe = self._child.stdin
        if pipe < 0:
            return
        try:
            while self._unsent:
                del self._unsent[: os.write(pipe, self._unsent[:CHUNK_BYTES])]
        except BlockingIOError:
            self._loop.add_writer(pipe, self._feed)
            return
        except OSError:  # EPIPE: nobody reads any more
            pass
        self._loop.remove_writer(pipe)
        if not self._stays:
            self._stop_feeding()

    def _stop_feeding(self) -> None:
        pipe, self._child.stdin = self._child.stdin, -1
        if pipe >= 0:
            self._loop.remove_writer(pipe)
            os.close(pipe)

    def _failed(self) -> bool:
        return any(stream.error or stream.over_limit for stream in self._streams)

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
            self._child.returncode = self._exit_status = os.waitstatus_to_exitcode(status)
        return True

    async def _end(self) -> None:
        try:
            await self._end_tree()
        finally:  # a second Ctrl-C, too
            self._stop_feeding()
            for stream in self._streams:
                stream.expect_end()
            # Through cancellation, too: the copies are complete.
            while any(stream.is_read for stream in self._streams):
                with anyio.CancelScope(shield=True):
                    await self._next_change()

    async def _say_farewell(self) -> None:
        """Tells a process that is to be ended in the middle of its turn, and gives it a moment."""
        if not self._stays or self._collect():
            return
        last = self._request.farewell()
        self._unsent, self._stays = self._unsent + last, False
        self._feed()
        seconds = _LINGERS_SECONDS if last else 0.0
        with anyio.CancelScope(shield=True), anyio.move_on_after(seconds):
            while not self._collect():
                await self._next_change()

    async def _end_tree(self) -> None:
        """Ends whatever is left, whether the main process is still there or not."""
        try:
            await self._say_farewell()
            settle = 0.0 if self._child.returncode is None else _SETTLE_SECONDS
            self._ending = TreeEnding(self._tree, self._request.grace_seconds, settle)
            pauses = iter(self._ending)
            pause = next(pauses, None)
            if pause is None and self._collect():
                return
            with anyio.CancelScope(shield=True):
                while pause is not None:
                    await anyio.sleep(pause)
                    pause = next(pauses, None)
                with anyio.move_on_after(_REPORT_SECONDS):
                    while not self._collect():
                        await self._next_change()
        except BaseException:
            # A shield keeps cancel scopes out, not a second Ctrl-C: no time for steps then.
            end_tree(self._tree, 0.0)
            raise
