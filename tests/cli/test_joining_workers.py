"""What workers have left in their directories, and the run that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.app.xdist import WORKERS, has_workers, merge_workers
from skillup.errors import RunDirectoryError
from skillup.store import RunDirectory
from tests.support.stored import a_checkpoint, a_grade, a_record

JOBS = [f"case/scripted/with_skill/{number}" for number in (1, 2, 3)]


def worker(run: Path, name: str, started_at: str) -> RunDirectory:
    """The directory of one, open for writing."""
    info = {"run_id": "run", "started_at": started_at, "jobs": JOBS, "suites": {}}
    return RunDirectory.create(run / WORKERS / name, info)


def finish(directory: RunDirectory, job: str) -> None:
    directory.begin_trial(job)
    directory.write_record(job, a_record())
    directory.write_grade(job, a_grade())


def test_a_trial_that_one_worker_left_and_another_held_is_that_of_the_other(
    tmp_path: Path,
) -> None:
    with worker(tmp_path, "gw0", "2026-01-02") as one, worker(tmp_path, "gw1", "2026-01-01") as two:
        finish(one, JOBS[0])
        left = one.begin_trial(JOBS[1])
        (left.raw / "turn-01.stdout.jsonl").write_text("cut short")
        finish(two, JOBS[1])
    result = merge_workers(tmp_path)
    assert (len(result.cases), result.not_run) == (2, [JOBS[2]])
    assert result.started_at == "2026-01-01"
    merged = RunDirectory.open(tmp_path)
    assert merged.finished_jobs() == set(JOBS[:2])
    assert merged.read_result() == result
    kept = tmp_path / WORKERS / "gw0" / "trials" / JOBS[1] / "raw" / "turn-01.stdout.jsonl"
    assert kept.read_text() == "cut short"
    assert not left.scratch.exists()
    assert not (tmp_path / WORKERS / "gw1").exists()


def test_contents_of_files_answers_of_judges_and_what_happened_are_the_run_s(
    tmp_path: Path,
) -> None:
    with worker(tmp_path, "gw0", "2026-01-01") as one, worker(tmp_path, "gw1", "2026-01-01") as two:
        for directory in (one, two):
            both = directory.blobs.put(b"both have it")
            directory.judge_answers.mkdir()
            (directory.judge_answers / f"{directory.path.name}.json").write_text("{}")
        only = two.blobs.put(b"one has it")
        finish(two, JOBS[2])
        finish(one, JOBS[0])
    merge_workers(tmp_path)
    merged = RunDirectory.open(tmp_path)
    assert [merged.blobs.get(sha) for sha in (both, only)] == [b"both have it", b"one has it"]
    assert {file.name for file in merged.judge_answers.iterdir()} == {"gw0.json", "gw1.json"}
    told = [(event["event"], event.get("job")) for event in merged.events()]
    assert [job for event, job in told if event == "trial_finished"] == [JOBS[2], JOBS[0]]
    assert told[-1] == ("result_written", None)
    assert not (tmp_path / WORKERS).exists()


def test_a_conversation_that_was_under_way_begins_anew(tmp_path: Path) -> None:
    with worker(tmp_path, "gw0", "2026-01-01") as one:
        one.begin_trial(JOBS[0])
        one.write_checkpoint(JOBS[0], a_checkpoint())
    merge_workers(tmp_path)
    merged = RunDirectory.open(tmp_path)
    assert merged.read_checkpoint(JOBS[0]) is None
    assert len(list(merged.attempts(JOBS[0]))) == 1  # what it took counts


def test_while_a_worker_still_writes_nothing_is_moved(tmp_path: Path) -> None:
    with worker(tmp_path, "gw0", "2026-01-01") as one:
        finish(one, JOBS[0])
        with pytest.raises(RunDirectoryError, match="is being written"):
            merge_workers(tmp_path)
        assert one.finished_jobs() == {JOBS[0]}
    assert len(merge_workers(tmp_path).cases) == 1


def test_the_run_took_as_long_as_any_of_them_was_at_work(tmp_path: Path) -> None:
    spans = {"gw0": ("10:00:00", "10:01:00"), "gw1": ("10:00:55", "10:00:58")}
    for name, (first, last) in {**spans, "gw2": ("10:02:00", "10:02:10")}.items():
        with worker(tmp_path, name, "2026-01-01") as directory:
            journal = directory.path / "events.jsonl"
        times = {"run_created": first, "trial_started": first, "trial_finished": last}
        lines = [{"time": f"2026-01-01T{at}.000Z", "event": e} for e, at in times.items()]
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    took = merge_workers(tmp_path).summary.duration_ms
    assert took // 10_000 == 7  # and what it took to merge


def test_what_was_kept_of_a_worker_is_no_run_that_waits_to_be_joined(tmp_path: Path) -> None:
    with worker(tmp_path, "gw0", "2026-01-02") as one, worker(tmp_path, "gw1", "2026-01-01") as two:
        left = one.begin_trial(JOBS[0])
        (left.raw / "turn-01.stdout.jsonl").write_text("cut short")
        finish(two, JOBS[0])
    merge_workers(tmp_path)
    assert (tmp_path / WORKERS / "gw0").is_dir()
    assert not has_workers(tmp_path)
