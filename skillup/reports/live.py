"""The live display: one line for each trial that is running now, and the counts so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skillup.plan import Plan
from skillup.reports.heartbeat import Heartbeat
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
        from skillup.reports.folded_live import FoldedLive

        self._notice = ""
        self._drawn: list[str] = []
        self._live = FoldedLive(self, console, lambda: self._drawn)
        self._ticks = Heartbeat(self._live.refresh, 1 / _TIMES_A_SECOND)

    def __enter__(self) -> LiveReporter:
        self._live.start()
        self._ticks.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ticks.stop()
        self._live.stop()

    def stopping(self, times: int) -> None:
        """Ctrl-C was pressed; it stands at the bottom until all has ended."""
        self._notice = stopping_words(len(self.standing.running), times)
        self._live.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What stands at the bottom of the screen right now."""
        del console
        width, height = options.max_width, options.size.height
        lines = view(self.standing, self.label, width, height, self._notice, self.mask)
        self._drawn = [line.plain for line in lines]
        yield from lines
