"""How long a run took, over all of its starts."""

from __future__ import annotations

from typing import Any

from skillup.app.resume import milliseconds_of_starts
from tests.support.project import Project


def event(name: str, time: object) -> dict[str, Any]:
    return {"event": name, "time": time}


def test_the_time_between_two_starts_does_not_count() -> None:
    events = [
        event("run_created", "2026-01-01T10:00:00.000Z"),
        event("trial_finished", "2026-01-01T10:00:02.500Z"),
        event("run_reopened", "2026-01-01T12:00:00.000Z"),
        event("result_written", "2026-01-01T12:00:01.000Z"),
        event("run_reopened", "2026-01-01T13:00:00.000Z"),
    ]
    assert milliseconds_of_starts(events) == 3500


def test_a_run_that_is_resumed_says_how_long_all_of_it_took(project: Project) -> None:
    case = "input: {prompt: hi}\nscripted: [{say: fine, steps: [{delay: 0.5}]}]\n"
    project.write({"eval.yaml": "name: d\n", "a.yaml": case, "b.yaml": case})
    first = project.run_json(".", "--out", "out", "-j", "1", "--max-tokens", "1")
    assert first["summary"]["total"] == 1
    both = project.run_json("--resume", "out")
    assert both["summary"]["total"] == 2
    assert both["summary"]["duration_ms"] >= 1000
    # Nothing is left to be held, and yet that is how long it took.
    assert project.run_json("--resume", "out")["summary"]["duration_ms"] >= 1000
