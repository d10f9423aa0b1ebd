"""`skillup judge -j`: a large run shared among processes is judged as by one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from skillup.judges import grade_record
from skillup.schema.record import EngineInfo, Record, TurnRecord
from skillup.store import RunDirectory
from skillup.store.journal import no_mask, to_json
from tests.support.project import GUARD_SECONDS, Project

TRIALS = 2000
CASE = {
    "id": "bench",
    "input": {"turns": [{"content": "Go", "assertions": [{"contains": "done"}]}]},
}
EDITED = """\
id: bench
input: {turns: [{content: Go, assertions: [{contains: {any: ["7", "half"]}}]}]}
"""


def _record(trial: int) -> Record:
    turn = TurnRecord(
        turn_number=1, status="completed", content="Go", response=f"Trial {trial} is done: ½ ✓."
    )
    return Record(
        run_id="large",
        suite="bench",
        case_id="bench",
        case=CASE,
        engine=EngineInfo(profile="lab", adapter="scripted"),
        trial=trial,
        started_at="2026-01-01T00:00:00.000Z",
        duration_ms=5,
        turns=[turn],
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run that is worth sharing, and in it, all along, trials that are unlike the others."""
    project = Project(tmp_path_factory.mktemp("large"))
    project.write({"case.yaml": EDITED})
    jobs = [f"bench/lab/with_skill/{n}" for n in range(1, TRIALS + 1)]
    with RunDirectory.create(project.root / "run", {"run_id": "large", "jobs": jobs}) as run:
        for trial, job in enumerate(jobs, start=1):
            record = _record(trial)
            directory = run.trial_directory(job)
            directory.mkdir(parents=True)
            text = to_json(record, no_mask, indent=None)
            grade = to_json(grade_record(record, run.blobs.read_state), no_mask, indent=2)
            _write(directory, trial, text, grade)
    (project.root / "run/events.jsonl").unlink()  # it would know of none of the records
    return project


def _write(directory: Path, trial: int, record: bytes, grade: bytes) -> None:
    if trial % 100 == 0:
        record = record.replace(b" is done", b" is not")
    elif trial % 101 == 0:
        record = record.replace(b'"case_id":"bench"', b'"case_id":"other"')
    elif trial % 103 == 0:
        record = record[:100]
    elif trial % 113 == 0:
        record = record.replace(b'"case":{', b'"case":{"inputs":1,')
    elif trial % 127 == 0:
        record = record.replace(b"skillup.record/1", b"skillup.record/99")
    elif trial % 107 == 0:
        grade = b"{"
    (directory / "record.json").write_bytes(record)
    if trial % 109:
        (directory / "grading.json").write_bytes(grade)


def _undated(text: str) -> str:
    return re.sub(r'"judged_at": "[^"]*"', "", text)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-k", "oth*"), ("--cases", "case.yaml")])
def test_grades_changes_notes_and_order_are_those_of_one_process(
    large: Project, options: tuple[str, ...]
) -> None:
    one = large.run("judge", "run", "--json", "-j", "1", *options)
    three = large.run("judge", "run", "--json", "-j", "3", *options)
    assert one.exit_code == three.exit_code == 3
    assert _undated(three.stdout) == _undated(one.stdout)
    assert three.stderr == one.stderr
    # What is wrong with a recorded case does not matter where it is not wanted, or is edited.
    bad = (103, 127) if options else (103, 113, 127)
    found = [n for n in range(1, TRIALS + 1) if n % 100 and n % 101]
    assert json.loads(one.stdout)["damaged"] == sum(any(n % b == 0 for b in bad) for n in found)


@pytest.mark.slow
def test_a_key_in_an_edited_case_is_masked_by_every_process(large: Project, tmp_path: Path) -> None:
    case = tmp_path / "case.yaml"
    case.write_text(EDITED.replace("half", "sk-lab-0123456789"), "utf-8")
    options = ("judge", "run", "--json", "--cases", str(case), "-j")
    key = {"LAB_API_KEY": "sk-lab-0123456789"}
    one, three = (large.run(*options, processes, env=key) for processes in ("1", "3"))
    assert "sk-lab" not in three.stdout + three.stderr
    assert "***LAB_API_KEY***" in three.stdout
    assert _undated(three.stdout) == _undated(one.stdout)


def test_what_a_killed_worker_leaves_is_judged_all_the_same(large: Project) -> None:
    one = large.run("judge", "run", "--json", "-j", "1")
    with large.start("judge", "run", "--json", "-j", "3") as process:
        _workers(process, 2)[0].kill()
        stdout, _ = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 3
    assert _undated(stdout) == _undated(one.stdout)


def test_an_interrupt_leaves_no_worker_behind(large: Project) -> None:
    # Nobody reads its stdout: it cannot be done before it is interrupted.
    with large.start("judge", "run", "--json", "-j", "3") as process:
        workers = _workers(process, 2)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 130
    assert psutil.wait_procs(workers, timeout=GUARD_SECONDS)[1] == []


def _workers(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    while True:
        children = psutil.Process(process.pid).children()
        if len(children) >= count:
            return children
        time.sleep(0.01)
