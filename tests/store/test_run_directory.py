"""RunDirectory: what is finished is there whole, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.schema.record import TurnError, TurnRecord
from skillup.store import RunDirectory
from tests.support.stored import a_checkpoint, a_grade, a_record, a_result

JOB = "case/scripted/with_skill/1"


def mask(text: str) -> str:
    return text.replace("sk-1", "***")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory.create(tmp_path / "run", {"run_id": "r1"}, mask=mask) as made:
        yield made


def test_what_was_written_comes_back_and_the_layout_is_as_documented(run: RunDirectory) -> None:
    place = run.begin_trial(JOB)
    (place.raw / "turn-01.stdout.jsonl").touch()
    run.write_record(JOB, a_record(response="Grüße"))
    with pytest.raises(RunDirectoryError, match="exists already"):
        run.write_record(JOB, a_record(response="second"))
    run.write_grade(JOB, a_grade(reason="first"))
    run.write_grade(JOB, a_grade(reason="second"))
    run.write_result(a_result())
    trial = run.path / "trials" / "case" / "scripted" / "with_skill" / "1"
    assert trial == run.trial_directory(JOB)
    names = sorted(path.name for path in trial.iterdir())
    assert names == ["files", "grading.json", "raw", "record.json"]
    top = {path.name for path in run.path.iterdir()}
    assert {"run.json", "events.jsonl", "result.json", "trials"} <= top

    again = RunDirectory.open(run.path)
    assert again.run_info() == {"run_id": "r1"}
    assert again.read_record(JOB) == a_record(response="Grüße")
    assert again.read_grade(JOB) == a_grade(reason="second")
    assert again.read_result() == a_result()
    assert [event["event"] for event in again.events()] == [
        *("run_created", "trial_started", "trial_recorded", "trial_finished"),
        *("trial_graded", "trial_graded", "result_written"),
    ]
    with pytest.raises(RuntimeError, match="reading only"):
        again.write_record(JOB, a_record())
    run.remove_scratch(JOB)


def test_what_the_run_has_not_written_is_no_record_and_no_grade_of_it(run: RunDirectory) -> None:
    """S8: a record in another trial's place ended the run, and `--resume` believed it."""
    run.write_record("forger/p/with_skill/1", a_record(response="forged"))
    run.write_grade("forger/p/with_skill/1", a_grade(reason="forged"))
    place, forged = run.begin_trial(JOB).raw.parent, run.trial_directory("forger/p/with_skill/1")
    for name in ("record.json", "grading.json"):
        shutil.copy(forged / name, place / name)
    reading = RunDirectory.open(run.path)
    assert reading.finished_record(JOB) is None
    assert reading.read_grade(JOB) is None
    run.write_record(JOB, a_record(response="own"))
    assert [path.name for path in run.set_aside] == ["record.json.damaged-1"]
    run.write_grade(JOB, a_grade(reason="own"))
    again = RunDirectory.open(run.path)
    assert again.read_record(JOB).turns[0].response == "own"
    shutil.copy(forged / "record.json", place / "record.json")
    with pytest.raises(RunDirectoryError, match="is not what the run has written"):
        again.read_record(JOB)


@pytest.mark.parametrize(
    "job", ["../../etc/x/1/1", "a b/ä\n/-v/1", "x" * 400 + "/p/v/1", "raw/p/v/2"]
)
def test_odd_job_ids_come_back_as_they_were(run: RunDirectory, job: str) -> None:
    run.begin_trial(job)
    run.write_record(job, a_record())
    assert run.finished_jobs() == {job}
    assert run.trial_directory(job).resolve().is_relative_to(run.path.resolve() / "trials")
    run.remove_scratch(job)


@pytest.mark.parametrize(
    "damage", [b"", b'{"run_id": "r', b"\0" * 100, b"[]", b"{}", b"[" * 200_000]
)
def test_a_damaged_record_is_set_aside_and_the_trial_can_be_held_again(
    run: RunDirectory, damage: bytes
) -> None:
    run.write_record(JOB, a_record())
    path = run.trial_directory(JOB) / "record.json"
    path.write_bytes(damage)
    reader = RunDirectory.open(run.path)
    assert reader.finished_jobs() == set()
    assert path.exists()  # who only reads changes nothing
    with pytest.raises(RunDirectoryError, match="damaged"):
        reader.read_record(JOB)
    assert run.finished_jobs() == set()
    assert path.with_name("record.json.damaged-1").read_bytes() == damage
    run.write_record(JOB, a_record())
    assert run.finished_jobs() == {JOB}


def test_a_record_of_another_version_is_not_taken_for_damage(run: RunDirectory) -> None:
    run.write_record(JOB, a_record())
    path = run.trial_directory(JOB) / "record.json"
    like_ours = a_record().model_copy(update={"schema_version": "skillup.record/9"})
    for text in ('{"schema_version": "skillup.record/9"}', like_ours.model_dump_json()):
        path.write_text(text)
        with pytest.raises(RunDirectoryError, match=r"skillup\.record/9"):
            run.finished_jobs()
        assert path.exists()


