"""`pytest --skillup -n 2`: one worker has all cases, and the session is one run."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import psutil
import pytest

from tests.support.project import GUARD_SECONDS, Outcome, Project

Pytest = Callable[..., Outcome]

PASSES = "input: {prompt: go}\nassertions: [{contains: done}]\nscripted: [{say: done}]\n"
FAILS = PASSES.replace("say: done", "say: nothing")
BREAKS = PASSES.replace("say: done", "misbehave: {error: model_error}")
HANGS = """
    input: {prompt: go}
    assertions: [{contains: done}]
    scripted: [{steps: [{run: '%s; echo $$ >> "%s"; sleep 300'}], say: done}]
    """


@pytest.fixture
def suite(project: Project) -> Project:
    """Eight cases that pass; one each that fails, cannot be held, and depends on the latter."""
    return project.write(
        {
            "cases/eval.yaml": "name: demo\nreport: {formats: [junit]}\n",
            **{f"cases/good-{number}.yaml": PASSES for number in range(8)},
            "cases/bad.yaml": FAILS,
            "cases/broken.yaml": BREAKS,
            "cases/after.yaml": "depends_on: [broken]\n" + PASSES,
        }
    )


def result_of(project: Project) -> Any:
    return json.loads((project.latest_run() / "result.json").read_text())


def started(project: Project) -> Counter[str]:
    """How often each trial was."""
    return Counter(e["job"] for e in project.journal() if e["event"] == "trial_started")


@pytest.mark.slow
@pytest.mark.indexed
def test_what_the_workers_hold_is_one_run_with_reports_and_in_the_index(
    suite: Project, run_pytest: Pytest
) -> None:
    outcome = run_pytest("--skillup", "cases", "-n", "2", "-rA", "--junitxml", "out.xml")
    assert "1 failed, 8 passed, 1 skipped, 1 error" in outcome.stdout, outcome.stdout
    run = suite.latest_run()
    assert f"skillup: {run.relative_to(suite.root)}\n" in outcome.stdout
    result = result_of(suite)
    assert (result["run_id"], result["finished"]) == (run.name, True)
    summary = result["summary"]
    assert [summary[key] for key in ("pass", "fail", "error", "skip")] == [8, 1, 1, 1]
    assert summary["duration_ms"] > 0
    assert (run / "junit.xml").is_file()
    assert set(started(suite).values()) == {1}
    told = [p.attrib for p in ET.parse(suite.root / "out.xml").iter("property")]
    records = [told_of["value"] for told_of in told if told_of["name"] == "record"]
    assert len(records) == 11
    assert all((suite.root / record).is_file() for record in records)
    assert "demo  1 run" in suite.run("trends").stdout
    assert "bad" in suite.run("show", "last").stdout
    judged = suite.run("judge", "last", "--json").data
    assert (judged["summary"]["total"], judged["changes"]["statuses"]) == (11, 0)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_trial_and_no_other(
    suite: Project, run_pytest: Pytest, tmp_path: Path
) -> None:
    worker, agent = tmp_path / "worker", tmp_path / "agent"
    suite.write(
        {
            # Who holds it says so, and the agent kills it.
            "conftest.py": f"""
                import os, pathlib

                def pytest_runtest_setup(item):
                    if item.name.startswith("kills"):
                        pathlib.Path({str(worker)!r}).write_text(str(os.getpid()))
                """,
            "cases/kills.yaml": HANGS % (f'kill -9 $(cat "{worker}")', agent),
        }
    )
    outcome = run_pytest("--skillup", "cases", "-n", "2")
    assert "crashed while running" in outcome.stdout
    result = result_of(suite)
    assert result["not_run"] == ["kills/scripted/with_skill/1"]
    assert result["finished"] is False
    assert result["summary"]["total"] == 11
    assert set(started(suite).values()) == {1}
    assert not [pid for pid in agent.read_text().split() if psutil.pid_exists(int(pid))]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_warnings_are_told_with_workers_as_without(
    suite: Project, run_pytest: Pytest, workers: str
) -> None:
    suite.write({"cases/bad.yaml": "input: {prompt: go}\nscripted: [{say: done}]\n"})
    ordinary = {"DEPLOY_TOKEN": "completed"}
    told = run_pytest("--skillup", "cases/bad.yaml", "-n", workers, env=ordinary).stdout
    assert "\nskillup: cases/bad.yaml:1:1: warning: nothing is checked" in told
    assert "\nskillup: warning: DEPLOY_TOKEN holds an ordinary word; it cannot be masked\n" in told


@pytest.mark.slow
def test_the_first_failure_ends_it_and_what_was_not_held_is_said(
    suite: Project, run_pytest: Pytest
) -> None:
    suite.write({f"cases/more-{number}.yaml": PASSES for number in range(20)})
    outcome = run_pytest("--skillup", "cases", "-n", "2", "-x")
    assert outcome.exit_code == 2, outcome.stdout
    result = result_of(suite)
    assert result["finished"] is False
    assert len(result["not_run"]) + result["summary"]["total"] == 31


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_directory_that_is_not_free_is_refused_before_anything_is_held(
    suite: Project, run_pytest: Pytest, workers: str
) -> None:
    suite.write({"here/notes.txt": "mine"})
    outcome = run_pytest("--skillup", "cases", "-n", workers, "--skillup-out", "here")
    assert outcome.exit_code == 4, outcome.stdout
    assert "here is not empty" in outcome.stderr + outcome.stdout
    assert "Traceback" not in outcome.stderr + outcome.stdout
    assert [path.name for path in (suite.root / "here").iterdir()] == ["notes.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_where_no_case_is_held_nothing_is_made(
    suite: Project, run_pytest: Pytest, workers: str
) -> None:
    suite.write({"tests/test_own.py": "def test_own():\n    assert True\n"})
    outcome = run_pytest("tests", "--skillup", "cases", "-n", workers, "-k", "test_own")
    assert outcome.exit_code == 0, outcome.stdout
    assert not (suite.root / ".skillup").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_has_been_held_and_it_can_be_gone_on_with(
    suite: Project, at_work: Callable[..., Any]
) -> None:
    with at_work("--skillup", "cases", "-n", "2") as (process, agent):
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 2, stdout
    assert not psutil.pid_exists(agent)
    assert "a/scripted/with_skill/1" in result_of(suite)["not_run"]
    suite.write({"cases/a.yaml": PASSES})
    again = suite.run("run", "--resume", "last")
    assert again.exit_code == 3, again.stderr  # one case cannot be held
    assert result_of(suite)["summary"]["pass"] == 9
