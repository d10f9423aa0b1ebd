"""From a run directory to outcomes: whole runs, killed ones, and what they were asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import RunDirectoryError
from skillup.history.comparison import edited_cases
from skillup.history.runs import (
    CaseKey,
    digests_of,
    planned_key,
    read_run,
    selection_key,
)
from skillup.schema.grade import Grade, RunResult
from tests.support.graded import a_result
from tests.support.outcomes import a_run
from tests.support.stored import a_grade

SUITES = {"suite": {"path": "eval.yaml", "gates": {"max_not_run": 0}, "cases": {"label": "case"}}}
JOB = "scripted/with_skill"


def a_run_directory(path: Path, result: RunResult | None = None, **info: Any) -> Path:
    """A directory with `run.json`, and `result.json` if there is one."""
    path.mkdir()
    head = {"run_id": "run", "started_at": "2026-01-01T00:00:00.000Z", "jobs": [], **info}
    (path / "run.json").write_text(json.dumps(head))
    if result is not None:
        (path / "result.json").write_text(result.model_dump_json(by_alias=True))
    return path


def grade(**fields: Any) -> Grade:
    """A passing grade."""
    return a_grade().model_copy(update=fields)


def store(run: Path, job: str, text: str) -> None:
    place = run / "trials" / job
    place.mkdir(parents=True)
    (place / "record.json").write_text("{}")
    (place / "grading.json").write_text(text)


def test_a_finished_run_is_its_result(tmp_path: Path) -> None:
    failed = grade(trial=2, status="FAIL", reason="no\nway")
    result = a_result([grade(cost_usd=0.5), failed])
    run = read_run(a_run_directory(tmp_path / "run", result, suites=SUITES))
    key = CaseKey("suite", "case", "scripted", "with_skill")
    assert [(t.key, t.trial, t.status, t.cost_usd) for t in run.trials] == [
        (key, 1, "PASS", 0.5),
        (key, 2, "FAIL", None),
    ]
    assert run.trials[1].reason == "no way"
    assert run.gates == {"suite": {"max_not_run": 0}}
    assert run.finished


def test_what_was_planned_and_not_run_is_named_by_its_case(tmp_path: Path) -> None:
    result = a_result([grade()], not_run=[f"label/{JOB}/2"])
    run = read_run(a_run_directory(tmp_path / "run", result, suites=SUITES))
    assert (run.trials[1].key, run.trials[1].trial) == (run.trials[0].key, 2)
    assert run.trials[1].status == "NOT_RUN"
    assert not run.finished


def test_a_run_that_was_killed_is_the_grades_of_what_had_finished(tmp_path: Path) -> None:
    jobs = [f"label/{JOB}/{trial}" for trial in (1, 2, 3)]
    path = a_run_directory(tmp_path / "run", suites=SUITES, jobs=jobs)
    store(path, jobs[0], grade().model_dump_json(by_alias=True))
    store(path, jobs[1], '{"cut sho')
    run = read_run(path)
    assert [(t.trial, t.status) for t in run.trials] == [
        (1, "PASS"),
        (2, "NOT_RUN"),
        (3, "NOT_RUN"),
    ]
    assert len({t.key for t in run.trials}) == 1


def test_what_is_no_run_or_damaged_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        read_run(tmp_path)
    with pytest.raises(RunDirectoryError, match="does not exist"):
        read_run(tmp_path / "nothing")
    for file in ("result.json", "run.json"):
        path = a_run_directory(tmp_path / file, a_result([]))
        (path / file).write_text("[1]")
        with pytest.raises(RunDirectoryError, match=rf"{file} is damaged"):
            read_run(path)


@pytest.mark.parametrize(
    ("job", "key", "number"),
    [
        ("a/b/claude/with_skill/3", CaseKey("demo", "a/b", "claude", "with_skill"), 3),
        ("demo-asks/x/without_skill/1", CaseKey("demo", "asks", "x", "without_skill"), 1),
        ("unknown/x/with_skill/2", CaseKey("", "unknown", "x", "with_skill"), 2),
        ("broken", CaseKey("", "broken", "", ""), 1),
    ],
)
def test_a_job_is_the_case_that_run_json_says(job: str, key: CaseKey, number: int) -> None:
    suites: dict[str, Any] = {"demo": {"cases": {"a/b": "a/b", "demo-asks": "asks"}}, "old": {}}
    assert planned_key(job, suites) == (key, number)


def asked(root: Path, **request: Any) -> str:
    """The selection key of a run in `root`, of a suite in `root/cases`."""
    given = {"directory": str(root), "paths": ["cases"], "cases": [], "tags": []} | request
    return selection_key({"request": given})


def test_the_same_is_asked_for_from_wherever_it_is(tmp_path: Path) -> None:
    whole = asked(tmp_path)
    assert asked(tmp_path / "cases", paths=["."]) == whole
    assert asked(tmp_path, trials=5, parallel=4, max_cost_usd=1.0, seed=3) == whole
    assert selection_key({}) == selection_key({"request": None}) == ""


@pytest.mark.parametrize(
    "other",
    [
        {"cases": ["b"]},
        {"tags": ["quick"]},
        {"item": "7"},
        {"sample_size": 3, "seed": 1},
        {"paths": ["cases/b.yaml"]},
        {"engines": ["codex"]},
    ],
)
def test_other_cases_and_engines_are_another_selection(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    assert asked(tmp_path, **other) != asked(tmp_path)
    if "seed" in other:
        assert asked(tmp_path, **other) != asked(tmp_path, **{**other, "seed": 2})


def test_edited_cases_are_those_whose_digests_differ() -> None:
    info = {
        "suites": {"demo": {"cases": {"demo-x": "x", "y": "y"}}},
        "case_digests": {"demo-x": "1", "y": "2"},
    }
    before = digests_of(info)
    assert before == {("demo", "x"): "1", ("demo", "y"): "2"}
    assert digests_of({}) == {}
    a = replace(a_run("a", {"x": "p", "y": "p"}), digests=before)
    b = replace(a_run("b", {"x": "p", "y": "p"}), digests={**before, ("demo", "x"): "3"})
    assert edited_cases(a, b) == [("demo", "x")]
    assert edited_cases(a, replace(b, digests={})) == []
