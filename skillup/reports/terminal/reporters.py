"""Who shows a run while it goes on: the live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skillup.plan import Plan
from skillup.reports.terminal.live import LiveReporter
from skillup.reports.terminal.progress import PlainReporter

if TYPE_CHECKING:
    from rich.console import Console

_HEARTBEAT_SECONDS = 60.0


def reporter_for(
    plan: Plan,
    console: Console,
    *,
    quiet: bool,
    verbose: bool,
    mask: Callable[[str], str] = str,
    finished: Iterable[str] = (),
) -> PlainReporter:
    """The observer of the run; to be used in a ``with``.

    `finished` are the trials that an earlier start of this run has ended.
    """
    if not quiet and _can_be_drawn_on(console):
        return LiveReporter(plan, console, verbose=verbose, mask=mask, finished=finished)
    return PlainReporter(
        plan,
        console,
        quiet=quiet,
        verbose=verbose,
        mask=mask,
        finished=finished,
        heartbeat=_HEARTBEAT_SECONDS,
    )


def _can_be_drawn_on(console: Console) -> bool:
    """Whether a person looks at a terminal that can move its cursor.

    Some CI systems give their jobs a terminal, and keep all that it was sent as a log; and colours
    that FORCE_COLOR asks for make no terminal of a file.
    """
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return console.file.isatty() and not console.is_dumb_terminal and not in_ci