@pytest.mark.parametrize("numbers", [(2,), (0,), (-1,), (1, 1), (2, 1), (1, 3)])
def test_a_record_whose_turns_are_not_numbered_in_order_is_damaged(
    run: RunDirectory, numbers: tuple[int, ...]
) -> None:
    turns = [TurnRecord(turn_number=n, status="completed", content="") for n in numbers]
    run.write_record(JOB, a_record().model_copy(update={"turns": turns}))
    with pytest.raises(RunDirectoryError, match="damaged"):
        run.read_record(JOB)


def test_an_artifact_called_record_json_is_not_a_trial(run: RunDirectory) -> None:
    place = run.begin_trial(JOB)
    (place.files / "record.json").write_text("{}")
    run.begin_trial(JOB)
    assert run.finished_jobs() == set()
    assert (place.files.parent / "files.attempt-1" / "record.json").exists()


def test_a_trial_begins_anew_beside_what_an_earlier_attempt_left(run: RunDirectory) -> None:
    first = run.begin_trial(JOB)
    (first.raw / "turn-01.stdout.jsonl").write_text("old")
    (first.scratch / "workspace").mkdir()
    (first.raw.parent / ".record.json.0.skillup-tmp").touch()
    second = run.begin_trial(JOB)
    assert second == first
    assert list(second.raw.iterdir()) == []
    assert list(second.scratch.iterdir()) == []
    assert (first.raw.parent / "raw.attempt-1" / "turn-01.stdout.jsonl").read_text() == "old"
    assert not list(first.raw.parent.glob(".*"))


def test_retried_attempts_are_kept_and_do_not_finish_the_trial(run: RunDirectory) -> None:
    run.begin_trial(JOB)
    for response in ("one", "two", "three"):
        error = TurnError(kind="rate_limit", message="wait")
        run.write_attempt(JOB, a_record(response=response, error=error))
    assert run.finished_jobs() == set()
    assert [e["error"] for e in run.events() if e["event"] == "trial_retried"] == ["rate_limit"] * 3
    kept = sorted(path.name for path in run.trial_directory(JOB).glob("attempt-*"))
    assert kept == ["attempt-1.json", "attempt-1.json.earlier-1", "attempt-1.json.earlier-2"]
    assert {record.turns[0].response for record in run.attempts(JOB)} == {"one", "two", "three"}


def test_secrets_are_masked_in_every_file(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", {"key": "sk-1"}, mask=mask) as run:
        run.write_record(JOB, a_record(response="sk-1"))
        run.write_grade(JOB, a_grade(reason="sk-1"))
        run.journal("note", text="sk-1")
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"sk-1" not in path.read_bytes()


def test_create_refuses_what_is_there_already(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "run", {}).close()
    with pytest.raises(RunDirectoryError, match="holds a run") as caught:
        RunDirectory.create(tmp_path / "run", {})
    assert "--resume" in (caught.value.hint or "")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(RunDirectoryError, match="not empty"):
        RunDirectory.create(tmp_path / "mine", {})
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_open_refuses_what_is_no_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunDirectoryError):
        RunDirectory.open(tmp_path / name)


def test_the_result_of_an_earlier_start_does_not_outlive_the_next_trial(run: RunDirectory) -> None:
    run.write_result(a_result())
    run.close()
    with RunDirectory.open(run.path, writable=True) as again:
        assert again.read_result() == a_result()
        again.write_record(JOB, a_record())
        assert not (run.path / "result.json").exists()
        assert (run.path / "result.json.earlier-1").exists()
        again.write_result(a_result())
    assert RunDirectory.open(run.path).read_result() == a_result()


def test_the_latest_checkpoint_is_read_until_the_trial_has_finished_or_begins_anew(
    run: RunDirectory,
) -> None:
    assert run.read_checkpoint(JOB) is None
    run.begin_trial(JOB)
    run.write_checkpoint(JOB, a_checkpoint(messages=1))
    run.write_checkpoint(JOB, a_checkpoint(messages=2))
    assert run.read_checkpoint(JOB) == a_checkpoint(messages=2)
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
    run.take_back(JOB)
    assert run.read_checkpoint(JOB) is None
    assert [record.turns for record in run.attempts(JOB)] == [a_record().turns]


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"schema_version": "other/9"}'])
def test_a_checkpoint_that_is_not_whole_of_this_version_or_free_of_secrets_is_none(
    run: RunDirectory, content: bytes
) -> None:
    run.write_checkpoint(JOB, a_checkpoint())
    (run.trial_directory(JOB) / "checkpoint.json").write_bytes(content)
    assert run.read_checkpoint(JOB) is None
    run.write_checkpoint(JOB, a_checkpoint(schema_version="skillup.checkpoint/9"))
    assert run.read_checkpoint(JOB) is None
    run.write_checkpoint(JOB, a_checkpoint())
    run.write_checkpoint(JOB, a_checkpoint(variables={"name": "my sk-1"}))
    assert run.read_checkpoint(JOB) is None
