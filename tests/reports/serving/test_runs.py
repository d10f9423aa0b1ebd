"""The list of runs: cheap for many finished ones, and right for those in any other state."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillup.reports.result import build_result
from skillup.reports.server import NotServedError, Served
from skillup.store import RunDirectory
from tests.support.large_runs import write_large_run
from tests.support.stored import a_checkpoint, a_grade, a_record

JOBS = ["a/e/with_skill/1", "b/e/with_skill/1"]


def test_a_run_with_a_baseline_is_counted_by_its_trials_with_the_skill(tmp_path: Path) -> None:
    jobs = [JOBS[0], "b/e/without_skill/1"]
    served = Served(tmp_path)
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": jobs}) as run:
        grades = {jobs[0]: a_grade("a")}
        update = {"variant": "without_skill", "status": "FAIL"}
        grades[jobs[1]] = a_grade("b").model_copy(update=update)
        for job, grade in grades.items():
            run.write_record(job, a_record(grade.case_id))
            run.write_grade(job, grade)
        (running,) = served.listing()["runs"]
        run.write_result(build_result("r", "", grades, jobs, 10))
    (run.path / "lock").unlink()  # of a process that goes on
    (finished,) = served.listing()["runs"]
    assert (running["status"], finished["status"]) == ("running", "finished")
    for short in (running, finished):
        assert (short["done"], short["planned"]) == (2, 2)
        assert short["counts"] == {"PASS": 1, "FAIL": 0, "ERROR": 0, "SKIP": 0}


def test_a_run_that_goes_on_is_read_whole_and_each_step_is_noticed(tmp_path: Path) -> None:
    served = Served(tmp_path, index="none")
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": JOBS}) as run:
        run.begin_trial(JOBS[0])
        stamps = [served.stamp("r")]
        run.write_checkpoint(JOBS[0], a_checkpoint())
        stamps.append(served.stamp("r"))
        run.write_record(JOBS[0], a_record("a"))
        stamps.append(served.stamp("r"))
        assert served.index("r")["rows"][0]["reason"] == "being judged"
        run.write_grade(JOBS[0], a_grade("a"))
        stamps.append(served.stamp("r"))
        assert served.index("r")["rows"][0]["status"] == "PASS"
        assert len(set(stamps)) == 4
        assert served.stamp("r") == served.stamp("r")
        listed = served.listing()["runs"][0]
        assert (listed["status"], listed["planned"], listed["done"]) == ("running", 2, 1)
        before = served.folder_stamp()
        assert served.folder_stamp() == before
        run.begin_trial(JOBS[1])
        assert served.folder_stamp() != before


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    write_large_run(tmp_path / "good", 1, turns=1)
    for name, content in {"torn": "{", "odd": "[]", "deep": "[" * 100_000}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(content)
    listed = {run["id"]: run["status"] for run in Served(tmp_path).listing()["runs"]}
    assert listed == {"good": "finished", **dict.fromkeys(("torn", "odd", "deep"), "damaged")}


def test_only_what_is_in_the_folder_is_served(tmp_path: Path) -> None:
    write_large_run(tmp_path / "runs/a", 1, turns=1)
    write_large_run(tmp_path / "b", 1, turns=1)
    served = Served(tmp_path / "runs")
    for name in ("../b", "b", "", ".", "a/", "./a", str(tmp_path / "b")):
        with pytest.raises(NotServedError):
            served.path(name)
    alone = Served(tmp_path, only="b")
    assert alone.ids() == ["b"]
    with pytest.raises(NotServedError):
        alone.path("runs")


def test_two_runs_beside_each_other_do_not_wait_for_ever(tmp_path: Path) -> None:
    for name, cases in (("a", 2), ("b", 3)):
        write_large_run(tmp_path / name, cases, turns=1, seed=cases)
    served = Served(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(served.index, *pair) for pair in [("a", "b"), ("b", "a")] * 10]
        found = [one.result(timeout=60)["sides"]["b"]["run_id"] for one in asked]
    assert found == ["a", "b"] * 10
    alone, beside = served.detail("a", 2), served.detail("b", 5, against="a")
    assert (beside["n"], beside["turns"]) == (5, alone["turns"])
    assert alone["raw"] == beside["raw"], "links lead into the run it is of"
