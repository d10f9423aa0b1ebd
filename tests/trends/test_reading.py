"""From a run directory to outcomes: whole runs, killed ones, and those of other versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import RunDirectoryError
from skillup.history.outcomes import CaseKey
from skillup.history.reading import read_run
from tests.support.stored import a_grade

SUITES = {"suite": {"path": "eval.yaml", "gates": {"max_not_run": 0}, "cases": {"label": "case"}}}


def a_run_directory(path: Path, result: Any = None, **info: Any) -> Path:
    """A directory with `run.json`, and `result.json` if there is one."""
    path.mkdir()
    head = {"run_id": "run", "started_at": "2026-01-01T00:00:00.000Z", "jobs": [], **info}
    (path / "run.json").write_text(json.dumps(head))
    if result is not None:
        (path / "result.json").write_text(json.dumps(result))
    return path


def grade(**fields: Any) -> dict[str, Any]:
    """A passing grade, as it is stored."""
    return {**a_grade().model_dump(mode="json", by_alias=True), **fields}


def test_a_finished_run_is_its_result(tmp_path: Path) -> None:
    result = {"cases": [grade(cost_usd=0.5), grade(trial=2, status="FAIL", reason="no\nway")]}
    run = read_run(a_run_directory(tmp_path / "run", result, suites=SUITES))
    key = CaseKey("suite", "case", "scripted", "with_skill")
    assert [(t.key, t.trial, t.status, t.cost_usd) for t in run.trials] == [
        (key, 1, "PASS", 0.5),
        (key, 2, "FAIL", None),
    ]
    assert run.trials[1].reason == "no way"
    assert run.gates == {"suite": {"max_not_run": 0}}
    assert run.finished


def test_what_was_planned_and_not_held_is_named_by_its_case(tmp_path: Path) -> None:
    result = {"cases": [grade()], "not_run": ["label/scripted/with_skill/2"]}
    run = read_run(a_run_directory(tmp_path / "run", result, suites=SUITES))
    assert (run.trials[1].key, run.trials[1].trial) == (run.trials[0].key, 2)
    assert run.trials[1].status == "NOT_HELD"
    assert not run.finished


def test_a_run_that_was_killed_is_the_grades_of_what_had_finished(tmp_path: Path) -> None:
    jobs = [f"label/scripted/with_skill/{trial}" for trial in (1, 2, 3)]
    path = a_run_directory(tmp_path / "run", suites=SUITES, jobs=jobs)
    for trial, text in ((1, json.dumps(grade())), (2, '{"cut sho')):
        place = path / "trials" / "label" / "scripted" / "with_skill" / str(trial)
        place.mkdir(parents=True)
        (place / "grading.json").write_text(text)
    run = read_run(path)
    assert [(t.trial, t.status) for t in run.trials] == [
        (1, "PASS"),
        (2, "NOT_HELD"),
        (3, "NOT_HELD"),
    ]
    assert len({t.key for t in run.trials}) == 1


def test_suites_of_the_same_name_hide_nothing_of_each_other(tmp_path: Path) -> None:
    suites = {"suite": {**SUITES["suite"], "cases": {"x.case": "case", "y.case": "case"}}}
    jobs = [f"{suite}.case/scripted/with_skill/1" for suite in "xy"]
    stopped = {"cases": [grade()], "not_run": jobs[1:]}
    run = read_run(a_run_directory(tmp_path / "stopped", stopped, suites=suites, jobs=jobs))
    assert [trial.status for trial in run.trials] == ["PASS", "NOT_HELD"]

    killed = a_run_directory(tmp_path / "killed", suites=suites, jobs=jobs)
    place = killed / "trials" / "x.case" / "scripted" / "with_skill" / "1"
    place.mkdir(parents=True)
    (place / "grading.json").write_text(json.dumps(grade()))
    run = read_run(killed)
    assert [trial.status for trial in run.trials] == ["PASS", "NOT_HELD"]
    assert not run.finished


def test_a_run_that_did_not_name_its_suites_can_be_read(tmp_path: Path) -> None:
    result = {"cases": [grade()], "not_run": ["a/b/scripted/with_skill/1", "odd"]}
    run = read_run(a_run_directory(tmp_path / "run", result))
    assert run.trials[1].key == CaseKey("suite", "a/b", "scripted", "with_skill")
    assert run.gates == {}


def test_fields_of_other_versions_are_passed_over_and_broken_grades_left_out(
    tmp_path: Path,
) -> None:
    grades = [grade(novelty=[1]), {"status": "PASS"}, grade(status="MAYBE"), "nonsense"]
    run = read_run(a_run_directory(tmp_path / "run", {"cases": grades}))
    assert len(run.trials) == 1


def test_what_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        read_run(tmp_path)
    with pytest.raises(RunDirectoryError, match="does not exist"):
        read_run(tmp_path / "nothing")


@pytest.mark.parametrize("file", ["run.json", "result.json"])
def test_a_damaged_file_is_named(tmp_path: Path, file: str) -> None:
    path = a_run_directory(tmp_path / "run", {"cases": []})
    (path / file).write_text("[1]")
    with pytest.raises(RunDirectoryError, match=rf"{file} is damaged"):
        read_run(path)
