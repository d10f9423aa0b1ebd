"""A stream to which nobody has to listen: a run does not end because its terminal was closed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TextIO


class Forgiving:
    """`stream`, but what it cannot take is dropped: `| head` that has gone, a full disk."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Of all of it, in any case."""
        with suppress(OSError, ValueError):  # ValueError: it was closed
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As far as that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
