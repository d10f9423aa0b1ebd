"""Ctrl-C at every moment: it never shows a traceback.

While a verb is at work, Ctrl-C is a KeyboardInterrupt, so that what was begun is cleaned up. Before
(libraries are being imported, some of which would make another error of it) and afterwards there is
nothing to clean up: skillup leaves at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

CODE = 130


class Interrupted(BaseException):
    """A KeyboardInterrupt that a verb ended with; of one itself Typer would make an exit code."""


def leave_when_interrupted() -> None:
    """From now on Ctrl-C ends the process with :data:`CODE`; not where it is ignored (`nohup`)."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def raising() -> Iterator[None]:
    """Within, Ctrl-C is a KeyboardInterrupt, and outside then an :class:`Interrupted`.

    Where :func:`leave_when_interrupted` was not called, signals are left as they are.
    """
    ours = signal.getsignal(signal.SIGINT) is _leave
    try:
        if ours:
            # This one, as it is what event loops look for.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    except KeyboardInterrupt as error:
        raise Interrupted from error
    finally:
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether a KeyboardInterrupt is it, in it, or what led to it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        if isinstance(error, BaseExceptionGroup) and any(map(is_interrupt, error.exceptions)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _leave(*_: object) -> None:
    os.write(2, b"interrupted\n")  # sys.stderr may be in the middle of something
    os._exit(CODE)
