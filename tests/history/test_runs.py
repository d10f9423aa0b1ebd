"""A run directory as outcomes, and how cases fared over many runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import RunDirectoryError
from skillup.history.runs import CaseKey, RunOutcomes, planned_key, read_run, selection_key
from skillup.history.trends import histories
from skillup.schema.grade import Grade, RunResult
from skillup.schema.past_runs import CaseHistoryData, HistoryData, SuiteHistoryData
from skillup.stats import interval_over_cases
from skillup.store import RunDirectory
from tests.support.graded import a_result
from tests.support.outcomes import Cases, a_key, a_run
from tests.support.stored import a_grade, a_record

SUITES = {"suite": {"path": "eval.yaml", "gates": {"max_not_run": 0}, "cases": {"label": "case"}}}
JOB = "scripted/with_skill"


def a_run_directory(path: Path, result: RunResult | None = None, **info: Any) -> Path:
    """A run that knows so much of itself, and its `result.json` if there is one."""
    head = {"run_id": "run", "started_at": "2026-01-01T00:00:00.000Z", "jobs": [], **info}
    with RunDirectory.create(path, head) as run:
        if result is not None:
            run.write_result(result)
    return path


def grade(**fields: Any) -> Grade:
    """A passing grade."""
    return a_grade().model_copy(update=fields)


def test_a_finished_run_is_its_result(tmp_path: Path) -> None:
    failed = grade(trial=2, status="FAIL", reason="no\nway")
    result = a_result([grade(cost_usd=0.5), failed], not_run=[f"label/{JOB}/3"])
    run = read_run(a_run_directory(tmp_path / "run", result, suites=SUITES))
    key = CaseKey("suite", "case", "scripted", "with_skill")
    assert [(t.key, t.trial, t.status, t.cost_usd) for t in run.trials] == [
        (key, 1, "PASS", 0.5),
        (key, 2, "FAIL", None),
        (key, 3, "NOT_RUN", None),
    ]
    assert run.trials[1].reason == "no way"
    assert run.gates == {"suite": {"max_not_run": 0}}
    assert not run.finished


def test_a_run_that_was_killed_is_the_grades_of_what_had_finished(tmp_path: Path) -> None:
    jobs = [f"label/{JOB}/{trial}" for trial in (1, 2, 3)]
    path = a_run_directory(tmp_path / "run", suites=SUITES, jobs=jobs)
    with RunDirectory.open(path, writable=True) as run:
        for job in jobs[:2]:
            run.write_record(job, a_record())
        run.write_grade(jobs[0], grade())
    read = read_run(path)
    assert [(t.trial, t.status) for t in read.trials] == [
        (1, "PASS"),
        (2, "NOT_RUN"),
        (3, "NOT_RUN"),
    ]
    assert len({t.key for t in read.trials}) == 1


def test_what_is_no_run_or_damaged_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        read_run(tmp_path)
    with pytest.raises(RunDirectoryError, match="does not exist"):
        read_run(tmp_path / "nothing")
    path = a_run_directory(tmp_path / "run", a_result([]))
    (path / "result.json").write_text("[1]")
    with pytest.raises(RunDirectoryError, match=r"result\.json is damaged"):
        read_run(path)
    (path / "run.sqlite").write_bytes(b"[1]")
    with pytest.raises(RunDirectoryError, match="damaged"):
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


def test_other_cases_and_engines_are_another_selection(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [
        {},
        {"cases": ["b"]},
        {"tags": ["quick"]},
        {"item": "7"},
        {"sample_size": 3, "seed": 1},
        {"sample_size": 3, "seed": 2},
        {"paths": ["cases/b.yaml"]},
        {"engines": ["codex"]},
    ]
    assert len({asked(tmp_path, **other) for other in others}) == len(others)


# How cases fared over runs.


def rows_of(*nights: Cases) -> list[RunOutcomes]:
    """Runs named `1`, `2`, …, the oldest first."""
    return [a_run(str(number), cases) for number, cases in enumerate(nights, start=1)]


def history_of(*nights: str, last: int = 20) -> CaseHistoryData:
    """One case over nights, each as the letters of its trials."""
    cases: list[Cases] = [{"case": marks} for marks in nights]
    return only(histories(rows_of(*cases), last)).cases[0]


@pytest.mark.parametrize(
    ("nights", "first", "last_pass", "runs"),
    [
        ("p p f f", "3", "2", 2),
        ("p e f", "3", "1", 1),
        ("p f e f", "2", "1", 2),
        ("p f e", "2", "1", 1),
        ("e f f", "2", None, 2),
        ("f p s n f", "5", "2", 1),
        ("ppp ppf e fff pff", "2", "1", 3),
    ],
)
def test_a_failing_case_says_since_when(
    nights: str, first: str, last_pass: str | None, runs: int
) -> None:
    failing = history_of(*nights.split()).failing_since
    assert failing is not None
    assert (failing.first.run_id, failing.runs) == (first, runs)
    assert (failing.last_pass.run_id if failing.last_pass else None) == last_pass


@pytest.mark.parametrize(
    ("nights", "first"),
    [
        ([*["ppp"] * 8, "e", "fff", "fff"], "10"),
        ([*["ppp"] * 8, "ppf", "ppp"], None),  # may be chance
        ([*["ppp"] * 8, "fff", "fff", "ppp", "ppp"], None),  # it recovered
        (["p"] * 9 + ["f"] * 9, "10"),
        # Errors and skips are no failure; nor is what fails without the skill.
        (["f", "p", "e", "s"], None),
        (["e"], None),
    ],
)
def test_a_case_regressed_where_that_is_more_than_chance(
    nights: list[str], first: str | None
) -> None:
    failing = history_of(*nights).failing_since
    if first is None:
        assert failing is None
    else:
        assert failing is not None
        assert failing.statement is not None
        assert failing.first.run_id == first
    bare: list[Cases] = [{a_key("case", variant="without_skill"): night} for night in nights]
    assert only(histories(rows_of(*bare), 20)).cases[0].failing_since is None


def test_when_it_began_is_looked_for_before_the_runs_that_are_shown() -> None:
    history = history_of("p", "f", "f", "f", last=2)
    assert len(history.runs) == 2
    assert history.failing_since is not None
    assert history.failing_since.first.run_id == "2"


def only(history: HistoryData) -> SuiteHistoryData:
    (suite,) = history.suites
    return suite


@pytest.mark.parametrize(
    ("cases", "state"),
    [
        ({"a": "p", "b": "p"}, "pass"),
        ({"a": "p", "b": "f"}, "mixed"),
        ({"a": "f", "b": "f"}, "fail"),
        ({"a": "f", "b": "e"}, "fail"),
        ({"a": "pf", "b": "ppe"}, "mixed"),
        ({"a": "p", "b": "e"}, "error"),
        ({"a": "s", "b": "p"}, "pass"),
    ],
)
def test_a_suite_has_a_state_in_each_run(cases: Cases, state: str) -> None:
    (run,) = only(histories(rows_of(cases), 20)).runs
    assert run.state == state


def test_a_suite_has_numbers_as_its_cases_have() -> None:
    other, bare = a_key("a", engine="other"), a_key("a", variant="without_skill")
    held: list[Cases] = [
        {a_key("a"): "ppf", other: "pp", bare: "fff", a_key("b"): "fe"},
        {a_key("a"): "pnn", a_key("b"): "s"},
    ]
    suite = only(histories(rows_of(*held), 20))
    assert (suite.passed, suite.judged, suite.errors, suite.not_started) == (5, 7, 1, 2)
    assert suite.pass_rate == 5 / 7
    assert suite.score == pytest.approx(5 / 7)
    assert suite.interval == interval_over_cases([(5, 6), (0, 1)])
    assert only(histories(rows_of({bare: "pf"}), 20)).pass_rate == 0.5
    assert only(histories(rows_of({"a": "e"}), 20)).interval is None
