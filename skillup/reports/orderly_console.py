"""A console on which one thread prints at a time, from where it looks to where it has written.

A live display erases as many rows as it drew, and its thread draws while others print. rich looks
at that number before it renders, and writes after it: two threads that did so at the same time
would erase what the other has just printed, or leave rows behind. So it goes for the size of the
terminal: rich asks for it several times while it prints, and a person may be changing it.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from rich.console import Console, ConsoleDimensions


class OrderlyConsole(Console):
    """As rich's. Who needs another lock, too, takes it inside of ``with console:``."""

    def __init__(self, **more: Any) -> None:
        self._turn = threading.RLock()
        self._depth = 0
        self._size_now: ConsoleDimensions | None = None
        super().__init__(**more)

    @property
    def size(self) -> ConsoleDimensions:
        """The terminal's size: while something is printed, that when it began."""
        return self._size_now or super().size

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        self.width, self.height = size

    def __enter__(self) -> OrderlyConsole:
        self._turn.acquire()
        self._depth += 1
        if self._depth == 1:
            self._size_now = super().size
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._size_now = None
            self._turn.release()
