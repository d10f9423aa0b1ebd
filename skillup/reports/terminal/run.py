"""A run while it goes on (the live display, or a line for each trial), and when it is over."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from skillup.plan import Job, Plan
from skillup.reports.formats import FORMATS, HTML
from skillup.reports.result import (
    STYLE,
    Row,
    RunView,
    baseline_words,
    count_parts,
    grouped,
    stop_lines,
)
from skillup.reports.terminal.conversation import ConversationStream
from skillup.reports.terminal.layout import make_text, print_sheet
from skillup.reports.text import Labels, count, money, one_line, plain, seconds, shown_path, tokens
from skillup.schema.grade import Grade, RunResult
from skillup.schema.record import Record
from skillup.trial.request import TrialEvent

Amount = TypeVar("Amount", int, float)
_HEARTBEAT_SECONDS = 60.0
_WIDEST_LABEL = 50
_REASON_CHARACTERS = 60
_WAITING = "waiting for the agent"
_SIMULATED = "simulated user: "
_WORDS = {"PASS": "passed", "FAIL": "failed", "ERROR": "in error", "SKIP": "skipped"}


@dataclass(slots=True)
class Running:
    job: Job
    began: float
    turn: int = 0
    turns: int = 0
    doing: str = "preparing the workspace"
    tokens: int | None = None
    cost_usd: float | None = None

    def add(self, event: TrialEvent) -> None:
        if event.kind == "turn_started":
            self.turn, self.turns = event.turn, event.turns
            self.doing = f"{_SIMULATED}{event.text}" if event.text else _WAITING
        elif event.kind == "message_sent" and event.source == "follow_up":
            self.doing = f"follow-up: {event.text}"
        elif event.kind == "message_sent" and not self.doing.startswith(_SIMULATED):
            self.doing = _WAITING
        elif event.kind == "item" and event.item is not None and event.item.tool_result is not None:
            self.doing = "thinks"
        elif event.kind == "activity":
            self.doing = event.text
        elif event.kind == "turn_ended":
            self.doing = "between two turns" if event.turn < event.turns else "judging"
            self.tokens = _sum(self.tokens, event.tokens)
            self.cost_usd = _sum(self.cost_usd, event.cost_usd)


class RunProgress:
    def __init__(
        self,
        plan: Plan,
        *,
        finished: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`finished`: the trials that an earlier start of the run has ended."""
        done = set(finished)
        self.clock = clock
        self.began = clock()
        self.running: dict[str, Running] = {}
        self.counts: Counter[str] = Counter()
        self.kept = sum(job.id in done for job in plan.jobs)
        self.total = len(plan.jobs)
        self._waiting = {job.id for job in plan.jobs if job.id not in done}
        self._tokens: int | None = None
        self._cost: float | None = None

    @property
    def done(self) -> int:
        """Trials that have ended, earlier ones too."""
        return self.kept + sum(self.counts.values())

    def start(self, job: Job, attempt: int) -> None:
        self._waiting.discard(job.id)
        before = self.running.get(job.id)
        running = Running(job, self.clock())
        if attempt > 1:
            running.doing = f"attempt {attempt}"
        if before is not None:  # goes on after turns it shared, or after an attempt
            running.tokens, running.cost_usd = before.tokens, before.cost_usd
        self.running[job.id] = running

    def add(self, event: TrialEvent) -> None:
        if event.job in self.running:
            self.running[event.job].add(event)

    def end(self, job: Job, grade: Grade) -> None:
        self._waiting.discard(job.id)
        self.running.pop(job.id, None)
        self.counts[grade.status] += 1
        self._tokens = _sum(self._tokens, Row(grade).tokens)
        self._cost = _sum(self._cost, grade.cost_usd)

    def spent(self) -> tuple[int | None, float | None]:
        """Tokens and cost so far, running trials included; None: not known."""
        used, cost = self._tokens, self._cost
        for running in list(self.running.values()):
            used, cost = _sum(used, running.tokens), _sum(cost, running.cost_usd)
        return used, cost

    def seconds_left(self) -> float | None:
        """At the pace so far, running trials being half done; None: too little is known."""
        ended = sum(self.counts[status] for status in ("PASS", "FAIL", "ERROR"))
        if ended < 2 or not (self.running or self._waiting):
            return None
        left = len(self._waiting) + len(self.running) / 2
        return left * (self.clock() - self.began) / ended

    def words(self) -> Iterator[str]:
        """What matters most comes first: a narrow terminal cuts the rest."""
        counts = {"kept": self.kept, "running": len(self.running), "waiting": len(self._waiting)}
        yield from (f"{number} {word}" for word, number in counts.items() if number)
        yield seconds(round((self.clock() - self.began) * 1000))
        left = self.seconds_left()
        if left is not None:
            yield f"about {seconds(round(left / 10) * 10_000)} left"
        used, cost = self.spent()
        if used is not None:
            yield f"{tokens(used)} tokens"
        if cost is not None:
            yield money(cost)


def _sum(a: Amount | None, b: Amount | None) -> Amount | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


