"""What `--until-decided` came to, in the page's data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.reports.html.run_data import RunData
from skillup.reports.result import build_result
from skillup.schema.analysis import (
    Analysis,
    AtK,
    CaseReliability,
    Decision,
    Rate,
    TurnReliability,
)
from skillup.schema.grade import Grade
from skillup.store import RunDirectory
from tests.support.stored import a_grade, a_record

JOBS = [f"a/scripted/with_skill/{n}" for n in range(1, 6)]
SUITES = {"suite": {"cases": {"a": "a"}}}
FAILED = Decision(verdict="below", threshold=0.8, error_rate=0.05, trials=3, saved=2)


def _run(path: Path, decision: Decision | None, **more: Any) -> RunData:
    """A run of one case that passed, failed twice, and was then decided; `more` in its result."""
    with RunDirectory.create(path, {"run_id": "r", "jobs": JOBS, "suites": SUITES}) as run:
        grades: dict[str, Grade] = {}
        for trial, (job, status) in enumerate(zip(JOBS, ("PASS", "FAIL", "FAIL"), strict=False), 1):
            update = {"status": status, "trial": trial}
            grades[job] = a_grade("a").model_copy(update=update)
            run.write_record(job, a_record("a", trial=trial))
            run.write_grade(job, grades[job])
        case = CaseReliability(
            suite="suite", case_id="a", engine="scripted", variant="with_skill", decision=decision,
            rate=Rate(passed=1, held=3, rate=1 / 3, low=0.1, high=0.8),
        )  # fmt: skip
        update = {"not_run": [], "not_needed": JOBS[3:], "analysis": Analysis(cases=[case]), **more}
        run.write_result(build_result("r", "2026", grades, JOBS, 1).model_copy(update=update))
    return RunData(path)


def test_trials_that_were_saved_are_a_status_of_their_own(tmp_path: Path) -> None:
    data = _run(tmp_path / "r", FAILED)
    assert [row["status"] for row in data.rows] == [
        *("PASS", "FAIL", "FAIL"),
        *("NOT_NEEDED", "NOT_NEEDED"),
    ]
    assert data.rows[3]["reason"] == "its case was decided without it"
    assert [row["flaky"] for row in data.rows] == [True, True, True, False, False]
    assert data.index("report")["not_run"] == []


@pytest.mark.parametrize("flaky", [True, False])
def test_of_the_numbers_by_case_the_page_has_what_it_shows(tmp_path: Path, flaky: bool) -> None:
    """F18: 500 cases on 5 engines, 20 trials each, had 3.6 MB of them."""
    held = Rate(passed=1, held=20, rate=0.05, low=0, high=0.2)
    case = CaseReliability(
        suite="suite", case_id="a", engine="scripted", variant="with_skill", flaky=flaky, rate=held,
        at_k=[AtK(k=k, pass_at_k=0.5, pass_hat_k=0.1) for k in range(1, 21)],
        turns=[TurnReliability(turn_number=1, rate=held, first_failures=19, unfailed=0.05)],
    )  # fmt: skip
    data = _run(tmp_path / "r", None, analysis=Analysis(cases=[case]))
    (shown,) = data.index("report")["analysis"]["cases"]
    assert [at["k"] for at in shown["at_k"]] == ([1, 2, 3, 4, 5] if flaky else [])
    assert shown["turns"] == []
    assert shown["rate"] == held.model_dump()


def test_the_sentences_are_those_of_the_terminal(tmp_path: Path) -> None:
    assert _run(tmp_path / "r", FAILED).index("report")["deciding"] == [
        "decided after 3 trials; 2 of 5 trials were not needed",
        "rates of decided cases lie further from the threshold than the truth, on average",
    ]


def test_of_undecided_cases_rates_are_not_biased_and_elsewhere_nothing_is_said(
    tmp_path: Path,
) -> None:
    undecided = FAILED.model_copy(update={"verdict": "undecided", "saved": 0})
    assert _run(tmp_path / "r", undecided).index("report")["deciding"] == [
        "1 case could not be decided"
    ]
    assert _run(tmp_path / "s", None).index("report")["deciding"] == []


@pytest.mark.parametrize("analysis", [None, "broken", {"cases": [{"decision": {"x": 1}}]}])
def test_an_analysis_of_another_version_says_nothing(tmp_path: Path, analysis: Any) -> None:
    path = _run(tmp_path / "r", FAILED).path
    result = json.loads((path / "result.json").read_text()) | {"analysis": analysis}
    (path / "result.json").write_text(json.dumps(result))
    assert RunData(path).index("report")["deciding"] == []


def test_while_a_run_goes_on_its_decisions_come_from_the_journal(tmp_path: Path) -> None:
    info = {"run_id": "r", "jobs": JOBS, "suites": SUITES}
    about: dict[str, Any] = {"suite": "suite", "case": "a", "engine": "scripted"}
    said: dict[str, Any] = {"verdict": "below", "threshold": 0.8, "error_rate": 0.05, "trials": 3}
    with RunDirectory.create(tmp_path / "r", info) as run:
        run.begin_trial(JOBS[3])
        for job in JOBS[:3]:
            run.write_record(job, a_record("a"))
            run.write_grade(job, a_grade("a"))
        run.journal("case_decided", **about, variant="with_skill", **said, passed=0)
        data = RunData(run.path)
        assert [row["status"] for row in data.rows[3:]] == ["RUNNING", "NOT_NEEDED"]
        index = data.index("view")
        assert (index["not_run"], index["not_needed"]) == (JOBS[3:4], JOBS[4:])
        (case,) = index["decided"]
        assert (case["suite"], case["case_id"]) == ("suite", "a")
        assert case["decision"] == {**said, "saved": 1}
