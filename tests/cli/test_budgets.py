"""Budgets and `--until-decided`: when no more trials are started, and what a run says of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import Outcome, Project

PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")
PRICED = "engine: scripted\nprices: {input: 1000, output: 1000}\n"  # 0.12 USD a turn


@pytest.fixture
def suite(project: Project) -> Project:
    """Two cases, and an engine that tells what it costs."""
    return project.write(
        {"eval.yaml": "name: d\n", "a.yaml": PASS, "b.yaml": PASS, "engines/priced.yaml": PRICED}
    )


def run(project: Project, *arguments: str) -> Outcome:
    return project.run("run", ".", "--out", "out", "--json", *arguments)


def resume(project: Project, *arguments: str) -> Outcome:
    return project.run("run", "--resume", "out", "--json", *arguments)


def last_lines(outcome: Outcome) -> list[str]:
    return outcome.stderr.splitlines()[-2:]


def test_a_spent_budget_starts_no_more_and_says_what_was_not_run_until_it_is_raised(
    suite: Project,
) -> None:
    outcome = run(suite, "-e", "priced", "--trials", "4", "-j", "1", "--max-cost-usd", "0.6")
    assert outcome.exit_code == 3
    assert outcome.data["summary"]["pass"] == 5
    assert outcome.data["stopped"] == {
        "kind": "max_cost_usd",
        "message": "the budget of 0.60 USD is spent (0.60 USD)",
    }
    # Every case has its second trial before one has its fourth.
    rest = ["a/priced/with_skill/4", "b/priced/with_skill/3", "b/priced/with_skill/4"]
    assert outcome.data["not_run"] == rest
    assert outcome.data["finished"] is False
    assert last_lines(outcome) == [
        "stopped: the budget of 0.60 USD is spent (0.60 USD); 3 of 8 trials were not run",
        f"go on with: skillup run --resume {suite.root / 'out'}",
    ]
    # What was spent before counts when the run is resumed.
    again = resume(suite, "--max-cost-usd", "0.6")
    assert (again.exit_code, again.data["summary"]["pass"]) == (3, 5)
    more = resume(suite, "-j", "1", "--max-cost-usd", "0.8")
    assert (more.exit_code, more.data["summary"]["pass"]) == (3, 7)
    whole = resume(suite)
    assert (whole.exit_code, whole.data["summary"]["pass"]) == (0, 8)
    assert whole.data["stopped"] is None
    assert whole.data["not_run"] == []


@pytest.mark.indexed
def test_a_run_without_trials_has_its_reports_and_its_place_in_the_index(suite: Project) -> None:
    outcome = run(suite, "-e", "priced", "--max-cost-usd", "0", "--report", "junit,markdown")
    assert outcome.exit_code == 3
    assert outcome.data["cases"] == []
    assert "trials were not run" in outcome.stderr
    why = "the budget of 0.00 USD is spent"
    assert why in (suite.root / "out/junit.xml").read_text(encoding="utf-8")
    assert why in (suite.root / "out/summary.md").read_text(encoding="utf-8")
    assert "?" in suite.run("trends").stdout


def test_a_time_limit_lets_running_trials_finish(project: Project) -> None:
    slow = PASS.replace("say: fine", "say: fine, steps: [{delay: 3}]")
    project.write({"eval.yaml": "name: d\n", **{f"c{n}.yaml": slow for n in range(4)}})
    outcome = run(project, "-j", "2", "--time-limit", "2s")
    assert outcome.exit_code == 3
    assert [case["status"] for case in outcome.data["cases"]] == ["PASS", "PASS"]
    assert outcome.data["stopped"]["message"] == "the time limit of 2 s is up"
    assert resume(project).exit_code == 0


def test_what_a_budget_left_outranks_failures_and_what_max_fail_left_does_not(
    project: Project,
) -> None:
    project.write({"eval.yaml": "name: d\n", **{f"c{n}.yaml": FAIL for n in range(3)}})
    stopped = run(project, "-j", "1", "--max-fail", "2")
    assert stopped.exit_code == 1
    assert stopped.data["stopped"]["kind"] == "max_fail"
    assert last_lines(stopped)[1] == f"go on with: skillup run --resume {project.root / 'out'}"
    judged = project.run("judge", "out", "-q")
    assert judged.exit_code == 1, judged.stderr
    assert resume(project, "--max-tokens", "1").exit_code == 3
    assert project.run("judge", "out", "-q").exit_code == 3


# Cases are repeated until their pass rate is surely above or below.


def flips(rate: float) -> str:
    return PASS.replace("{say: fine}", f"{{say: fine, probability: {rate}}}, {{say: bad}}")


def decide(project: Project, *arguments: str) -> Outcome:
    return project.run("run", ".", "--out", "out", "--until-decided", "--json", *arguments)


def decisions(outcome: Outcome) -> dict[str, tuple[str, int]]:
    """By case, what `result.json` says: the verdict, and after how many trials."""
    found = {case["case_id"]: case["decision"] for case in outcome.data["analysis"]["cases"]}
    return {case: (about["verdict"], about["trials"]) for case, about in found.items()}


def events(project: Project, kind: str) -> list[dict[str, Any]]:
    return project.journal(kind, run="out")


@pytest.mark.slow
def test_clear_cases_are_decided_rightly_and_their_other_trials_are_saved(project: Project) -> None:
    project.write(
        {
            "eval.yaml": "name: d\n",
            "always.yaml": PASS,
            "mostly.yaml": flips(0.97),
            "never.yaml": FAIL,
            "seldom.yaml": flips(0.2),
        }
    )
    outcome = decide(project, "--trials", "40", "--pass-rate", "0.7", "-j", "4")
    assert outcome.exit_code == 1
    found = decisions(outcome)
    sides = {case: side for case, (side, _) in found.items()}
    assert sides == {"always": "above", "mostly": "above", "never": "below", "seldom": "below"}
    assert found["always"] == ("above", 10)
    assert found["never"] == ("below", 3)
    ran, saved = len(outcome.data["cases"]), outcome.data["not_needed"]
    assert ran + len(saved) == 160
    # What the decisions took, and at most the trials that were running when one came.
    assert ran <= sum(trials for _, trials in found.values()) + 4 * 3
    assert outcome.data["not_run"] == []
    assert outcome.data["finished"] is True
    assert outcome.data["stopped"] is None
    told = {
        event["case"]: (event["verdict"], event["trials"])
        for event in events(project, "case_decided")
    }
    assert told == found


def test_a_run_decides_by_the_gate_it_began_with_whatever_the_suite_says_later(
    project: Project,
) -> None:
    project.write({"eval.yaml": "name: d\ngates: {min_pass_rate: 0.5}\n", "a.yaml": FAIL})
    decide(project, "--trials", "20", "-j", "1", "--max-fail", "1")
    project.write({"eval.yaml": "name: d\ngates: {min_pass_rate: 0.9}\n"})
    outcome = project.run("run", "--resume", "out", "--json", "-j", "1")
    assert decisions(outcome) == {"a": ("below", 5)}  # with 0.9 it takes 2
    (case,) = outcome.data["analysis"]["cases"]
    assert case["decision"]["threshold"] == 0.5
    assert [event["threshold"] for event in events(project, "case_decided")] == [0.5]
    assert len(outcome.data["cases"]) == 5


# What past runs say: what comes first where a budget may end the run, and what one will come to.


@pytest.mark.indexed
def test_where_a_budget_ends_runs_the_cases_that_waited_longest_are_first(suite: Project) -> None:
    suite.write({"c.yaml": PASS, "d.yaml": "depends_on: [c]\n" + PASS})
    nights = []
    for night in range(3):
        options = ("-e", "priced", "-j", "1", "--max-cost-usd", "0.15", "--out", f"out-{night}")
        nights.append(run_of(suite.run("run", ".", "--json", *options)))
    # Two of the four cases a night; what another depends on is as urgent as that.
    assert nights == [["a", "b"], ["c", "d"], ["a", "b"]]


def run_of(outcome: Outcome) -> list[str]:
    return [case["case_id"] for case in outcome.data["cases"]]


@pytest.mark.indexed
def test_a_dry_run_tells_cost_and_time_from_past_runs_and_starts_nothing(suite: Project) -> None:
    first = suite.run("run", ".", "-e", "priced", "--trials", "3", "--dry-run")
    assert first.exit_code == 0
    assert first.stdout.splitlines()[:3] == ["6 trials", "cost  not known", "time  not known"]
    assert not (suite.root / ".skillup").exists()
    for _ in range(2):
        suite.run("run", ".", "-e", "priced")
    suite.write({"c.yaml": PASS})
    planned = ("run", ".", "-e", "priced", "--trials", "3", "-j", "3", "--dry-run")
    found = suite.run(*planned, "--json").data
    assert (found["trials"], found["new_cases"], found["runs"]) == (9, 1, 2)
    assert found["cost_usd"] == pytest.approx({"mean": 0.72, "low": 0.72, "high": 0.72})
    time = found["duration_ms"]
    assert 0 < time["low"] <= time["mean"] <= time["high"]
    _, cost, _, past = suite.run(*planned).stdout.splitlines()
    assert cost == "cost  $0.72"
    assert past == "from 2 past runs; without 1 case that no past run judged; nothing was started"
    assert len(list((suite.root / ".skillup/runs").iterdir())) == 2
    assert suite.run("run", "--resume", "last", "--dry-run").exit_code == 2
