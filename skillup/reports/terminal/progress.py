"""A run while it goes on: the live display on a terminal, a line for each trial elsewhere."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from skillup.plan import Job, Plan
from skillup.reports.terminal.conversation import ConversationStream
from skillup.reports.terminal.layout import make_text
from skillup.reports.text import count, money, one_line, plain, seconds, tokens
from skillup.reports.view_model import STYLE, Labels, row_of
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.trial import TrialEvent

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
    attempt: int = 1
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
        """`finished` are the trials that an earlier start of the run has ended."""
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
        running = Running(job, self.clock(), attempt)
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
        self._tokens = _sum(self._tokens, row_of(grade).tokens)
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
        """``3 running``, ``25 waiting``, ``12 s``, ``about 50 s left``, ``9k tokens``, ``$0.31``.

        What matters most comes first: a narrow terminal cuts the rest. What is not known is left
        out.
        """
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
    """A line for each trial that ends. Also what the live display prints above itself.

    Where nothing ends for `heartbeat` seconds (None: however long) a line says that it goes on.
    """

    def __init__(
        self,
        plan: Plan,
        console: Console,
        *,
        quiet: bool = False,
        verbose: bool = False,
        mask: Callable[[str], str] = str,
        finished: Iterable[str] = (),
        heartbeat: float | None = None,
    ) -> None:
        self.console = console
        self.quiet = quiet
        self.mask = mask
        self.progress = RunProgress(plan, finished=finished)
        self._stream = ConversationStream(console, mask) if verbose else None
        self._jobs = {job.id: job for job in plan.jobs}
        self._labels = Labels.of([(job.profile.name, job.variant, job.trial) for job in plan.jobs])
        widest = max((len(self.label(job)) for job in plan.jobs), default=0)
        self._widest = min(widest, _WIDEST_LABEL, console.width // 3)
        self._heartbeat = None if quiet else heartbeat
        self._silent = True
        self._over = threading.Event()

    def __enter__(self) -> PlainReporter:
        if self._heartbeat:
            threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(self._heartbeat):
            if self._silent:
                trials = f"{self.progress.done}/{self.progress.total} trials"
                self._print(", ".join([trials, *self.progress.words()]), "dim")
            self._silent = True

    def _print(self, text: str | Text, style: str = "") -> None:
        self._silent = False
        self.console.print(make_text(text), style=style, soft_wrap=True)

    def label(self, job: Job) -> str:
        case = job.id.rsplit("/", maxsplit=3)[0]  # a case's id may hold slashes
        return self._labels.label(case, job.profile.name, job.variant, job.trial)

    def trial_started(self, job: Job, attempt: int) -> None:
        self.progress.start(job, attempt)

    def trial_event(self, event: TrialEvent) -> None:
        self.progress.add(event)
        job = self._jobs.get(event.job)
        if self._stream is not None and job is not None:
            self._stream.add(event, self.label(job))

    def stopping(self, times: int) -> None:
        self._print(stopping_words(len(self.progress.running), times), "bold yellow")

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
        self._notice_below = stopping_words(len(self.progress.running), times)
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


def stopping_words(running: int, times: int) -> str:
    """What is printed at once when a signal asks the run to end."""
    if times > 1:
        return "leaving at once"
    return f"stopping: ending {count(running, 'agent')}; Ctrl-C again to leave at once"


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

    The live display is for people: some CI systems give their jobs a terminal, and keep all that
    it was sent as a log; and colours that FORCE_COLOR asks for make no terminal of a file.
    `finished` are the trials that an earlier start of this run has ended.
    """
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    is_live = console.file.isatty() and not console.is_dumb_terminal and not in_ci and not quiet
    return (LiveReporter if is_live else PlainReporter)(
        plan,
        console,
        quiet=quiet,
        verbose=verbose,
        mask=mask,
        finished=finished,
        heartbeat=None if is_live else _HEARTBEAT_SECONDS,
    )
