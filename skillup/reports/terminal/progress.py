"""A run while it goes on, for logs: a line as each trial ends, and now and then that it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skillup.plan import Job, Plan
from skillup.reports.phrases import attempt_words
from skillup.reports.terminal.run_progress import STYLE, RunProgress, going_words
from skillup.reports.terminal.streaming import ConversationStream
from skillup.reports.text import one_line, plain, seconds, shown_id
from skillup.schema.grade import Grade
from skillup.schema.record import Record
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from rich.console import Console


# A word every so often where a run is silent: so that nobody takes a long trial for a dead run.


class Heartbeat:
    """Calls `beat` from a thread of its own whenever nothing was said for `every` seconds."""

    def __init__(self, beat: Callable[[], None], every: float) -> None:
        self._beat = beat
        self._every = every
        self._said = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """From now on."""
        self._said = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """No more; returns when a word that is being said is out."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def said(self) -> None:
        """Something was said: the silence begins anew."""
        self._said = time.monotonic()

    def _run(self) -> None:
        while not self._over.wait(max(self._said + self._every - time.monotonic(), 0.01)):
            if time.monotonic() - self._said >= self._every:
                self.said()
                self._beat()


_WIDEST_LABEL = 50
"""Cells that the lines of trials are aligned to; what is longer sticks out by itself."""
_FIRST_WORDS = 60
"""Characters of a reason, in the line of a trial that has just ended."""


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
        self.plan = plan
        self.console = console
        self.quiet = quiet
        self.mask = mask
        self.standing = RunProgress(plan, finished=finished)
        self.stream = ConversationStream(console, mask) if verbose else None
        self._jobs = {job.id: job for job in plan.jobs}
        self._heart = Heartbeat(self._beat, heartbeat) if heartbeat and not quiet else None
        self.show_engine = len({job.profile.name for job in plan.jobs}) > 1
        self.show_variant = len({job.variant for job in plan.jobs}) > 1
        self.show_trial = any(job.trial > 1 for job in plan.jobs)
        widest = max((text_cells(self.label(job)) for job in plan.jobs), default=0)
        self.widest = min(widest, _WIDEST_LABEL, console.width // 3)

    def __enter__(self) -> PlainReporter:
        if self._heart is not None:
            self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._heart is not None:
            self._heart.stop()

    def label(self, job: Job) -> str:
        """The job in a few words: what tells it from the others of this run."""
        parts = [shown_id(job.id.rsplit("/", maxsplit=3)[0])]  # a case's id may hold slashes
        if self.show_engine:
            parts.append(job.profile.name)
        if self.show_variant:
            parts.append(job.variant.replace("_skill", ""))
        if self.show_trial:
            parts.append(f"#{job.trial}")
        return plain(" ".join(parts))

    def trial_started(self, job: Job, attempt: int) -> None:
        """Nothing to say yet."""
        self.standing.start(job, attempt)

    def trial_event(self, event: TrialEvent) -> None:
        """Too much to be told, unless it is asked for."""
        self.standing.hear(event)
        job = self._jobs.get(event.job)
        if self.stream is not None and job is not None:
            self.stream.hear(event, self.label(job))

    def stopping(self, times: int) -> None:
        """Ctrl-C was pressed for the first, or the second time."""
        words = stopping_words(len(self.standing.running), times)
        self.console.print(words, markup=False, style="bold yellow", soft_wrap=True)

    def abandon(self) -> None:
        """The end: the terminal is left as it was found."""
        self.console.show_cursor(True)

    def _beat(self) -> None:
        parts = [f"{self.standing.done}/{self.standing.total} trials", *going_words(self.standing)]
        self.console.print(", ".join(parts), markup=False, style="dim", soft_wrap=True)

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:
        """Say that a trial is held again."""
        del record
        self._say("RETRY", job, reason)

    def trial_lost(self, job: Job, worker: str, reason: str) -> None:
        """Say that what held a trial is gone: people look for the machine."""
        self._say("LOST", job, f"worker {worker}: {reason}")

    def _say(self, what: str, job: Job, why: str) -> None:
        self._spoke()
        if not self.quiet:
            line = f"{what:<5}  {self.label(job)}  ({one_line(self.mask(why), 300)})"
            self.console.print(line, markup=False, style="yellow", soft_wrap=True)

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:
        """One line: status, case, turns, time, and why if it did not pass."""
        from rich.text import Text

        del record
        self.standing.end(job, grade)
        if self.stream is not None:
            self.stream.end(job.id, self.label(job), grade)
        self._spoke()
        if self.quiet:
            return
        line = Text()
        line.append(f"{grade.status:<5}", style=STYLE[grade.status])
        turns = sum(turn.status != "skipped" for turn in grade.turns)
        label = self.label(job)
        line.append("  " + label + " " * (self.widest - text_cells(label)))
        line.append(f"  {turns} turn{'s' if turns != 1 else ' '}  {seconds(grade.duration_ms):>6}")
        if grade.attempt > 1:
            line.append(f"  {attempt_words(grade.attempt)}", style="yellow")
        # All of it stands once, under the table.
        why = "" if grade.status == "PASS" else f"  {one_line(grade.reason, _FIRST_WORDS)}"
        line.append(why, style="dim" if grade.status == "SKIP" else "")
        self.console.print(line, soft_wrap=True)

    def _spoke(self) -> None:
        if self._heart is not None:
            self._heart.said()


def text_cells(text: str) -> int:
    """How much room `text` takes in a terminal; many characters take two cells."""
    from rich.cells import cell_len

    return cell_len(text)


def stopping_words(running: int, times: int) -> str:
    """What is said at once when a signal asks the run to end."""
    if times > 1:
        return "leaving at once"
    agents = "1 agent" if running == 1 else f"{running} agents"
    return f"stopping: ending {agents}; Ctrl-C again to leave at once"
