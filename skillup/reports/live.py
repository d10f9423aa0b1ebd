"""The live display: one line for each trial that is running now, and the counts so far."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillup.plan import Job, Plan
from skillup.reports.console import STYLE, PlainReporter
from skillup.reports.text import one_line, seconds
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderResult


@dataclass(slots=True)
class _Running:
    job: Job
    started: float = field(default_factory=time.monotonic)
    turn: int = 0
    turns: int = 0
    doing: str = "preparing the workspace"


class LiveReporter(PlainReporter):
    """As the plain one, with the running trials below; for terminals."""

    def __init__(self, plan: Plan, console: Console) -> None:
        super().__init__(plan, console)
        from rich.live import Live

        self._running: dict[str, _Running] = {}
        self._counts: Counter[str] = Counter()
        self._started = time.monotonic()
        self._live = Live(self, console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveReporter:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What stands at the bottom of the screen right now."""
        del console, options
        yield self._view()

    def trial_started(self, job: Job, attempt: int) -> None:
        """A new line."""
        running = _Running(job)
        if attempt > 1:
            running.doing = f"attempt {attempt}"
        self._running[job.id] = running

    def trial_event(self, event: TrialEvent) -> None:
        """What the trial's line says now."""
        running = self._running.get(event.job)
        if running is None:
            return
        many = f" (shared by {event.shared_by} trials)" if event.shared_by > 1 else ""
        if event.kind == "turn_started":
            running.turn, running.turns = event.turn, event.turns
            said = f"simulated user: {event.text}" if event.text else ""
            running.doing = (said or "waiting for the agent") + many
        elif event.kind == "activity":
            running.doing = event.text + many

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:
        """The line moves up and becomes a result."""
        self._running.pop(job.id, None)
        self._counts[grade.status] += 1
        super().trial_finished(job, record, grade)

    def _view(self) -> Group:
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
        grid.add_column(width=1)
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        now = time.monotonic()
        for running in list(self._running.values()):
            turn = f"turn {running.turn}/{running.turns}" if running.turns else ""
            grid.add_row(
                Spinner("dots", style="cyan"),
                Text(self.label(running.job)),
                Text(turn, style="dim"),
                seconds(round((now - running.started) * 1000)),
                Text(one_line(running.doing, 80), style="dim"),
            )
        done = sum(self._counts.values())
        line = Text(f"{done}/{len(self.plan.jobs)} trials", style="bold")
        for status, count in self._counts.items():
            line.append("  ")
            line.append(f"{count} {status}", style=STYLE[status])
        line.append(f"  {seconds(round((now - self._started) * 1000))}", style="dim")
        return Group(grid, line)
