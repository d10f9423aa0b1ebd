"""What the live display says of a trial that is running."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from skillup.plan import Plan
from skillup.reports.terminal.progress import LiveReporter
from skillup.schema.record import TranscriptItem
from skillup.trial import TrialEvent
from tests.support.families import jobs_of


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        ({"text": ""}, "turn 1/2  0.0 s"),
        ({"text": "Hello"}, "simulated user: Hello"),
        ({"text": "key s3cret"}, "simulated user: key ***"),
        ({"text": "", "shared_by": 2}, "waiting for the agent (shared by 2 trials)"),
    ],
)
def test_a_turn_that_began(tmp_path: Path, event: dict[str, object], shown: str) -> None:
    (job,) = jobs_of(tmp_path, "input: {turns: [a, b]}\n")
    console = Console(file=io.StringIO(), width=120)
    reporter = LiveReporter(Plan((job,)), console, mask=lambda text: text.replace("s3cret", "***"))
    reporter.trial_started(job, 1)
    reporter.trial_event(TrialEvent(job.id, "turn_started", 1, 2, **event))  # type: ignore[arg-type]
    console.print(reporter)
    assert isinstance(console.file, io.StringIO)
    assert shown in console.file.getvalue()


def test_verbose_prints_the_conversation_above_it(tmp_path: Path) -> None:
    (job,) = jobs_of(tmp_path, "input: {prompt: a}\n")
    console = Console(file=io.StringIO(), width=120)
    item = TranscriptItem(type="message", text="Hello")
    for verbose in (False, True):
        reporter = LiveReporter(Plan((job,)), console, verbose=verbose)
        reporter.trial_event(TrialEvent(job.id, "item", item=item))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "c  agent\n    Hello\n"


def test_what_a_signal_does_stands_at_the_bottom(tmp_path: Path) -> None:
    (job,) = jobs_of(tmp_path, "input: {prompt: a}\n")
    console = Console(file=io.StringIO(), width=120)
    reporter = LiveReporter(Plan((job,)), console)
    reporter.trial_started(job, 1)
    reporter.stopping(1)
    console.print(reporter)
    assert isinstance(console.file, io.StringIO)
    last = console.file.getvalue().splitlines()[-1]
    assert last == "stopping: ending 1 agent; Ctrl-C again to leave at once"
