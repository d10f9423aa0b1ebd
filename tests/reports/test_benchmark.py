"""`benchmark.json`, in the shape of Anthropic's skill-creator."""

from __future__ import annotations

from typing import Any

from skillup.reports.benchmark import benchmark, runs_of
from skillup.schema.grade import CheckResult, Grade
from tests.reports.test_junit import make_grade

WHEN = "2026-01-01T00:00:00.000Z"


def graded(case_id: str, met: int, unmet: int, **more: Any) -> Grade:
    checks = [
        CheckResult(name=f"check {n}", kind="contains", passed=n < met, score=1, found="seen")
        for n in range(met + unmet)
    ]
    status = "FAIL" if unmet else "PASS"
    return make_grade(case_id, status, assertions=checks, **more)


def test_runs_and_their_means_are_as_the_schema_has_them() -> None:
    usage = {"input_tokens": 900, "output_tokens": 100}
    data = benchmark(
        runs_of(
            [
                graded("a", 3, 1, usage=usage, duration_ms=2000),
                graded("a", 4, 0, trial=2, usage=usage, duration_ms=4000),
                graded("a", 2, 2, variant="without_skill", usage=usage, duration_ms=1000),
            ]
        ),
        timestamp=WHEN,
    )

    assert data["metadata"] == {
        "skill_name": "s", "skill_path": "", "executor_model": "e", "analyzer_model": "",
        "timestamp": "2026-01-01T00:00:00Z", "evals_run": [1], "runs_per_configuration": 2,
    }  # fmt: skip
    assert [(r["eval_id"], r["configuration"], r["run_number"]) for r in data["runs"]] == [
        (1, "with_skill", 1), (1, "with_skill", 2), (1, "without_skill", 1),
    ]  # fmt: skip
    assert data["runs"][0]["result"] == {
        "pass_rate": 0.75, "passed": 3, "failed": 1, "total": 4, "time_seconds": 2.0,
        "tokens": 1000,
    }  # fmt: skip
    assert data["runs"][0]["expectations"][3] == {
        "text": "check 3", "passed": False, "evidence": "seen",
    }  # fmt: skip
    assert data["run_summary"]["with_skill"]["pass_rate"] == {
        "mean": 0.875, "stddev": 0.1768, "min": 0.75, "max": 1.0,
    }  # fmt: skip
    assert data["run_summary"]["without_skill"]["time_seconds"]["stddev"] == 0.0
    assert data["run_summary"]["delta"] == {
        "pass_rate": "+0.38", "time_seconds": "+2.0", "tokens": "+0",
    }  # fmt: skip


def test_a_trial_without_a_verdict_is_no_run_and_is_named() -> None:
    data = benchmark(
        runs_of([graded("a", 1, 0), make_grade("b", "ERROR", reason="429")]), timestamp=WHEN
    )

    assert [run["eval_name"] for run in data["runs"]] == ["a"]
    assert data["metadata"]["evals_run"] == [1]
    assert data["notes"] == ["Eval 2 (b), with_skill, run 1 was not graded: ERROR: 429"]


def test_tokens_that_nobody_told_are_said_to_be_unknown() -> None:
    (run,) = benchmark(runs_of([graded("a", 1, 0)]), timestamp=WHEN)["runs"]

    assert run["result"]["tokens"] == 0
    assert run["notes"] == ["the engine did not tell how many tokens it took"]


def test_engines_and_suites_are_told_apart_as_far_as_the_shape_allows() -> None:
    data = benchmark(
        runs_of([graded("a", 1, 0), graded("a", 1, 0, engine="f"), graded("a", 1, 0, suite="t")]),
        timestamp=WHEN,
    )

    runs = [(r["eval_name"], r["run_number"]) for r in data["runs"]]
    assert runs == [("s/a", 1), ("s/a", 2), ("t/a", 1)]
    assert data["notes"][0].startswith("The runs of 2 engines (e, f) stand together")
