"""A run as files: all that it holds, below the folder that was named, and nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.schema.record import TurnError
from skillup.store import RunDirectory
from skillup.store.export import exported_trials
from skillup.store.files import pack
from tests.support.exported import exported
from tests.support.stored import a_grade, a_record, a_result, change
from tests.support.trees import tree_of

JOB = "case/scripted/with_skill/1"
LONG = "x" * 400 + "/scripted/with_skill/1"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with RunDirectory.create(tmp_path / "run", {"run_id": "r", "jobs": [JOB, LONG]}) as made:
        made.begin_trial(JOB).streams.open("turn-01.stdout.jsonl").close()
        made.write_record(
            JOB, a_record(error=TurnError(kind="rate_limit", message="wait")), state="retried"
        )
        place = made.begin_trial(JOB)
        stream = place.streams.open("turn-01.stdout.jsonl")
        stream.write(b"one\n")
        stream.close()
        place.keep_artifact("out/a.txt", b"artifact")
        made.write_record(JOB, a_record())
        made.write_grade(JOB, a_grade())
        made.write_record(LONG, a_record())
        made.write_result(a_result())
        made.remove_scratch(JOB)
    return tmp_path / "run"


def test_the_layout_is_as_documented(run: Path) -> None:
    out = exported(run)
    files = {name: text for name, text in tree_of(out).items() if "x" * 9 not in name}
    trial = f"trials/{JOB}"
    assert files.pop(f"{trial}/raw/turn-01.stdout.jsonl") == "one\n"
    assert files.pop(f"{trial}/files/out/a.txt") == "artifact"
    [blob] = (name for name in files if name.startswith("blobs/"))
    assert files.pop(blob) == "artifact"
    assert {name.removeprefix(f"{trial}/") for name in files} == {
        *("run.json", "events.jsonl", "result.json", "record.json", "grading.json"),
        *("attempt-1.json", "raw.attempt-1/turn-01.stdout.jsonl", "job-id.txt"),
    }
    assert [job for job, _ in exported_trials(out)] == [JOB, LONG]
    with pytest.raises(RunDirectoryError, match="not empty"):
        exported(run, out)


@pytest.mark.parametrize("table", ["streams SET name", "files SET path", "answers SET key"])
def test_a_strangers_run_writes_nothing_elsewhere(run: Path, table: str) -> None:
    change(run, "INSERT INTO answers VALUES ('key', ?)", pack(b"{}"))
    change(run, f"UPDATE {table} = '../../../../../../../up' || rowid")
    with pytest.raises(RunDirectoryError, match="no run of skillup"):
        exported(run, run.parent / "to" / "out")
    assert not list(run.parent.rglob("up*"))


@pytest.mark.parametrize("column", ["streams SET data", "blobs SET data"])
def test_what_is_damaged_is_named(run: Path, column: str) -> None:
    change(run, f"UPDATE {column} = x'00'")
    with pytest.raises(RunDirectoryError, match="is damaged in"):
        exported(run)
