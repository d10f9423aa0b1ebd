"""A stdout that says, when it cannot be written, that this is what went wrong.

An `OSError` alone does not tell whether it was our output or a file of the run; and a full disk
below `> night.txt` is for the user to mend, while an error that nobody foresaw is for us.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skillup.errors import OutputError


class _Stdout(io.FileIO):
    """The lowest layer, so that whatever is written passes here: text, or bytes."""

    def write(self, data: Any, /) -> int:
        """Raises OutputError; but BrokenPipeError where the reader has gone."""
        try:
            written: int | None = super().write(data)
            if written is None:  # it was made non-blocking, and takes no more just now
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"cannot write to stdout: {error.strerror or error}") from error
        return written


@contextmanager
def stdout_that_tells() -> Iterator[None]:
    """Within, `sys.stdout` raises OutputError; nothing changes if it is no stream of the system's.

    What is still in its buffer at the end is for the caller to flush, within.
    """
    usual = sys.stdout
    if usual is not sys.__stdout__ or not isinstance(usual, io.TextIOWrapper):
        yield
        return
    usual.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Stdout(usual.fileno(), "w", closefd=False)),
        encoding=usual.encoding,
        errors=usual.errors,
        line_buffering=usual.line_buffering,
        write_through=usual.write_through,
    )
    try:
        yield
    finally:
        sys.stdout = usual
