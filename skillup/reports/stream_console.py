"""A console for what people read: on a terminal, or plain and wide where there is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO, cast

from skillup.reports.forgiving import Forgiving

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 200
"""Columns to assume where the output is no terminal, so that nothing is folded in log files."""


def make_console(stream: TextIO | None = None) -> Console:
    """A console on `stream`; wide and plain where that is no terminal.

    None: on stderr, to which nobody has to listen: what cannot be written there is dropped.
    """
    from skillup.reports.orderly_console import OrderlyConsole

    file = cast("TextIO", Forgiving(sys.stderr)) if stream is None else stream
    # Without `emoji`: of others' texts ``:key:`` and the like are not to become pictures.
    return OrderlyConsole(
        file=file, highlight=False, emoji=False, width=None if file.isatty() else _WIDE
    )
