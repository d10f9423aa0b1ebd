"""A writer that is killed at any moment loses no record that it had announced."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skillup.store import RunDirectory

ROUNDS = 5
JOBS = 120

WRITER = """
import sys
from pathlib import Path
from skillup.store import RunDirectory
from tests.support.stored import a_record

path = Path(sys.argv[1])
exists = (path / "run.json").exists()
if exists:
    run = RunDirectory.open(path, writable=True)
else:
    run = RunDirectory.create(path, {"run_id": "r"})
finished = run.finished_jobs()
print("open", flush=True)
for number in range(int(sys.argv[2])):
    job = f"case-{number}/p/v/1"
    if job in finished:
        continue
    place = run.begin_trial(job)
    run.blobs.put(f"content {number}".encode() * 1000)
    (place.raw / "turn-01.stdout.jsonl").write_bytes(b"{}")
    run.write_record(job, a_record(f"case-{number}", response="x" * 20_000))
    run.remove_scratch(job)
    print(job, flush=True)
run.close()
"""


@pytest.mark.slow
def test_announced_records_survive_kill_9_and_none_is_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "run"
    lots = random.Random(7)
    announced: list[str] = []
    for _ in range(ROUNDS):
        announced += killed_writer(path, after_seconds=lots.uniform(0.0, 0.15))
        assert_sound(path, announced)
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(path), str(JOBS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    announced += [line for line in done.stdout.splitlines() if line != "open"]
    assert len(announced) == len(set(announced))
    assert_sound(path, announced)
    assert len(RunDirectory.open(path).finished_jobs()) == JOBS
    assert not (path / "scratch").is_symlink()


def killed_writer(path: Path, after_seconds: float) -> list[str]:
    """The jobs that a writer announced before it was killed, at a moment nobody chose."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(JOBS)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(after_seconds)
        process.kill()
        rest = process.stdout.read()
    return [line for line in rest.split("\n")[:-1] if line]


def assert_sound(path: Path, announced: list[str]) -> None:
    run = RunDirectory.open(path)
    finished = run.finished_jobs()
    assert set(announced) <= finished
    assert len(finished) - len(set(announced)) <= ROUNDS  # written, killed before announced
    for _, record in run.iter_records():
        number = record.case_id.removeprefix("case-")
        assert record.turns[0].response == "x" * 20_000
        assert number.isdecimal()
    assert not list((path / "trials").rglob("*.damaged-*"))
    assert all("event" in event for event in run.events())
