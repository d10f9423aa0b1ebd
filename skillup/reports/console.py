"""What a person sees of a run, on stderr: a line as each trial ends, a table at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from skillup.plan import Job, Plan
from skillup.reports.analysis.console import print_analysis
from skillup.reports.heartbeat import Heartbeat
from skillup.reports.judge_notes import judge_lines, judging_cost
from skillup.reports.live_view import going_words
from skillup.reports.shared_turns import shared_note
from skillup.reports.standing import Standing
from skillup.reports.stops import stop_lines
from skillup.reports.streaming import ConversationStream
from skillup.reports.table import print_table
from skillup.reports.text import money, one_line, plain, seconds, shown_id, tokens
from skillup.schema.grade import Grade, RunResult
from skillup.schema.record import Record
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STYLE = {"PASS": "green", "FAIL": "red", "ERROR": "bold magenta", "SKIP": "yellow"}
_WIDE = 200
"""Columns to assume where the output is no terminal, so that nothing is folded in log files."""
_WIDEST_LABEL = 50
"""Cells that the lines of trials are aligned to; what is longer sticks out by itself."""
_NAMED = 6
_FIRST_WORDS = 60
"""Characters of a reason, in the line of a trial that has just ended."""


def make_console(stream: TextIO | None = None) -> Console:
    """A console on stderr; wide and plain where that is no terminal."""
    from rich.console import Console

    stream = stream or sys.stderr
    width = None if stream.isatty() else _WIDE
    return Console(file=stream, highlight=False, width=width)


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
        self.standing = Standing(plan, finished=finished)
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
        self._spoke()
        if not self.quiet:
            self.console.print(
                f"RETRY  {self.label(job)}  ({reason})", markup=False, style="yellow"
            )

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


def print_result(
    result: RunResult, plan: Plan, grades: Sequence[tuple[Job, Grade]], where: str, console: Console
) -> None:
    """The closing table, then one line that counts."""
    from rich.text import Text

    reporter = PlainReporter(plan, console)
    if grades:
        console.print()
        print_table(console, _table(reporter, grades))
    for labels, grade in _alike(reporter, grades):
        why, whose = _why(grade), _listed(labels)
        if why:
            line = Text(f"{whose}: ", style=STYLE[grade.status])
            line.append(why, style="default")
            console.print(line, soft_wrap=True)
        for said in simulated_lines(grade):
            before = "  " if why else f"{whose}: "
            console.print(Text(before + said, style="dim"), soft_wrap=True)
    for job, grade in grades:
        for said in judge_lines(grade):
            text = Text(f"{reporter.label(job)}: {said}", style="dim")
            console.print(text, soft_wrap=True)
    cost = judging_cost(result.summary.judging)
    if cost is not None:
        console.print(f"note: {cost}", style="dim", markup=False, soft_wrap=True)
    shared = shared_note([grade for _, grade in grades])
    if shared is not None:
        console.print(f"note: {shared}", style="dim", markup=False, soft_wrap=True)
    for warning in dict.fromkeys(text for _, grade in grades for text in grade.warnings):
        console.print(f"note: {warning}", style="yellow", markup=False, soft_wrap=True)
    print_analysis(result.analysis, console)
    console.print()
    console.print(_counts(result), Text(plain(where)), sep="   ", soft_wrap=True)


def print_ending(result: RunResult, go_on: str, console: Console) -> None:
    """What was not run, why, and the command `go_on` that holds it.

    Said also where the rest of the result is not printed: without it an exit code tells nothing.
    """
    for line in stop_lines(result, go_on):
        console.print(plain(line), style="yellow", markup=False, soft_wrap=True)


def _table(reporter: PlainReporter, grades: Sequence[tuple[Job, Grade]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    with_cost = any(grade.cost_usd is not None for _, grade in grades)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("case", overflow="fold")
    for header in ("turns", "checks", "score", "time", "tokens"):
        table.add_column(header, justify="right", no_wrap=True)
    if with_cost:
        table.add_column("cost", justify="right", no_wrap=True)
    for job, grade in grades:
        checks = [c for turn in grade.turns for c in turn.deciding_checks()] + grade.assertions
        completed = sum(turn.status == "completed" for turn in grade.turns)
        usage = grade.usage or {}
        counted = [usage.get("input_tokens"), usage.get("output_tokens")]
        total = sum(n for n in counted if n is not None) if any(counted) else None
        row: list[Text | str] = [
            Text(grade.status, style=STYLE[grade.status]),
            Text(reporter.label(job)),
            f"{completed}/{len(grade.turns)}",
            f"{sum(c.passed for c in checks)}/{len(checks)}",
            "–" if grade.status in ("ERROR", "SKIP") else f"{grade.score:.2f}",
            seconds(grade.duration_ms),
            tokens(total),
        ]
        if with_cost:
            row.append(money(grade.cost_usd))
        table.add_row(*row)
    return table


def _alike(
    reporter: PlainReporter, grades: Sequence[tuple[Job, Grade]]
) -> Iterator[tuple[list[str], Grade]]:
    """Trials of which there is the same to be told, such as an error in turns that they share."""
    groups: dict[tuple[str, ...], tuple[list[str], Grade]] = {}
    for job, grade in grades:
        told = (grade.status, _why(grade), *simulated_lines(grade))
        groups.setdefault(told, ([], grade))[0].append(reporter.label(job))
    yield from groups.values()


def _listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(labels[:_NAMED]) + more


def _why(grade: Grade) -> str:
    """What the table's numbers do not say: why it did not pass, or what it took to pass."""
    if grade.status != "PASS":
        return one_line(grade.reason, 300)
    helped = [
        f"turn {turn.turn_number} ({turn.passed_on})" for turn in grade.turns if turn.passed_on
    ]
    return f"passed on {', '.join(helped)}" if helped else ""


def simulated_lines(grade: Grade) -> Iterator[str]:
    """What a simulated user said and how it ended: nobody can read that in the case.

    Of a case that passed only the end.
    """
    if grade.simulator is None:
        return
    if grade.status != "PASS":
        for turn in grade.turns:
            if turn.source == "simulator" and turn.status != "skipped":
                said = one_line(turn.content, 160) or "nothing"
                yield f"turn {turn.turn_number}, simulated user: {said}"
    if grade.simulator.stop is not None:
        why = one_line(grade.simulator.reason, 200)
        yield f"ended by the simulated user: {grade.simulator.stop}" + (f", {why}" if why else "")


def _counts(result: RunResult) -> str:
    counts = result.summary
    parts = [f"[green]{counts.passed} passed[/]"]
    for number, word, style in (
        (counts.fail, "failed", "red"),
        (counts.error, "errors" if counts.error > 1 else "error", "bold magenta"),
        (counts.skip, "skipped", "yellow"),
        (len(result.not_run), "not run", "yellow"),
        (len(result.not_needed), "not needed", "dim"),
    ):
        if number:
            parts.append(f"[{style}]{number} {word}[/]")
    return f"{', '.join(parts)} in {seconds(counts.duration_ms)}"
