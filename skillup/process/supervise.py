"""Running one process from its start until nothing of it is left."""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat

import anyio
import anyio.lowlevel
import anyio.to_thread

from skillup.process.cleanup import as_leftovers, ending_steps, gone_within, kill_at_once, walk
from skillup.process.request import EndedBy, OnLine, ProcessOutcome, ProcessRequest
from skillup.process.spawn import Child, StartError, start
from skillup.process.streams import OutputPump, OutputStream, feed_stdin
from skillup.process.tree import ProcessRow, ProcessTree, new_marker

# Waiting for the end of a child: how it ended, and what the kernel says it used.


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """``returncode`` as in :mod:`subprocess`: negative for a signal; None if it got lost."""

    returncode: int | None
    cpu_seconds: float | None


async def wait_until_ended(child: Child) -> ExitStatus:
    """Waits, and clears the ended process away.

    Linux tells by a descriptor; elsewhere a thread of its own waits, which ends with the child.
    """
    descriptor = _descriptor_of(child.pid)
    if descriptor is None:
        limiter = anyio.CapacityLimiter(math.inf)
        return await anyio.to_thread.run_sync(
            _collect, child, abandon_on_cancel=True, limiter=limiter
        )
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    return _collect(child)


def _descriptor_of(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError):  # kernels before 5.3, and sandboxes that forbid it
            return os.pidfd_open(pid)
    return None


def _collect(child: Child) -> ExitStatus:
    try:
        _, status, usage = os.wait4(child.pid, 0)
    except ChildProcessError:  # someone else in this program waited for it
        child.popen.returncode = 255
        return ExitStatus(None, None)
    # Popen must know, or it warns and goes on asking for a pid that is no longer ours.
    child.popen.returncode = os.waitstatus_to_exitcode(status)
    return ExitStatus(child.popen.returncode, usage.ru_utime + usage.ru_stime)


# How much memory a turn takes, looked up now and then.

# Soon at first, so that short turns are seen at all, then seldom: looking costs CPU the turns want.
_PAUSES_SECONDS = (0.02, 0.08, 0.15)
_LATER_PAUSE_SECONDS = 0.25


class ResourceSampler:
    """Samples one tree until it is cancelled."""

    def __init__(self, tree: ProcessTree) -> None:
        self.peak_memory_bytes: int | None = None
        self._tree = tree

    async def run(self) -> None:
        for pause in chain(_PAUSES_SECONDS, repeat(_LATER_PAUSE_SECONDS)):
            await anyio.sleep(pause)
            self.sample()

    def sample(self) -> None:
        """One look; nothing is recorded if nobody is alive any more."""
        resident = sum(row.resident_bytes for row in self._tree.sample())
        if resident:
            self.peak_memory_bytes = max(resident, self.peak_memory_bytes or 0)


# Helpers that end because their parent did need a moment; they are no leftovers.
_SETTLE_SECONDS = 0.2
# How long the kernel may take to report a process that SIGKILL has hit.
_REPORT_SECONDS = 5.0


async def run_process(request: ProcessRequest, on_line: OnLine | None = None) -> ProcessOutcome:
    """Runs a process to its end and ends all that it started.

    ``on_line`` gets each line of stdout as it comes, also a last one without newline; while an
    awaitable it returned is pending, the child has to wait. What it raises ends the tree and is
    raised here. Cancelling this call ends the tree, too, before the cancellation goes on; the raw
    copies are then complete up to that point. Raises OSError if a raw copy cannot be written;
    everything else that can go wrong is in the outcome.
    """
    stdout = OutputStream(
        path=request.stdout_path,
        max_bytes=request.max_output_bytes,
        max_line_bytes=request.max_line_bytes,
        redact=request.redact,
        lines_wanted=on_line is not None,
    )
    try:
        stderr = OutputStream(
            path=request.stderr_path,
            max_bytes=request.max_output_bytes,
            max_line_bytes=request.max_line_bytes,
            redact=request.redact,
            lines_wanted=False,
        )
    except OSError:
        stdout.close()
        raise
    return await supervise(request, stdout, stderr, on_line)


async def supervise(
    request: ProcessRequest, stdout: OutputStream, stderr: OutputStream, on_line: OnLine | None
) -> ProcessOutcome:
    """:func:`run_process` with streams of the caller's own; they are closed in any case."""
    began = time.monotonic()
    try:
        await (
            anyio.lowlevel.checkpoint()
        )  # nothing is started for a caller who is already cancelled
        child = start(request, request.marker or new_marker())
    except BaseException as error:
        stdout.close()
        stderr.close()
        if not isinstance(error, StartError):
            raise
        return ProcessOutcome(None, None, "not_started", start_error=str(error))
    supervision = _Supervision(request, child, stdout, stderr, on_line)
    try:
        await supervision.run()
    finally:
        child.popen.poll()  # clears it away, if the task that waits for it was cancelled by itself
        child.tree.close()
    return supervision.outcome(round((time.monotonic() - began) * 1000))


