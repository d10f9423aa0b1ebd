"""A run on a terminal while it goes on (the live display), and when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skillup.reports.result import STYLE, Row, RunView, baseline_words, count_parts, is_bad
from skillup.reports.terminal.progress import PlainReporter
from skillup.reports.text import count, money, one_line, plain, seconds, tokens
from skillup.schema.grade import RunResult
from skillup.schema.line import grouped

if TYPE_CHECKING:  # To a log much can be said without it
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

_ALL_ROWS = 50  # Of more trials, only those that did not pass are listed
_WORDS = {"PASS": "passed", "FAIL": "failed", "ERROR": "in error", "SKIP": "skipped"}


class LiveReporter(PlainReporter):
    """As the plain one, with the counts below, and a line for each running trial."""

    _notice_below = ""
    _live: Live | None = None

    def __enter__(self) -> LiveReporter:
        from rich.live import Live

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
        from rich.table import Table
        from rich.text import Text

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


def print_result(
    result: RunResult, where: str, say: Callable[..., None], *, quiet: bool, verbose: bool
) -> None:
    """The tables, what did not pass and why, then a line that counts; `where`: the run's directory.
    Of many trials, and of cases that ran several times, only those that did not pass, unless
    `verbose`. If `quiet`, no tables. `say` prints a line of texts, or pairs of a text and a style.
    """
    view = RunView(result)
    lines = view.lines
    many = quiet or len(lines) > _ALL_ROWS or any(line.trial > 1 for line in lines)
    rows = list(view.rows(lambda line: verbose or not many or line.status != "PASS"))
    if not quiet:
        from skillup.reports.tables import sheets_of, trial_sheet
        from skillup.reports.terminal.layout import make_console, print_sheets

        console, listed = make_console(), verbose or not view.side_by_side
        if rows and listed:
            print_sheets(console, [trial_sheet(view, rows)])
        if listed and (passed := len(lines) - len(rows)):
            say((f"{count(passed, 'trial')} passed", "dim"))
        print_sheets(console, sheets_of(result.analysis, lines))
        console.print()
    for note, style in view.notes():
        if not quiet or style != "dim":
            say((f"note: {note}", style))
    # Why each did not pass; once for trials of which it is the same, as of turns they share.
    for (status, why), alike in grouped(rows, lambda row: (row.grade.status, _why(row))).items():
        if why and not (quiet and status == "FAIL" and not is_bad(alike[0].grade)):
            say((f"{view.names(alike)}: ", STYLE[status]), why)
    counts = count_parts(
        result.summary, not_run=len(result.not_run), not_needed=len(result.not_needed)
    )
    baseline = baseline_words(result.summary.baseline)
    rest = f" in {seconds(result.summary.duration_ms)}{f'; {baseline}' if baseline else ''}"
    say(*[part for one in counts for part in (", ", one)][1:], f"{rest}   {where}")


def _why(row: Row) -> str:
    """What the numbers do not say: why it did not pass, or which follow-up it took to pass."""
    if row.grade.status != "PASS":
        return one_line(row.grade.reason, 300)
    helped = [f"turn {t.turn_number} ({t.passed_on})" for t in row.grade.turns if t.passed_on]
    return f"passed on {', '.join(helped)}" if helped else ""
