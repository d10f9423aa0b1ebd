"""Checkpoints on disk: whole or not there, and gone when the trial has finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.store import RunDirectory
from tests.support.stored import a_checkpoint, a_record

JOB = "a/scripted/with_skill/1"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", {}, mask=lambda t: t.replace("secret", "***"))


def test_the_latest_is_read_back(run: RunDirectory) -> None:
    assert run.read_checkpoint(JOB) is None
    run.write_checkpoint(JOB, a_checkpoint(messages=1))
    run.write_checkpoint(JOB, a_checkpoint(messages=2))
    assert run.read_checkpoint(JOB) == a_checkpoint(messages=2)


def test_it_is_gone_when_the_trial_has_finished_or_is_begun_anew(run: RunDirectory) -> None:
    run.begin_trial(JOB)
    run.write_checkpoint(JOB, a_checkpoint())
    run.begin_trial(JOB)
    assert run.read_checkpoint(JOB) is None
    run.write_checkpoint(JOB, a_checkpoint())
    run.write_record(JOB, a_record())
    assert run.read_checkpoint(JOB) is None


def test_a_trial_that_is_taken_back_goes_on_from_none(run: RunDirectory) -> None:
    """It has one if skillup was killed right after its record was written."""
    run.begin_trial(JOB)
    run.write_record(JOB, a_record())
    run.write_checkpoint(JOB, a_checkpoint())
    run.take_back(JOB, run.read_record(JOB))
    assert run.read_checkpoint(JOB) is None
    assert [record.turns for record in run.attempts(JOB)] == [a_record().turns]


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"schema_version": "other/9"}'])
def test_what_is_not_whole_is_none(run: RunDirectory, content: bytes) -> None:
    run.write_checkpoint(JOB, a_checkpoint())
    (run.trial_directory(JOB) / "checkpoint.json").write_bytes(content)
    assert run.read_checkpoint(JOB) is None


def test_one_of_another_version_is_none(run: RunDirectory) -> None:
    run.write_checkpoint(JOB, a_checkpoint(schema_version="skillup.checkpoint/9"))
    assert run.read_checkpoint(JOB) is None


def test_with_a_secret_in_a_variable_there_is_none_not_even_an_older_one(
    run: RunDirectory,
) -> None:
    run.write_checkpoint(JOB, a_checkpoint())
    run.write_checkpoint(JOB, a_checkpoint(variables={"name": "my secret"}))
    assert run.read_checkpoint(JOB) is None


def test_one_that_is_not_used_is_set_aside(run: RunDirectory) -> None:
    run.write_checkpoint(JOB, a_checkpoint())
    run.set_checkpoint_aside(JOB)
    run.set_checkpoint_aside(JOB)
    names = [path.name for path in run.trial_directory(JOB).iterdir()]
    assert names == ["checkpoint.json.unused-1"]


def test_a_trial_is_reopened_with_its_scratch_and_its_streams(run: RunDirectory) -> None:
    assert run.reopen_trial(JOB) is None
    place = run.begin_trial(JOB)
    (place.scratch / "x").write_text("x")
    (place.raw / "turn-01.stdout.jsonl").write_text("x")
    (place.files / "old").write_text("x")
    again = run.reopen_trial(JOB)
    assert again is not None
    assert (again.scratch / "x").exists()
    assert (again.raw / "turn-01.stdout.jsonl").exists()
    assert list(again.files.iterdir()) == []
    run.remove_scratch(JOB)
    assert run.reopen_trial(JOB) is None


def test_those_that_were_not_used_are_among_the_attempts_as_far_as_they_are_whole(
    run: RunDirectory,
) -> None:
    for response in ("one", "two", "three"):
        run.write_checkpoint(JOB, a_checkpoint(record=a_record(response=response)))
        run.set_checkpoint_aside(JOB)
    (run.trial_directory(JOB) / "checkpoint.json.unused-2").write_bytes(b"{")
    run.write_checkpoint(JOB, a_checkpoint())  # may still be used
    assert [kept.turns[0].response for kept in run.attempts(JOB)] == ["one", "three"]
