"""A run directory in every state that it can be found in: rows, decisions, journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import RunDirectoryError, UsageError
from skillup.reports.html.build import html_report
from skillup.reports.html.detail import ORDINARY
from skillup.reports.html.page_data import PageRow
from skillup.reports.html.run_data import RunData, graded_row, mark_flaky, planned_rows
from skillup.reports.html.run_files import Fork, Progress
from skillup.reports.result import build_result
from skillup.schema.grade import Analysis, AtK, CaseReliability, CheckResult, Decision, Grade, Rate
from skillup.store import RunDirectory
from skillup.store.files import pack
from tests.support.graded import a_turn
from tests.support.large_runs import write_large_run
from tests.support.pages import page_of
from tests.support.stored import a_checkpoint, a_grade, a_record, change

JOBS = ["a/e/with_skill/1", "b/e/with_skill/1", "c/e/with_skill/1"]
INFO = {"run_id": "r", "jobs": JOBS, "suites": {"s": {"cases": {"a": "a", "b": "b", "c": "c"}}}}


def _statuses(data: RunData) -> list[tuple[str, str]]:
    return [(row["status"], row["reason"]) for row in data.rows]


def test_a_run_that_goes_on_is_followed(tmp_path: Path) -> None:
    about = {"titles": {"a": "Asks"}, "tags": {"a": ["slow"]}}
    suites = {"s": {"cases": {"a": "a", "b": "b", "c": "c"}, **about}}
    with RunDirectory.create(tmp_path / "r", {**INFO, "suites": suites}) as run:
        data = RunData(run.path)
        assert data.running
        assert {status for status, _ in _statuses(data)} == {"WAITING"}
        place = run.begin_trial(JOBS[0])
        other = run.begin_trial(JOBS[1]).streams
        for name in ("turn-01.stdout.jsonl", "turn-02-follow-up-1.stderr.txt", "x"):
            place.streams.open(name).close()
        run.sync()
        assert data.read()
        assert _statuses(data) == [
            ("RUNNING", "turn 2 is running"),
            ("RUNNING", "being prepared"),
            ("WAITING", "not started yet"),
        ]
        assert [row["title"] for row in data.rows] == ["Asks", None, None]
        assert [row["tags"] for row in data.rows] == [["slow"], [], []]
        unjudged = {"status": "completed", "ok": None, "unjudged": True}
        assert data.rows[0]["turns"] == [unjudged]
        run.write_record(JOBS[0], a_record("a"))
        run.sync()
        assert data.read()
        assert _statuses(data)[0] == ("RUNNING", "being judged")
        run.write_grade(JOBS[0], a_grade("a"))
        run.sync()
        assert data.read()
        assert (data.rows[0]["status"], data.rows[0]["suite"]) == ("PASS", "suite")
        assert data.summary()["pass"] == 1
        assert data.index("view")["not_run"] == JOBS[1:]
        assert data.detail(1, ORDINARY)["turns"][0]["response"] == "done"
        assert data.detail(2, ORDINARY)["waiting"] == "being prepared"
        waiting = {"n": 3, "job": JOBS[2], "case_id": "c", "waiting": "not started yet"}
        assert data.detail(3, ORDINARY) == waiting
        with pytest.raises(UsageError, match="no trial 4"):
            data.detail(4, ORDINARY)
        stream = other.open("turn-01.stdout.jsonl")
        run.sync()
        assert data.read()
        stream.write(b"what comes within a turn")
        stream.close()
        run.sync()
        assert not data.read(), "whoever watches is not troubled for every piece of a stream"


@pytest.mark.parametrize("case", [{"id": "a", "input": {"prompt": "go on"}}, {"of": "later"}])
def test_turns_that_are_over_are_there_and_the_one_under_way_is_named(
    tmp_path: Path, case: dict[str, object]
) -> None:
    with RunDirectory.create(tmp_path / "r", INFO) as run:
        place = run.begin_trial(JOBS[0])
        for number in (1, 2):
            place.streams.open(f"turn-0{number}.stdout.jsonl").close()
        run.sync()
        before = RunData(run.path).detail(1, ORDINARY)
        record = a_record("a").model_copy(update={"case": case})
        run.write_checkpoint(JOBS[0], a_checkpoint(record=record))
        run.sync()
        now = RunData(run.path).detail(1, ORDINARY)
    assert before["waiting"] == "turn 2 is running"
    assert [turn["response"] for turn in now["turns"]] == ["done"]
    assert (now["grade"], now["live"]) == (None, "turn 2 is running")


@pytest.mark.parametrize(
    ("column", "content"),
    [
        ("result", b"{"),
        ("result", b'{"summary": 1, "not_needed": 5, "cases": null, "warnings": "x"}'),
        ("record", b"not compressed"),
        ("record", pack(b"{")),
        ("record", pack(b"[1]")),
        ("record", pack(b'{"schema_version": "skillup.record/9"}')),
        ("grade", b"not compressed"),
        ("grade", pack(b"{")),
        ("events", None),
    ],
)
def test_damage_is_no_reason_to_show_nothing(
    tmp_path: Path, column: str, content: bytes | None
) -> None:
    run = write_large_run(tmp_path / "r", 2, turns=1)
    if column == "result":
        (run / "result.json").write_bytes(content or b"")
    elif column == "events":
        for number, json in enumerate(('{"event":', "null", "[]", "\x00"), start=1):
            change(run, "UPDATE events SET json = ? WHERE id = ?", json, number)
    else:
        change(run, f"UPDATE attempts SET {column} = ? WHERE id = 1", content)
    page = page_of(html_report(run))
    assert [row["case_id"] for row in page.index["rows"]] == ["case-0001", "case-0002"]
    assert page.details[2]["turns"]


def test_what_is_no_run_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is no run directory"):
        RunData(tmp_path)
    run = write_large_run(tmp_path / "r", 1, turns=1)
    change(run, "UPDATE attempts SET record = ?", pack(b"{}"))
    assert "is damaged" in RunData(run).detail(1, ORDINARY)["problem"]
    change(run, "UPDATE run SET json = ?", b"{")
    with pytest.raises(RunDirectoryError, match="is damaged"):
        RunData(run)


# The rows of trials that have ended.

(ROW,) = planned_rows({"jobs": ["a/e/with_skill/1"]})


def _row(**more: Any) -> PageRow:
    return graded_row(ROW, a_grade("a").model_copy(update=more), None)


def test_a_gate_that_skips_the_rest_is_no_failure_of_its_turn() -> None:
    turns = [
        a_turn(1, post_condition_passed=True),
        a_turn(2, post_condition_passed=False),
        a_turn(3, status="skipped"),
    ]
    for status, second in (("SKIP", "skipped"), ("FAIL", "completed")):
        shown = [turn["status"] for turn in _row(turns=turns, status=status)["turns"]]
        assert shown == ["completed", second, "skipped"]


def test_checks_that_a_gate_kept_from_being_evaluated_did_not_fail_at_the_end() -> None:
    check = CheckResult(name="c", kind="contains", passed=False, score=0, assertable=False)
    asked = [check, check.model_copy(update={"assertable": True})]
    turns = [a_turn(1, status="failed", post_condition_passed=False)]
    assert _row(turns=turns, status="FAIL", assertions=[check])["end"] is None
    assert _row(turns=turns, status="FAIL", assertions=asked)["end"] is False
    assert _row(turns=[], status="FAIL", assertions=[check])["end"] is False
    assert _row()["end"] is None


def test_the_trunk_is_no_branch_of_itself_and_without_the_skill_nothing_is_flaky() -> None:
    assert graded_row(ROW, a_grade("a"), "a")["branch_of"] is None
    assert graded_row(ROW, a_grade("a/b"), "a")["branch_of"] == "a"
    for variant, flaky in (("with_skill", True), ("without_skill", False)):
        rows = [
            _row(variant=variant, status=status, trial=n)
            for n, status in enumerate(("PASS", "FAIL"), 1)
        ]
        mark_flaky(rows)
        assert [row["flaky"] for row in rows] == [flaky, flaky]


# What `--until-decided` came to.

TRIALS = [f"a/scripted/with_skill/{n}" for n in range(1, 6)]
KEY: Any = {"suite": "suite", "case_id": "a", "engine": "scripted", "variant": "with_skill"}
SUITES = {"suite": {"cases": {"a": "a"}}}
FAILED = Decision(verdict="below", threshold=0.8, error_rate=0.05, trials=3, saved=2)


def _decided(path: Path, decision: Decision | None, **more: Any) -> RunData:
    """A run of one case that passed, failed twice, and was then decided; `more` in its result."""
    with RunDirectory.create(path, {"run_id": "r", "jobs": TRIALS, "suites": SUITES}) as run:
        grades: dict[str, Grade] = {}
        statuses = ("PASS", "FAIL", "FAIL")
        for trial, (job, status) in enumerate(zip(TRIALS, statuses, strict=False), 1):
            update = {"status": status, "trial": trial}
            grades[job] = a_grade("a").model_copy(update=update)
            run.write_record(job, a_record("a", trial=trial))
            run.write_grade(job, grades[job])
        rate = Rate(passed=1, judged=3, rate=1 / 3, low=0.1, high=0.8)
        case = CaseReliability(**KEY, decision=decision, rate=rate)
        update = {"not_needed": TRIALS[3:], "analysis": Analysis(cases=[case]), "not_run": []}
        result = build_result("r", "2026", list(grades.values()), [], 1)
        run.write_result(result.model_copy(update={**update, **more}))
    return RunData(path)


def test_trials_that_were_saved_are_a_status_of_their_own(tmp_path: Path) -> None:
    data = _decided(tmp_path / "r", FAILED, warnings=["no prices"])
    statuses = [row["status"] for row in data.rows]
    assert statuses == ["PASS", "FAIL", "FAIL", "NOT_NEEDED", "NOT_NEEDED"]
    assert data.rows[3]["reason"] == "its case was decided without it"
    assert [row["flaky"] for row in data.rows] == [True, True, True, False, False]
    index = data.index("report")
    assert (index["not_run"], index["warnings"]) == ([], ["no prices"])
    assert index["deciding"] == [
        "decided after 3 trials; 2 of 5 trials were not needed",
        "rates of decided cases lie further from the threshold than the truth, on average",
    ]


def test_of_the_numbers_by_case_the_page_has_what_it_shows(tmp_path: Path) -> None:
    """F18: 500 cases on 5 engines, 20 trials each, had 3.6 MB of them."""
    rate = Rate(passed=1, judged=20, rate=0.05, low=0, high=0.2)
    at_k = [AtK(k=k, pass_at_k=0.5, pass_hat_k=0.1) for k in range(1, 21)]
    case = CaseReliability(**KEY, flaky=True, rate=rate, at_k=at_k)
    data = _decided(tmp_path / "r", None, analysis=Analysis(cases=[case]))
    analysis: Any = data.index("report")["analysis"]
    (shown,) = analysis["cases"]
    assert shown["at_k"] == []
    assert shown["rate"] == rate.model_dump()


def test_while_a_run_goes_on_its_decisions_come_from_the_journal(tmp_path: Path) -> None:
    info = {"run_id": "r", "jobs": TRIALS, "suites": SUITES}
    about: dict[str, Any] = {"suite": "suite", "case": "a", "engine": "scripted"}
    said: dict[str, Any] = {"verdict": "below", "threshold": 0.8, "error_rate": 0.05, "trials": 3}
    with RunDirectory.create(tmp_path / "r", info) as run:
        run.begin_trial(TRIALS[3])
        for job in TRIALS[:3]:
            run.write_record(job, a_record("a"))
            run.write_grade(job, a_grade("a"))
        run.journal("case_decided", **about, variant="with_skill", **said, passed=0)
        run.sync()
        data = RunData(run.path)
        assert [row["status"] for row in data.rows[3:]] == ["RUNNING", "NOT_NEEDED"]
        index: Any = data.index("view")
        assert (index["not_run"], index["not_needed"]) == (TRIALS[3:4], TRIALS[4:])
        (case,) = index["decided"]
        assert (case["suite"], case["case_id"]) == ("suite", "a")
        assert case["decision"] == {**said, "saved": 1}


# The journal.


def test_what_was_begun_and_is_not_over_is_running() -> None:
    events = [
        {"event": "run_created", "time": "1"},
        {"event": "trial_started", "job": "a", "time": "2"},
        {"event": "trial_started", "job": "b"},
        {"event": "trial_finished", "job": "a"},
    ]
    found = Progress(events)
    assert found.started == {"b"}
    assert Progress([*events, {"event": "trial_left", "job": "b"}]).started == set()
    assert Progress([*events, {"event": "trial_continued", "job": "c"}]).started == {"b", "c"}
    assert (found.last_time, found.ended) == ("2", False)
    assert Progress([*events, {"event": "result_written"}]).ended
    again = Progress([*events, {"event": "result_written"}, {"event": "run_reopened"}])
    assert (again.started, again.ended) == (set(), False)


def test_forks_are_those_of_the_last_attempt() -> None:
    fork = {"event": "trial_forked", "job": "b", "parent": "a", "after_turn": 2}
    retry = {"event": "trial_retried", "job": "b"}
    assert Progress([{"event": "of a later version", "job": "a"}, fork]).forks == {
        "b": Fork("a", 2)
    }
    assert Progress([fork, retry]).forks == {}
    assert Progress([fork, retry, {**fork, "after_turn": 1}]).forks == {"b": Fork("a", 1)}


def test_forks_of_forks_are_one_tree(tmp_path: Path) -> None:
    jobs = {name: f"{name}/e/with_skill/1" for name in "abcdxy"}
    forks = (("b", "a", 1), ("c", "b", 3), ("x", "y", 1), ("y", "x", 1))
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": [*jobs.values()]}) as run:
        for name, job in jobs.items():
            run.write_record(job, a_record(name))
        for job, parent, turn in forks:
            run.journal("trial_forked", job=jobs[job], parent=jobs[parent], after_turn=turn)
    data = RunData(tmp_path / "r")
    a, _, c, d, x, _ = (data.detail(n, ORDINARY, shift=10)["family"] for n in range(1, 7))
    nodes = [(node["n"], node["parent_n"], node["forks_at"]) for node in c["tree"]]
    assert nodes == [(11, None, 1), (12, 11, 2), (13, 12, 4)]
    assert (a["of"], a["tree"]) == ("a", c["tree"])
    assert d is None
    assert x is None, "a journal that goes round has no tree"
