"""The live display: one line for each trial that is running now, and the counts so far."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment

from skillup.plan import Plan
from skillup.reports.terminal.progress import Heartbeat, PlainReporter, stopping_words
from skillup.reports.terminal.run_progress import view

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


# rich's `Live`, for terminals on which a line may take more rows than one.


class FoldedLive(Live):
    """Shows `renderable` and erases all of it before it is drawn anew."""

    def __init__(
        self, renderable: ConsoleRenderable, console: Console, drawn: Callable[[], Sequence[str]]
    ) -> None:
        """`drawn` are the lines of the renderable as it was last drawn; none: it was not."""
        self._drawn = drawn
        super().__init__(
            renderable,
            console=console,
            auto_refresh=False,  # its thread takes rich's lock first, and then the console's
            transient=True,
            # Whatever agents print is captured; what else writes here must not be reordered.
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def start(self, refresh: bool = False) -> None:
        """As rich does it: but see the console's own lock."""
        with self.console:
            super().start(refresh)

    def stop(self) -> None:
        """What was drawn is gone."""
        with self.console:
            super().stop()

    def refresh(self) -> None:
        """Draw it anew."""
        with self.console:
            super().refresh()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """As rich does it, and before it the rows that rich does not count.

        What is printed above may go on in another row, what is drawn below may not.
        """
        if not self.console.is_interactive:
            return super().process_renderables(renderables)
        extra = rows_by_folding(self._drawn(), self.console.width) if _folds() else 0
        up = Control(*((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1)) * extra)
        *above, drawn = super().process_renderables(renderables)
        return [up, *above, _Mode("\x1b[?7l"), drawn, _Mode("\x1b[?7h")]


class _Mode:
    """Has the terminal go on in the next row where one is full, or not (DECAWM)."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # rich has no name for it; any name makes the text one that takes no room.
        yield Segment(self._code, None, [(ControlType.CARRIAGE_RETURN,)])


def rows_by_folding(lines: Sequence[str], columns: int) -> int:
    """How many rows more than lines there are, where they have no more than so many columns."""
    return sum(max(len(chop_cells(line, columns)), 1) - 1 for line in lines)


def _folds() -> bool:
    """Whether the terminal folds lines at all: xterm and GNU screen cut them off."""
    return "TMUX" in os.environ or not {"XTERM_VERSION", "STY"} & os.environ.keys()
