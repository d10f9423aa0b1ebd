"""Stdout and stderr of the command: what becomes of them is no reason for another exit code.

A reader that goes away (`| head`) ends nothing: the rest is dropped, and the exit code is that of
what was done. A stdout that cannot be written otherwise (a full disk below `> night.txt`) is for
the user to mend, and says so; an OSError alone would not tell it from a file of the run. Nobody has
to listen to stderr: what it cannot take is dropped.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from skillup.errors import OutputError


class _Output(io.FileIO):
    """The lowest layer, so that whatever is written passes here: text, or bytes."""

    required = True
    """Whether a write that fails, though somebody reads, is an error."""
    _gone = False

    def write(self, data: Any, /) -> int:
        """All of `data` counts as written once the reader has gone. Raises OutputError, once."""
        if self._gone:
            return len(data)
        try:
            written: int | None = super().write(data)
            if written is None:  # it was made non-blocking, and takes no more just now
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        except OSError as error:
            self._gone = True
            if self.required and not isinstance(error, BrokenPipeError):
                raise OutputError(f"cannot write to stdout: {error.strerror or error}") from error
            return len(data)
        return written


@contextmanager
def standard_output() -> Iterator[None]:
    """Within, stdout and stderr are as this module says, if they are streams of the system's.

    What is still in their buffers at the end is for the caller to flush, within.
    """
    usual = sys.stdout, sys.stderr
    sys.stdout = _wrapped(sys.stdout, sys.__stdout__, required=True)
    sys.stderr = _wrapped(sys.stderr, sys.__stderr__, required=False)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = usual


def _wrapped(usual: TextIO | None, systems: TextIO | None, *, required: bool) -> TextIO:
    """`usual` with :class:`_Output` below it; the null device where there is none (`2>&-`)."""
    if usual is None:
        return open(os.devnull, "w")  # noqa: PTH123 - for good
    if usual is not systems or not isinstance(usual, io.TextIOWrapper):
        return usual
    raw = _Output(usual.fileno(), "w", closefd=False)
    raw.required = required
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=usual.encoding,
        errors="backslashreplace",  # where it has no such characters
        line_buffering=usual.line_buffering,
        write_through=usual.write_through,
    )
