"""What a line of the table says of a trial that has ended."""

from __future__ import annotations

from skillup.reports.html.rows import graded_row, mark_flaky
from skillup.reports.html.run_files import planned_jobs
from skillup.schema.grade import CheckResult, TurnGrade
from tests.support.stored import a_grade

(JOB,) = planned_jobs({"jobs": ["a/e/with_skill/1"]})


def a_turn(number: int, *, status: str, gate: bool | None) -> TurnGrade:
    return TurnGrade(
        turn_number=number,
        status=status,
        source="case",
        content="",
        response="",
        score=0,
        post_condition_passed=gate,
        session_verified=None,
    )


def test_a_gate_that_skips_the_rest_is_no_failure_of_its_turn() -> None:
    turns = [
        a_turn(1, status="completed", gate=True),
        a_turn(2, status="completed", gate=False),
        a_turn(3, status="skipped", gate=None),
    ]
    grade = a_grade("a").model_copy(update={"turns": turns, "status": "SKIP"})
    statuses = [turn["status"] for turn in graded_row(JOB, grade, None)["turns"]]
    assert statuses == ["completed", "skipped", "skipped"]
    failed = graded_row(JOB, grade.model_copy(update={"status": "FAIL"}), None)
    assert [turn["status"] for turn in failed["turns"]] == ["completed", "completed", "skipped"]


def test_checks_that_a_gate_kept_from_being_evaluated_did_not_fail_at_the_end() -> None:
    check = CheckResult(name="c", kind="contains", passed=False, score=0, assertable=False)
    turns = [a_turn(1, status="failed", gate=False)]
    told = {"turns": turns, "status": "FAIL", "assertions": [check]}
    grade = a_grade("a").model_copy(update=told)
    assert graded_row(JOB, grade, None)["end"] is None
    asked = [check, check.model_copy(update={"assertable": True})]
    assert graded_row(JOB, grade.model_copy(update={"assertions": asked}), None)["end"] is False
    assert graded_row(JOB, grade.model_copy(update={"turns": []}), None)["end"] is False


def test_the_trunk_is_no_branch_of_itself() -> None:
    assert graded_row(JOB, a_grade("a"), "a")["branch_of"] is None
    assert graded_row(JOB, a_grade("a/b"), "a")["branch_of"] == "a"


def test_without_the_skill_nothing_is_flaky() -> None:
    flaky = []
    for variant in ("with_skill", "without_skill"):
        jobs = planned_jobs({"jobs": [f"a/e/{variant}/{trial}" for trial in (1, 2)]})
        rows = [
            graded_row(
                job,
                a_grade("a").model_copy(update={"variant": variant, "status": status}),
                None,
            )
            for job, status in zip(jobs, ("PASS", "FAIL"), strict=True)
        ]
        mark_flaky(rows)
        flaky.append([row["flaky"] for row in rows])
    assert flaky == [[True, True], [False, False]]
