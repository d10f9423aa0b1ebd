"""A run on a terminal while it goes on: the live display."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from skillup.reports.result import STYLE
from skillup.reports.terminal.progress import PlainReporter
from skillup.reports.text import money, one_line, plain, seconds, tokens

_WORDS = {"PASS": "passed", "FAIL": "failed", "ERROR": "in error", "SKIP": "skipped"}


class LiveReporter(PlainReporter):
    """As the plain one, with the counts below, and a line for each running trial."""

    _notice_below = ""
    _live: Live | None = None

    def __enter__(self) -> LiveReporter:
        # Whatever agents print is captured; what else writes here must not be reordered.
        self._live = Live(
            self,
            console=self.console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def stopping(self, times: int) -> None:
        self._notice_below = self._stopping_words(times)
        if self._live is not None:
            self._live.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What stands at the bottom of the screen; of trials, as many as there is room for."""
        progress, width = self.progress, options.max_width
        counts = Text(f"{progress.done}/{progress.total} trials", style="bold")
        for status, word in _WORDS.items():
            if progress.counts[status]:
                counts.append(f"  {progress.counts[status]} {word}", style=STYLE[status])
        head = [counts, Text(", ".join(progress.words()), style="dim")]
        if self._notice_below:
            head.append(Text(self._notice_below, style="bold yellow"))
        for line in head:
            line.truncate(width, overflow="ellipsis")
            yield line
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=width * 2 // 5)
        for _ in range(4):
            table.add_column(no_wrap=True, overflow="ellipsis", style="dim", justify="right")
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for one in list(progress.running.values()):
            table.add_row(
                Text(f"● {self.label(one.job)}"),
                f"turn {one.turn}/{one.turns}" if one.turns else "",
                seconds(round((progress.clock() - one.began) * 1000)),
                f"{tokens(one.tokens)} tok" if one.tokens is not None else "",
                money(one.cost_usd) if one.cost_usd is not None else "",
                Text(one_line(self.mask(plain(one.doing)), width)),
            )
        yield table
