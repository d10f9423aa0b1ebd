"""Checkpoints on disk: whole or not there, and gone when the trial has finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.schema.checkpoint import Checkpoint
from skillup.schema.record import SessionFingerprint
from skillup.store import RunDirectory
from tests.support.stored import a_record

JOB = "a/scripted/with_skill/1"


def checkpoint(**update: object) -> Checkpoint:
    session = SessionFingerprint(session_id="s", messages=1, prefix_sha256="0", prefix_bytes=1)
    made = Checkpoint(
        record=a_record(),
        variables={"name": "value"},
        messages=1,
        session=session,
        chosen_session_id="s",
        skills={},
        home_copy="a",
        home_sha256="0",
        workspace_sha256="0",
        asked_sha256="0",
        elapsed_ms=1,
        held_seconds=1.0,
    )
    return made.model_copy(update=update)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", {}, mask=lambda t: t.replace("secret", "***"))


def test_the_latest_is_read_back(run: RunDirectory) -> None:
    assert run.read_checkpoint(JOB) is None
    run.write_checkpoint(JOB, checkpoint(messages=1))
    run.write_checkpoint(JOB, checkpoint(messages=2))
    assert run.read_checkpoint(JOB) == checkpoint(messages=2)


def test_it_is_gone_when_the_trial_has_finished_or_is_begun_anew(run: RunDirectory) -> None:
    run.begin_trial(JOB)
    run.write_checkpoint(JOB, checkpoint())
    run.begin_trial(JOB)
    assert run.read_checkpoint(JOB) is None
    run.write_checkpoint(JOB, checkpoint())
    run.write_record(JOB, a_record())
    assert run.read_checkpoint(JOB) is None


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"schema_version": "other/9"}'])
def test_what_is_not_whole_is_none(run: RunDirectory, content: bytes) -> None:
    run.write_checkpoint(JOB, checkpoint())
    (run.trial_directory(JOB) / "checkpoint.json").write_bytes(content)
    assert run.read_checkpoint(JOB) is None


def test_one_of_another_version_is_none(run: RunDirectory) -> None:
    run.write_checkpoint(JOB, checkpoint(schema_version="skillup.checkpoint/9"))
    assert run.read_checkpoint(JOB) is None


def test_with_a_secret_in_a_variable_there_is_none_not_even_an_older_one(
    run: RunDirectory,
) -> None:
    run.write_checkpoint(JOB, checkpoint())
    run.write_checkpoint(JOB, checkpoint(variables={"name": "my secret"}))
    assert run.read_checkpoint(JOB) is None


def test_one_that_is_not_used_is_set_aside(run: RunDirectory) -> None:
    run.write_checkpoint(JOB, checkpoint())
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
