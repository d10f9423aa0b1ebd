"""What was lost with a worker is warned of at the end, by whichever start of the run gets there."""

from __future__ import annotations

from pathlib import Path

from skillup.executors.attempts import note_loss, recall_losses
from skillup.executors.budgets import StopPolicy
from skillup.store import RunDirectory


def test_a_later_start_warns_as_the_one_that_noted_it(tmp_path: Path) -> None:
    first, later = StopPolicy(), StopPolicy()
    with RunDirectory.create(tmp_path / "run", {"run_id": "r", "jobs": []}) as directory:
        note_loss(directory, first, ["a/1", "b/1"], "the worker has gone", "tcp://h:1")
        note_loss(directory, first, ["c/1"], "the connection to the scheduler broke")
        directory.journal("trial_started", job="a/1")
        recall_losses(directory.events(), later)
        told = [(e["job"], e.get("worker")) for e in directory.events() if "reason" in e]
    assert told == [("a/1", "tcp://h:1"), ("b/1", "tcp://h:1"), ("c/1", None)]
    assert first.warnings == [
        "worker tcp://h:1: the worker has gone; trials there were lost",
        "the connection to the scheduler broke: trials that were running then began again",
    ]
    assert later.warnings == first.warnings


def test_other_events_are_no_losses() -> None:
    stopping = StopPolicy()
    recall_losses([{"event": "trial_lost"}, {"event": "trial_left", "reason": "x"}], stopping)
    assert stopping.warnings == []
