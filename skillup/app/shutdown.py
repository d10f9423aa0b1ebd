"""What a run does about signals: the first ends its agents in order, the second at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from skillup.app.run_session import first_skillup_error
from skillup.errors import ExitCode, InterruptedRunError, SkillupError, UsageError
from skillup.process.tree import kill_running

_PATIENCE_SECONDS = 10.0
"""For writing down what has finished, once all agents are dead. Then skillup leaves regardless."""


class Shutdown:
    """Counts the signals that ask a run to end, and does what each is for."""

    def __init__(self, stopping: Callable[[int], None], resume_command: str) -> None:
        """`stopping` shows that the run was asked to end, for the first or the second time."""
        self._stopping = stopping
        self._resume_command = resume_command
        self._times = 0

    def run(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Await `work`, which is cancelled when a signal comes; whether one did.

        Raises SkillupError (exit 3) if the run directory fails, with the command that resumes.
        """
        begun = False

        async def watched() -> bool:
            nonlocal begun
            begun = True
            return await until_signalled(work, self.signalled)

        command = self._resume_command
        try:
            return anyio.run(watched)
        except KeyboardInterrupt:
            if not begun:  # asyncio may be half imported: no report of the run could be written
                hint = f"go on with: {command}"
                raise InterruptedRunError("interrupted before the first trial", hint=hint) from None
            # Another Ctrl-C, in the moment after the first was obeyed: whatever has finished counts
            _ignore_signals()
            return True
        except BaseExceptionGroup as group:
            error = first_skillup_error(group)
            if error is None:
                raise
            if isinstance(error, UsageError):
                raise error from group
            hint = "; ".join(filter(None, [error.hint, f"go on with: {command}"]))
            raise SkillupError(error.message, hint=hint) from group

    def signalled(self) -> None:
        """Another signal; after the second none counts."""
        self._times += 1
        if self._times > 2:
            return
        with suppress(OSError):  # a terminal that was closed
            self._stopping(self._times)
        if self._times == 2:
            kill_running()
            # Agents that are dead are waited for no more. Only a defect could delay the end now.
            leave = threading.Timer(_PATIENCE_SECONDS, os._exit, [int(ExitCode.INTERRUPTED)])
            leave.daemon = True
            leave.start()


async def until_signalled(
    work: Callable[[], Awaitable[None]], signalled: Callable[[], None] = lambda: None
) -> bool:
    """Await `work`, or cancel it when a signal comes; whether one did.

    `signalled` is called for each signal. Afterwards signals are ignored.
    """
    interrupted = False
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def watch() -> None:
                nonlocal interrupted
                with anyio.open_signal_receiver(*_stopping_signals()) as signals:
                    async for _ in signals:
                        interrupted = True
                        signalled()
                        scope.cancel()

            group.start_soon(watch)
            await work()
        group.cancel_scope.cancel()
    if interrupted:
        _ignore_signals()
    return interrupted


def _ignore_signals() -> None:
    """What is left to do takes a moment, and a second Ctrl-C would lose it."""
    for stopping in _stopping_signals():
        signal.signal(stopping, signal.SIG_IGN)


def _stopping_signals() -> list[signal.Signals]:
    """Ctrl-C, the usual way to stop a program, and a terminal that is closed (unless `nohup`)."""
    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    return stopping
