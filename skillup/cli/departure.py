"""What a run does about Ctrl-C: the first time it ends its agents in order, the second at once."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from skillup.errors import ExitCode
from skillup.executors import RunObserver
from skillup.process import kill_running

_PATIENCE_SECONDS = 10.0
"""For writing down what has finished, once all agents are dead. Then skillup leaves regardless."""


class Interrupted(RunObserver, Protocol):
    """An observer that can also say what becomes of a signal."""

    def stopping(self, times: int) -> None:
        """The run was asked to end, for the first or the second time."""
        ...

    def abandon(self) -> None:
        """The end: the terminal is to be left as it was found."""
        ...


class Departure:
    """Counts the signals that ask the run at `path` to end, and does what each is for."""

    def __init__(self, observer: Interrupted, path: Path) -> None:
        self._observer = observer
        self._path = path
        self._times = 0

    def signalled(self) -> None:
        """Another one. Whoever leans on the keys loses nothing: after the second none counts."""
        self._times += 1
        if self._times > 2:
            return
        with suppress(OSError):  # a terminal that was closed
            self._observer.stopping(self._times)
        if self._times == 2:
            kill_running()
            # Agents that are dead are waited for no more. Only a defect could hold it up now.
            threading.Thread(target=self._leave, name="leave", daemon=True).start()

    def _leave(self) -> None:
        threading.Event().wait(_PATIENCE_SECONDS)
        with suppress(OSError):
            self._observer.abandon()
            sys.stderr.write(f"interrupted; go on with: skillup run --resume {self._path}\n")
            sys.stderr.flush()
        os._exit(ExitCode.INTERRUPTED)
