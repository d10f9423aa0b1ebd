"""A trial that is being held is told as far as it is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.reports.html.limits import ORDINARY
from skillup.reports.html.run_data import RunData
from skillup.store import RunDirectory
from tests.support.stored import a_checkpoint, a_record

JOB = "a/e/with_skill/1"
CASE = {"id": "a", "input": {"turns": [{"content": "go on"}, {"content": "And <<name>>?"}]}}


@pytest.mark.parametrize(("case", "message"), [(CASE, "And <<name>>?"), ({"of": "later"}, None)])
def test_turns_that_are_over_are_there_and_the_one_under_way_is_named(
    tmp_path: Path, case: dict[str, object], message: str | None
) -> None:
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": [JOB]}) as run:
        place = run.begin_trial(JOB)
        (place.raw / "turn-01.stdout.jsonl").touch()
        (place.raw / "turn-02.stdout.jsonl").touch()
        before = RunData(run.path).detail(1, ORDINARY)
        record = a_record("a").model_copy(update={"case": case})
        run.write_checkpoint(JOB, a_checkpoint(record=record))
        now = RunData(run.path).detail(1, ORDINARY)
    assert before["turns"] == []
    assert [(one["turn_number"], one["status"]) for one in before["under_way"]] == [
        (1, "completed"),
        (2, "running"),
    ]
    assert [turn["response"] for turn in now["turns"]] == ["done"]
    assert now["grade"] is None
    assert now["live"] == "turn 2 is running"
    (under_way,) = now["under_way"]
    assert (under_way["turn_number"], under_way["message"]) == (2, message)
    assert [link["name"] for link in under_way["raw"]] == ["turn-02.stdout.jsonl"]
    assert set(before) == set(now)
