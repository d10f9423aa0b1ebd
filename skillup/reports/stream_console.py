"""A console for what people read: on a terminal, or plain and wide where there is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 200
"""Columns to assume where the output is no terminal, so that nothing is folded in log files."""


def make_console(stream: TextIO | None = None) -> Console:
    """A console on `stream`; wide and plain where that is no terminal.

    None: on stderr.
    """
    from skillup.reports.orderly_console import OrderlyConsole

    file = sys.stderr if stream is None else stream
    # Without `emoji`: of others' texts ``:key:`` and the like are not to become pictures.
    return OrderlyConsole(
        file=file, highlight=False, emoji=False, width=None if file.isatty() else _WIDE
    )
