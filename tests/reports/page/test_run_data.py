"""A run directory in every state that it can be found in."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError, UsageError
from skillup.reports.html.build import html_report
from skillup.reports.html.limits import ORDINARY
from skillup.reports.html.run_data import RunData
from skillup.schema.grade import CheckResult
from skillup.store import RunDirectory
from tests.support.large_runs import write_large_run
from tests.support.stored import a_grade, a_record

JOBS = ["a/e/with_skill/1", "b/e/with_skill/1", "c/e/with_skill/1"]
INFO = {"run_id": "r", "jobs": JOBS, "suites": {"s": {"cases": {"a": "a", "b": "b", "c": "c"}}}}


def _statuses(data: RunData) -> list[tuple[str, str]]:
    return [(row["status"], row["reason"]) for row in data.rows]


def test_a_run_that_goes_on_is_followed(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "r", INFO) as run:
        data = RunData(run.path)
        assert data.running
        assert {status for status, _ in _statuses(data)} == {"WAITING"}
        place = run.begin_trial(JOBS[0])
        run.begin_trial(JOBS[1])
        (place.raw / "turn-02.stdout.jsonl").touch()
        data.read()
        assert _statuses(data) == [
            ("RUNNING", "turn 2 is running"),
            ("RUNNING", "being prepared"),
            ("WAITING", "not started yet"),
        ]
        assert data.running_jobs() == JOBS[:2]
        run.write_record(JOBS[0], a_record("a"))
        data.read()
        assert _statuses(data)[0] == ("RUNNING", "being judged")
        run.write_grade(JOBS[0], a_grade("a"))
        data.read()
        assert data.rows[0]["status"] == "PASS"
        assert data.rows[0]["suite"] == "suite"
        assert data.summary()["pass"] == 1
        assert data.index("view")["not_run"] == JOBS[1:]
        assert data.detail(1, ORDINARY)["turns"][0]["response"] == "done"
        assert data.detail(2, ORDINARY)["live"] == "being prepared"
        assert data.detail(3, ORDINARY) == {
            "n": 3, "job": JOBS[2], "case_id": "c", "waiting": "not started yet"
        }  # fmt: skip
        with pytest.raises(UsageError, match="no trial 4"):
            data.detail(4, ORDINARY)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("result.json", "{"),
        ("result.json", "[]"),
        ("result.json", '{"summary": 1, "not_needed": 5, "cases": null}'),
        ("events.jsonl", '{"event":\nnull\n[]\n\x00'),
        ("run.json", '{"jobs": "x", "suites": [], "profiles": 3}'),
        ("run.json", '{"jobs": [1, {}, "a"], "suites": {"s": null, "t": {"cases": []}}}'),
        ("trials/case-0001/lab/with_skill/1/record.json", "{"),
        ("trials/case-0001/lab/with_skill/1/record.json", "[1]"),
        ("trials/case-0001/lab/with_skill/1/record.json", '{"schema_version": "skillup.record/9"}'),
        ("trials/case-0001/lab/with_skill/1/grading.json", "{"),
        ("trials/case-0001/lab/with_skill/1/grading.json", ""),
    ],
)
def test_damaged_files_are_no_reason_to_show_nothing(
    tmp_path: Path, file: str, content: str
) -> None:
    run = write_large_run(tmp_path / "r", 2, turns=1)
    (run / file).write_text(content)
    assert html_report(run).startswith(b"<!doctype html>")


def test_a_record_of_a_newer_version_is_told(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 1, turns=1)
    record = run / "trials/case-0001/lab/with_skill/1/record.json"
    told = json.loads(record.read_text()) | {"schema_version": "skillup.record/9"}
    record.write_text(json.dumps(told))
    assert "skillup.record/9" in RunData(run).detail(1, ORDINARY)["problem"]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        RunData(tmp_path)
    write_large_run(tmp_path / "r", 1, turns=1)
    (tmp_path / "r/run.json").write_text("{")
    with pytest.raises(RunDirectoryError, match="is damaged"):
        RunData(tmp_path / "r")


def test_trials_that_disagree_make_a_case_flaky(tmp_path: Path) -> None:
    jobs = ["a/e/with_skill/1", "a/e/with_skill/2", "b/e/with_skill/1"]
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": jobs}) as run:
        for job, status in zip(jobs, ("PASS", "FAIL", "PASS"), strict=True):
            case, trial = job[0], int(job[-1])
            run.write_record(job, a_record(case, trial=trial))
            update = {"status": status, "trial": trial}
            run.write_grade(job, a_grade(case).model_copy(update=update))
    assert [row["flaky"] for row in RunData(run.path).rows] == [True, True, False]


def test_titles_and_tags_of_trials_that_are_not_over_come_from_the_plan(tmp_path: Path) -> None:
    told = {"titles": {"a": "Asks", "b": ["no text"]}, "tags": {"a": ["slow"], "b": "no list"}}
    suites = {"s": {"cases": {"a": "a", "b": "b"}, **told}}
    info = {"run_id": "r", "jobs": JOBS[:2], "suites": suites}
    with RunDirectory.create(tmp_path / "r", info) as run:
        run.begin_trial(JOBS[0])
        rows = RunData(run.path).rows
        assert [row["title"] for row in rows] == ["Asks", None]
        assert [row["tags"] for row in rows] == [["slow"], []]
        assert [row["status"] for row in rows] == ["RUNNING", "WAITING"]


def test_turns_of_a_trial_that_goes_on_are_held_and_not_judged(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "r", INFO) as run:
        place = run.begin_trial(JOBS[0])
        (place.raw / "turn-02.stdout.jsonl").touch()
        data = RunData(run.path)
        row = data.rows[0]
        assert row["turns"] == [{"status": "completed", "ok": None, "unjudged": True}]
        began = next(event["time"] for event in run.events() if event.get("job") == JOBS[0])
        assert row["started_at"] == began
        head = data.head()
        times = [datetime.fromisoformat(str(at)) for at in (head["since"], began, head["now"])]
        assert times == sorted(times)


def test_a_failed_check_of_the_whole_conversation_is_told_of_its_row(tmp_path: Path) -> None:
    check = CheckResult(name="c", kind="contains", passed=False, score=0.0)
    grades = [
        a_grade("a").model_copy(update={"status": "FAIL", "assertions": [check]}),
        a_grade("b"),
    ]
    with RunDirectory.create(tmp_path / "r", INFO) as run:
        for job, grade in zip(JOBS[:2], grades, strict=True):
            run.write_record(job, a_record(grade.case_id))
            run.write_grade(job, grade)
        assert [row["end"] for row in RunData(run.path).rows] == [False, None, None]


def test_warnings_of_the_run_are_in_the_index(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "r", INFO) as run:
        path = run.path
    (path / "result.json").write_text(json.dumps({"warnings": ["no prices"]}))
    assert RunData(path).index("report")["warnings"] == ["no prices"]
    (path / "result.json").write_text(json.dumps({"warnings": "broken"}))
    assert RunData(path).index("report")["warnings"] == []
