"""The events on stdout."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than a turn takes to hold
    from typing import Any


class Stream:
    """Prints events as they happen; a reader sees each at once."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.garbled = False
        """A fault on request: from now on no line is whole."""

    def event(self, kind: str, **fields: Any) -> None:
        """One line. Escaped to ASCII, so that neither locale nor lone surrogates can break it."""
        line = json.dumps({"type": kind, **fields})
        if self.garbled:
            # The last brace has lost its partner, so this can never be JSON by accident.
            line = line[len(line) // 2 :]
        self._write(line.encode())

    def result(self, answer: str, error: dict[str, str] | None) -> None:
        """The last event."""
        session = self.session_id
        failed = error is not None
        self.event("result", session_id=session, answer=answer, is_error=failed, error=error)

    def flood(self, size: int) -> None:
        """A single event of about `size` bytes, without holding it in memory."""
        output = sys.stdout.buffer
        output.write(b'{"type": "flood", "text": "')
        block = b"x" * 65536
        for _ in range(size // len(block)):
            output.write(block)
        output.write(block[: size % len(block)])
        self._write(b'"}')

    def _write(self, line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
