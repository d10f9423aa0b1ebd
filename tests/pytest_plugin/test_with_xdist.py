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
def test_what_the_workers_run_is_one_run_with_reports_and_in_the_index(
    suite: Project, run_pytest: Pytest
) -> None:
    suite.write({"tests/test_own.py": "def test_own():\n    assert True\n"})
    none = run_pytest("tests", "--skillup", "cases", "-n", "2", "-k", "test_own")
    assert none.exit_code == 0, none.stdout
    assert not (suite.root / ".skillup").exists()
    suite.write({"cases/unchecked.yaml": "input: {prompt: go}\nscripted: [{say: done}]\n"})
    options = ("-n", "2", "-rA", "--junitxml", "out.xml")
    outcome = run_pytest("--skillup", "cases", *options, env={"DEPLOY_TOKEN": "completed"})
    assert "2 failed, 8 passed, 1 skipped, 1 error" in outcome.stdout, outcome.stdout
    assert "\nskillup: cases/unchecked.yaml:1:1: warning: nothing is checked" in outcome.stdout
    assert "\nskillup: warning: DEPLOY_TOKEN holds an ordinary word" in outcome.stdout
    run = suite.latest_run()
    assert f"skillup: {run.relative_to(suite.root)}\n" in outcome.stdout
    result = result_of(suite)
    assert (result["run_id"], result["finished"]) == (run.name, True)
    summary = result["summary"]
    assert [summary[key] for key in ("pass", "fail", "error", "skip")] == [8, 2, 1, 1]
    assert summary["duration_ms"] > 0
    assert (run / "junit.xml").is_file()
    assert set(started(suite).values()) == {1}
    told = [p.attrib for p in ET.parse(suite.root / "out.xml").iter("property")]
    records = [told_of["value"] for told_of in told if told_of["name"] == "record"]
    assert len(records) == 12
    assert all((suite.root / record).is_file() for record in records)
    assert "demo  1 run" in suite.run("trends").stdout
    assert "bad" in suite.run("show", "last").stdout
    judged = suite.run("judge", "last", "--json").data
    assert (judged["summary"]["total"], judged["changes"]["statuses"]) == (12, 0)


@pytest.mark.slow
def test_after_a_worker_that_was_killed_the_run_can_be_resumed(
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
    assert "holds a run already" in outcome.stdout
    suite.write({"cases/kills.yaml": HANGS.replace("sleep 300", "true") % ("true", agent)})
    resumed = suite.run("run", "--resume", "last")
    assert resumed.exit_code == 3, resumed.stderr
    result = result_of(suite)
    assert (result["finished"], result["summary"]["total"]) == (True, 12)
    killed = "kills/scripted/with_skill/1"
    assert {job for job, times in started(suite).items() if times > 1} <= {killed}
    assert not [pid for pid in agent.read_text().split() if psutil.pid_exists(int(pid))]


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
