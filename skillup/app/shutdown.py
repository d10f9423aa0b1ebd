"""What a run does about Ctrl-C: the first time it ends its agents in order, the second at once."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Protocol

from skillup.errors import ExitCode
from skillup.process import kill_running

_PATIENCE_SECONDS = 10.0
"""For writing down what has finished, once all agents are dead. Then skillup leaves regardless."""

_GOODBYE_SECONDS = 1.0


class Display(Protocol):
    """Who shows a run, and says what becomes of a signal."""

    def stopping(self, times: int) -> None:
        """The run was asked to end, for the first or the second time."""
        ...

    def abandon(self) -> None:
        """The end: the terminal is to be left as it was found."""
        ...


class Departure:
    """Counts the signals that ask a run to end, and does what each is for.

    `go_on` is the command that goes on with the run.
    """

    def __init__(
        self, display: Display, go_on: str, *, patience_seconds: float = _PATIENCE_SECONDS
    ) -> None:
        self._display = display
        self._go_on = go_on
        self._patience_seconds = patience_seconds
        self._times = 0

    def signalled(self) -> None:
        """Another one. Whoever leans on the keys loses nothing: after the second none counts."""
        self._times += 1
        if self._times > 2:
            return
        with suppress(OSError):  # a terminal that was closed
            self._display.stopping(self._times)
        if self._times == 2:
            kill_running()
            # Agents that are dead are waited for no more. Only a defect could hold it up now.
            threading.Thread(target=self._leave, name="leave", daemon=True).start()

    def _leave(self) -> None:
        threading.Event().wait(self._patience_seconds)
        # A terminal that takes nothing (Ctrl-S, a connection that hangs) would hold it up for ever.
        goodbye = threading.Thread(target=self._say_goodbye, name="goodbye", daemon=True)
        goodbye.start()
        goodbye.join(_GOODBYE_SECONDS)
        os._exit(ExitCode.INTERRUPTED)

    def _say_goodbye(self) -> None:
        with suppress(OSError, ValueError):  # ValueError: it was closed
            self._display.abandon()
            sys.stderr.write(f"interrupted; go on with: {self._go_on}\n")
            sys.stderr.flush()
