"""The live display: one line for each trial that is running now, and the counts so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skillup.plan import Plan
from skillup.reports.live_view import view
from skillup.reports.plain_reporter import PlainReporter, stopping_words

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_TIMES_A_SECOND = 8


class LiveReporter(PlainReporter):
    """As the plain one, with the running trials below; for terminals."""

    def __init__(
        self,
        plan: Plan,
        console: Console,
        *,
        verbose: bool = False,
        mask: Callable[[str], str] = str,
        finished: Iterable[str] = (),
    ) -> None:
        super().__init__(plan, console, verbose=verbose, mask=mask, finished=finished)
        from rich.live import Live

        self._notice = ""
        self._live = Live(
            self,
            console=console,
            refresh_per_second=_TIMES_A_SECOND,
            transient=True,
            # Whatever agents print is captured; what else writes here must not be reordered.
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> LiveReporter:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def stopping(self, times: int) -> None:
        """Ctrl-C was pressed; it stands at the bottom until all has ended."""
        self._notice = stopping_words(len(self.standing.running), times)
        self._live.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What stands at the bottom of the screen right now."""
        del console
        height = options.size.height
        yield from view(
            self.standing, self.label, options.max_width, height, self._notice, self.mask
        )
