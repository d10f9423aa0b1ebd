"""What the live display says of a trial that is running."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from skillup.plan import Plan
from skillup.reports.live import LiveReporter
from skillup.trial import TrialEvent
from tests.support.families import jobs_of


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        ({"text": ""}, "turn 1/2  0.0 s  waiting for the agent"),
        ({"text": "Hello"}, "turn 1/2  0.0 s  simulated user: Hello"),
        ({"text": "", "shared_by": 2}, "waiting for the agent (shared by 2 trials)"),
    ],
)
def test_a_turn_that_began(tmp_path: Path, event: dict[str, object], shown: str) -> None:
    (job,) = jobs_of(tmp_path, "input: {turns: [a, b]}\n")
    console = Console(file=io.StringIO(), width=120)
    reporter = LiveReporter(Plan((job,)), console)
    reporter.trial_started(job, 1)
    reporter.trial_event(TrialEvent(job.id, "turn_started", 1, 2, **event))  # type: ignore[arg-type]
    reporter.trial_event(TrialEvent(job.id, "turn_ended", 1, 2, shared_by=2))
    console.print(reporter)
    assert isinstance(console.file, io.StringIO)
    assert shown in console.file.getvalue()
