"""Running one process from its start until nothing of it is left."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel

from skillup.process.cleanup import TreeEnding, kill_at_once
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
from skillup.process.streams import OutputPump, OutputStream, feed_stdin
from skillup.process.tree import ProcessTree, new_marker

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
