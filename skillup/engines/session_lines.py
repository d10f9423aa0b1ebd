"""The lines of a session file as they are on disk: long, cut, or no text at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from skillup.engines.transcript import read_event

LONGEST_LINE = 64 << 20
"""Bytes. Pictures stand in session files as text; nothing else is as long as this."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank."""

    number: int
    """From 1; blank lines count."""
    row: dict[str, Any] | str
    """The JSON object, or the text of what is none."""
    ended: bool
    """It has its newline."""


def lines_of(
    path: Path, limit: int | None = None, *, longest: int = LONGEST_LINE
) -> Iterator[Line]:
    """The lines within the first `limit` bytes, one at a time. Raises OSError.

    A line that the limit cuts is left out; of one above `longest` only the beginning is told.
    """
    with path.open("rb") as file:
        number = 0
        left = limit
        while True:
            room = longest if left is None else min(left, longest)
            data = file.readline(room)
            number += 1
            if not data:
                return
            ended = data.endswith(b"\n")
            if left is not None:
                left -= len(data)
                if left == 0 and not ended:
                    return
            if len(data) == longest and not ended:
                ended = _skip_rest(file)
                yield Line(number, data[:1000].decode(errors="replace"), ended)
                continue
            row = read_event(_as_utf8(data.rstrip(b"\r\n")))
            if row is not None:
                yield Line(number, row, ended)


def _skip_rest(file: BinaryIO) -> bool:
    while True:
        data = file.readline(1 << 20)
        if not data or data.endswith(b"\n"):
            return bool(data)


def _as_utf8(data: bytes) -> bytes:
    """With what is no UTF-8 replaced: one broken character shall not cost a message."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace").encode()
    return data