class _Supervision:
    """One running child and the tasks around it: pumps, stdin feeder, sampler, waiter."""

    def __init__(
        self,
        request: ProcessRequest,
        child: Child,
        stdout: OutputStream,
        stderr: OutputStream,
        on_line: OnLine | None,
    ) -> None:
        self._request = request
        self._child = child
        self._tree = child.tree
        self._streams = (stdout, stderr)
        self._something_happened = anyio.Event()
        trouble = self._something_happened.set
        self._pumps = (
            OutputPump(child.stdout, stdout, self._watched(on_line), trouble),
            OutputPump(child.stderr, stderr, None, trouble),
        )
        self._patience = anyio.CancelScope()
        self._answered = False
        self._time_limit = math.inf
        self._sampler = ResourceSampler(child.tree)
        self._ended: ExitStatus | None = None
        self._ended_event = anyio.Event()
        self._ended_by: EndedBy = "exit"
        self._leftover: list[ProcessRow] = []
        self._survivors: list[ProcessRow] = []

    async def run(self) -> None:
        """Returns when the tree is gone and the pipes are read; raises what ``on_line`` raised."""
        async with anyio.create_task_group() as helpers:
            waiting = anyio.CancelScope(shield=True)
            helpers.start_soon(self._wait_for_end, waiting)
            for pump in self._pumps:
                helpers.start_soon(pump.run)
            if self._child.stdin is not None:
                helpers.start_soon(feed_stdin, self._child.stdin, self._request.stdin)
            helpers.start_soon(self._sampler.run)
            try:
                await self._until_something_happens()
            except BaseException:
                for pump in self._pumps:
                    pump.stop_delivering()
                raise
            finally:
                await self._end_tree()
                waiting.cancel()
                for pump in self._pumps:
                    pump.expect_end()
                await self._until_read()
            helpers.cancel_scope.cancel()
        self._raise_trouble()

    async def _wait_for_end(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                self._ended = await wait_until_ended(self._child)
        finally:
            # Also if a loop that is broken off cancels this task: somebody waits for this.
            self._ended_event.set()
            self._something_happened.set()

    async def _until_something_happens(self) -> None:
        with anyio.move_on_after(self._request.timeout_seconds) as self._patience:
            await self._something_happened.wait()
        if self._patience.cancelled_caught and not self._something_happened.is_set():
            self._ended_by = "answered" if self._answered else "timeout"

    def _watched(self, on_line: OnLine | None) -> OnLine | None:
        """`on_line`, after which it is looked whether the process has only to end any more."""
        has_answered = self._request.has_answered
        if on_line is None or has_answered is None:
            return on_line

        async def watch(line: bytes) -> None:
            waiting = on_line(line)
            if waiting is not None:
                await waiting
            if has_answered() == self._answered:
                return
            self._answered = not self._answered
            if self._answered:
                self._time_limit = self._patience.deadline
                now = anyio.current_time()
                self._patience.deadline = now + self._request.answered_grace_seconds
            else:  # it goes on, as with the result of a task in the background
                self._patience.deadline = self._time_limit

        return watch

    async def _end_tree(self) -> None:
        """Ends whatever is left, whether the main process is still there or not."""
        tree = self._tree
        try:
            with anyio.CancelScope(shield=True):
                ended = self._ended is not None
                if not (ended and await walk(gone_within(tree, _SETTLE_SECONDS))):
                    self._leftover = await walk(ending_steps(tree, self._request.grace_seconds))
                    self._survivors = tree.living()
                with anyio.move_on_after(_REPORT_SECONDS):
                    await self._ended_event.wait()
        except BaseException:
            # A shield holds off cancel scopes, not a second Ctrl-C: no time for steps then.
            kill_at_once(tree)
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

    def _raise_trouble(self) -> None:
        for pump in self._pumps:
            if pump.error is not None:
                raise pump.error

    def outcome(self, duration_ms: int) -> ProcessOutcome:
        stdout, stderr = self._streams
        code = self._ended.returncode if self._ended else None
        own_cpu = self._ended.cpu_seconds if self._ended else None
        over_limit = stdout.over_limit or stderr.over_limit
        return ProcessOutcome(
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            ended_by="output_limit" if over_limit else self._ended_by,
            duration_ms=duration_ms,
            stderr_tail=stderr.tail,
            stdout_bytes=stdout.total_bytes,
            stderr_bytes=stderr.total_bytes,
            truncated_lines=stdout.truncated_lines + stderr.truncated_lines,
            peak_memory_bytes=self._sampler.peak_memory_bytes,
            cpu_seconds=None if own_cpu is None else own_cpu + self._tree.orphan_cpu_seconds,
            leftover=as_leftovers(self._leftover),
            survivors=as_leftovers(self._survivors),
        )
