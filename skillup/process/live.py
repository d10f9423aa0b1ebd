"""A process that stays from turn to turn: fed a message, and read until its turn is over.

Between turns nothing of it is read. Whatever else happens than a turn that ends well, it is ended
as any other process (process/run.py), and its outcome is that of one.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from skillup.dataclass import mutable
from skillup.process.output import OnLine
from skillup.process.run import Child, ProcessOutcome, ProcessRequest, start_process, supervise
from skillup.process.tree import read_row

_CLOSE_SECONDS = 5.0  # How long it may take to end when no more messages come


@mutable
class LiveSlot:
    """The process of a conversation, if it has one at the moment."""

    process: Child | None = None
    argv: tuple[str, ...] = ()  # It was started so
    parser: Any = None  # Of its latest turn, or of one before it
    stays: bool = True  # False: each is ended after its turn

    @property
    def parser_before(self) -> Any:
        """Of the turn before in this process; None: it is yet to be started."""
        return self.parser if self.process is not None else None

    @property
    def is_ready(self) -> bool:
        """Whether there is one that still runs, and has been silent since its turn."""
        if self.process is None:
            return False
        row = read_row(self.process.pid)
        waiting = select.poll()
        waiting.register(self.process.stdout, select.POLLIN)
        return row is not None and not row.zombie and not waiting.poll(0)

    async def run(
        self, request: ProcessRequest, on_line: OnLine, may_stay: Callable[[], bool] = bool
    ) -> ProcessOutcome:
        """One turn, in a new process if there is none; `stdin` is the message, and what `on_line`
        returns goes there, too.

        The turn is over when the request's `has_answered` says so. Then the process stays if it
        `may_stay` and nothing that it started apart from itself is left. Raises as `run_process`.
        """
        await anyio.lowlevel.checkpoint()
        process, self.process = self.process, None
        if process is None:
            started = start_process(request)
            if isinstance(started, str):
                return ProcessOutcome(None, None, "not_started", start_error=started)
            process = started
        outcome = await supervise(request, process, on_line, lambda: self.stays and may_stay())
        if outcome.ended_by == "kept":
            self.process = process
        return outcome

    async def end(self) -> str:
        """Ends the process, also for whoever is cancelled; the last of what it said as errors."""
        process, self.process = self.process, None
        if process is None:
            return ""
        request = ProcessRequest((), Path(), {}, timeout_seconds=_CLOSE_SECONDS)
        with anyio.CancelScope(shield=True):
            outcome = await supervise(request, process, None)
        return outcome.stderr_tail
