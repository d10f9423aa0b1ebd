"""A run while it goes on: what is known of it, and a line for each trial that ends.

Nothing here loads what draws before there is something to print: the first agent waits for it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from skillup.dataclass import mutable
from skillup.plan import Job, Plan
from skillup.reports.result import STYLE, total_tokens
from skillup.reports.text import Labels, count, money, one_line, seconds, tokens, total
from skillup.schema.grade import Grade
from skillup.schema.record import Record, total_cost
from skillup.trial.request import TrialEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from skillup.reports.terminal.conversation import ConversationStream

_HEARTBEAT_SECONDS = 60.0
_WIDEST_LABEL = 50
_REASON_CHARACTERS = 60
_NARROWEST_REASON = 12
_WAITING = "waiting for the agent"


@mutable
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
            self.doing = f"simulated user: {event.text}" if event.text else _WAITING
        elif event.kind == "message_sent" and event.source != "simulator":
            self.doing = _WAITING
        elif event.kind == "item" and event.item is not None and event.item.tool_result is not None:
            self.doing = "thinks"
        elif event.kind == "activity":
            self.doing = event.text
        elif event.kind == "turn_ended":
            self.doing = "between two turns" if event.turn < event.turns else "judging"
            self.tokens = total_cost((self.tokens, event.tokens))
            self.cost_usd = total_cost((self.cost_usd, event.cost_usd))


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
        self._tokens: int | None = None
        self._costs: list[float | None] = []

    @property
    def done(self) -> int:
        """Trials that have ended, earlier ones too."""
        return self.kept + sum(self.counts.values())

    @property
    def waiting(self) -> int:
        """Trials that have not begun."""
        return self.total - self.done - len(self.running)

    def start(self, job: Job, attempt: int) -> None:
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
        self.running.pop(job.id, None)
        self.counts[grade.status] += 1
        self._tokens = total_cost((self._tokens, total_tokens(grade.usage)))
        self._costs.append(grade.cost_usd)

    def spent(self) -> tuple[int | None, str]:
        """Tokens and cost so far, running trials included; None, or a dash: not known."""
        running = list(self.running.values())
        costs = [one.cost_usd for one in running if one.cost_usd is not None]
        used = total_cost([self._tokens, *(one.tokens for one in running)])
        return used, total([*self._costs, *costs])

    def seconds_left(self) -> float | None:
        """At the pace so far, running trials being half done; None: too little is known."""
        ended = sum(self.counts[status] for status in ("PASS", "FAIL", "ERROR"))
        if ended < 2 or not (self.running or self.waiting):
            return None
        left = self.waiting + len(self.running) / 2
        return left * (self.clock() - self.began) / ended

    def words(self) -> Iterator[str]:
        """What matters most comes first: a narrow terminal cuts the rest."""
        counts = {"kept": self.kept, "running": len(self.running), "waiting": self.waiting}
        yield from (f"{number} {word}" for word, number in counts.items() if number)
        yield seconds(round((self.clock() - self.began) * 1000))
        left = self.seconds_left()
        if left is not None:
            yield f"about {seconds(round(left / 10) * 10_000)} left"
        used, cost = self.spent()
        if used is not None:
            yield f"{tokens(used)} tokens"
        if cost != money(None):
            yield cost


class PlainReporter:
    """A line for each trial that ends; where none does for a minute, that it goes on."""

    def __init__(
        self,
        plan: Plan,
        make_console: Callable[[], Console],
        *,
        quiet: bool = False,
        verbose: bool = False,
        mask: Callable[[str], str] = str,
        finished: Iterable[str] = (),
    ) -> None:
        """`finished`: the trials that an earlier start of this run has ended."""
        self._make_console = make_console
        self.quiet = quiet
        self.mask = mask
        self.progress = RunProgress(plan, finished=finished)
        self._stream: ConversationStream | None = None
        if verbose:
            from skillup.reports.terminal.conversation import ConversationStream

            self._stream = ConversationStream(self.console, mask)
        self._plan = plan
        self._jobs = {job.id: job for job in plan.jobs} if verbose else {}
        self._labels = Labels(job.id.rsplit("/", maxsplit=3)[1:] for job in plan.jobs)
        self._silent = True
        self._over = threading.Event()

    @cached_property
    def console(self) -> Console:
        return self._make_console()

    @cached_property
    def _widest(self) -> int:
        widest = max((len(self.label(job)) for job in self._plan.jobs), default=0)
        return min(widest, _WIDEST_LABEL, self.console.width // 3)

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
        from skillup.reports.terminal.layout import print_line

        self._silent = False
        print_line(self.console, text, style=style)

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
        from skillup.reports.terminal.layout import make_text

        turns = sum(turn.status != "skipped" for turn in grade.turns)
        label = f"  {self.label(job):<{self._widest}}"
        line = make_text((f"{grade.status:<5}", STYLE[grade.status]), label)
        line.append(f"  {turns} turn{'s' if turns != 1 else ' '}  {seconds(grade.duration_ms):>6}")
        if grade.attempt > 1:
            line.append(f"  attempt {grade.attempt}", style="yellow")
        # All of the reason stands once, under the table.
        room = min(_REASON_CHARACTERS, self.console.width - line.cell_len - 2)
        if grade.status != "PASS" and room >= _NARROWEST_REASON:
            why = f"  {one_line(grade.reason, room)}"
            line.append(why, style="dim" if grade.status == "SKIP" else "")
        self._print(line)
