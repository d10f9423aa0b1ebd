"""Who shows a run while it goes on: the live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillup.plan import Plan
from skillup.reports.console import PlainReporter
from skillup.reports.live import LiveReporter

if TYPE_CHECKING:
    from rich.console import Console


def reporter_for(
    plan: Plan, console: Console, *, quiet: bool, verbose: bool
) -> LiveReporter | PlainReporter:
    """The observer of the run; to be used in a ``with``."""
    del verbose
    if console.is_terminal and not quiet:
        return LiveReporter(plan, console)
    return PlainReporter(plan, console, quiet=quiet)