class PlainReporter:
    """A line for each trial that ends; where none does for a minute, that it goes on."""

    def __init__(
        self,
        plan: Plan,
        console: Console,
        *,
        quiet: bool = False,
        verbose: bool = False,
        mask: Callable[[str], str] = str,
        finished: Iterable[str] = (),
    ) -> None:
        """`finished`: the trials that an earlier start of this run has ended."""
        self.console = console
        self.quiet = quiet
        self.mask = mask
        self.progress = RunProgress(plan, finished=finished)
        self._stream = ConversationStream(console, mask) if verbose else None
        self._jobs = {job.id: job for job in plan.jobs}
        self._labels = Labels(job.id.rsplit("/", maxsplit=3)[1:] for job in plan.jobs)
        widest = max((len(self.label(job)) for job in plan.jobs), default=0)
        self._widest = min(widest, _WIDEST_LABEL, console.width // 3)
        self._silent = True
        self._over = threading.Event()

    def __enter__(self) -> PlainReporter:
        if not self.quiet:
            threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(_HEARTBEAT_SECONDS):
            if self._silent:
                trials = f"{self.progress.done}/{self.progress.total} trials"
                self._print(", ".join([trials, *self.progress.words()]), "dim")
            self._silent = True

    def _print(self, text: str | Text, style: str = "") -> None:
        self._silent = False
        self.console.print(make_text(text), style=style, soft_wrap=True)

    def label(self, job: Job) -> str:
        return self._labels.label(*job.id.rsplit("/", maxsplit=3))  # a case may hold slashes

    def trial_started(self, job: Job, attempt: int) -> None:
        self.progress.start(job, attempt)

    def trial_event(self, event: TrialEvent) -> None:
        self.progress.add(event)
        job = self._jobs.get(event.job)
        if self._stream is not None and job is not None:
            self._stream.add(event, self.label(job))

    def stopping(self, times: int) -> None:
        """A signal asked the run to end, so many times."""
        self._print(self._stopping_words(times), "bold yellow")

    def _stopping_words(self, times: int) -> str:
        if times > 1:
            return "leaving at once"
        agents = count(len(self.progress.running), "agent")
        return f"stopping: ending {agents}; Ctrl-C again to leave at once"

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:  # noqa: ARG002
        if not self.quiet:
            line = f"RETRY  {self.label(job)}  ({one_line(self.mask(reason), 300)})"
            self._print(line, "yellow")

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:  # noqa: ARG002
        """One line: status, case, turns, time, and why if it did not pass."""
        self.progress.end(job, grade)
        if self._stream is not None:
            self._stream.end(job.id, self.label(job), grade)
        if self.quiet:
            return
        turns = sum(turn.status != "skipped" for turn in grade.turns)
        label = f"  {self.label(job):<{self._widest}}"
        line = make_text((f"{grade.status:<5}", STYLE[grade.status]), label)
        line.append(f"  {turns} turn{'s' if turns != 1 else ' '}  {seconds(grade.duration_ms):>6}")
        if grade.attempt > 1:
            line.append(f"  attempt {grade.attempt}", style="yellow")
        # All of the reason stands once, under the table.
        why = "" if grade.status == "PASS" else f"  {one_line(grade.reason, _REASON_CHARACTERS)}"
        self._print(line.append(why, style="dim" if grade.status == "SKIP" else ""))


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


def reporter_for(console: Console, *, quiet: bool) -> type[PlainReporter]:
    """The live display is for people: some CI systems give their jobs a terminal, and keep all that
    it was sent as a log; and colours that FORCE_COLOR asks for make no terminal of a file.
    """
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    is_live = console.file.isatty() and not console.is_dumb_terminal and not in_ci and not quiet
    return LiveReporter if is_live else PlainReporter


def print_result(result: RunResult, where: str, console: Console, *, verbose: bool = False) -> None:
    """The closing table (of cases that ran several times, unless `verbose`, only trials that did
    not pass), then one line that counts; `where`: the run's directory.
    """
    from skillup.reports.tables import sheets_of, trial_sheet

    view = RunView(result)
    several = any(row.grade.trial > 1 for row in view.rows) and not verbose
    rows = [row for row in view.rows if not several or row.grade.status != "PASS"]
    if rows:
        print_sheet(console, trial_sheet(view, rows))
    if len(rows) < len(view.rows):
        _print(console, f"{count(len(view.rows) - len(rows), 'trial')} passed", "dim")
    # Why each did not pass; once for trials of which it is the same, as of turns they share.
    for alike in grouped(rows, lambda row: (row.grade.status, _why(row))):
        grade, why = alike[0].grade, _why(alike[0])
        if why:
            line = make_text((f"{view.names(alike)}: ", STYLE[grade.status]), why)
            console.print(line, soft_wrap=True)
    for note, style in view.notes():
        _print(console, f"note: {note}", style)
    for sheet in sheets_of(result.analysis):
        print_sheet(console, sheet)
    console.print()
    parts = count_parts(
        result.summary, not_run=len(result.not_run), not_needed=len(result.not_needed)
    )
    baseline = baseline_words(result.summary.baseline)
    counts = Text(", ").join(Text(text, style=style) for text, style in parts)
    rest = f" in {seconds(result.summary.duration_ms)}{f'; {baseline}' if baseline else ''}"
    console.print(make_text(counts, f"{rest}   {where}"), soft_wrap=True)


def print_ending(result: RunResult, go_on: str, console: Console) -> None:
    """What was not run, why, and the command `go_on` that runs it, whatever else is printed."""
    for line in stop_lines(result, go_on):
        _print(console, line, "yellow")


def print_look(written: Sequence[Path], run: str, console: Console) -> None:
    """The reports that were `written`; on a terminal, else, the verbs that show `run`."""
    for path in written:
        _print(console, f"report: {shown_path(path)}", "dim")
    if console.file.isatty() and FORMATS[HTML] not in (path.name for path in written):
        _print(console, f"look: skillup show {run} · skillup view {run}", "dim")


def _print(console: Console, text: str, style: str) -> None:
    console.print(plain(text), style=style, markup=False, soft_wrap=True)


def _why(row: Row) -> str:
    """What the numbers do not say: why it did not pass, or which follow-up it took to pass."""
    if row.grade.status != "PASS":
        return one_line(row.grade.reason, 300)
    helped = [f"turn {t.turn_number} ({t.passed_on})" for t in row.grade.turns if t.passed_on]
    return f"passed on {', '.join(helped)}" if helped else ""
