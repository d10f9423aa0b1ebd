"""Workers that are killed, clients that are killed, and runs that are stopped."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.dask_cluster import GUARD_SECONDS, DaskCluster, wait_for, wait_until_gone
from tests.support.project import Project

# The first time it is held, its agent goes on for ever; the next time it answers at once.
FIRST_TIME_FOR_EVER = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted:
      - steps:
          - run: |
              test -e "DIR/pid" && exit
              echo $$ > "DIR/new" && mv "DIR/new" "DIR/pid"
              sleep 600
        say: ok
    """
QUICK = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted: [{say: ok}]
    """


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    stuck = FIRST_TIME_FOR_EVER.replace("DIR", str(tmp_path))
    return project.write({"eval.yaml": "name: x\n", "a.yaml": stuck, "b.yaml": QUICK})


def on(cluster: DaskCluster, *more: str) -> tuple[str, ...]:
    return ("run", ".", "--executor", "dask", "--scheduler", cluster.address, *more)


def agent(tmp_path: Path) -> int:
    """The agent's shell, once it is at work."""
    wait_for(tmp_path / "pid")
    return int((tmp_path / "pid").read_text())


def worker_and_unit_of(pid: int, workers: list[int]) -> tuple[int, int]:
    """The worker that the process descends from, and the process in between that holds the unit."""
    ancestors = [process.pid for process in psutil.Process(pid).parents()]
    (place,) = [n for n, ancestor in enumerate(ancestors) if ancestor in workers]
    return ancestors[place], ancestors[place - 1]


def events(project: Project, kind: str) -> list[Any]:
    return [event for event in project.journal() if event["event"] == kind]


@pytest.mark.parametrize("victims", ["worker", "unit", "both"])
def test_a_trial_whose_worker_is_killed_is_held_again_elsewhere(
    project: Project, cluster: DaskCluster, tmp_path: Path, victims: str
) -> None:
    workers = [cluster.start_worker(name).pid for name in ("one", "two")]
    with project.start(*on(cluster, "--json")) as process:
        shell = agent(tmp_path)
        worker, unit = worker_and_unit_of(shell, workers)
        if victims == "both":
            os.kill(unit, signal.SIGSTOP)  # or it might see its worker go
        if victims != "unit":
            # Nobody is left to tell the unit: it notices by itself.
            os.kill(worker, signal.SIGKILL)
        if victims != "worker":
            # Its agents are ended by whoever comes next on that machine.
            os.kill(unit, signal.SIGKILL)
        wait_until_gone(shell)
        stdout, stderr = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, stderr
    assert [case["status"] for case in json.loads(stdout)["cases"]] == ["PASS", "PASS"]
    (lost,) = events(project, "trial_lost")
    assert lost["job"] == "a/scripted/with_skill/1"
    (warning,) = json.loads(stdout)["warnings"]
    assert warning == f"worker {lost['worker']}: {lost['reason']}; trials there were lost"
    sent = Counter(event["job"] for event in events(project, "trial_sent"))
    assert sent == {"a/scripted/with_skill/1": 1, "b/scripted/with_skill/1": 1}
    finished = Counter(event["job"] for event in events(project, "trial_finished"))
    assert set(finished.values()) == {1}


def test_a_trial_that_kills_who_holds_it_is_an_error_in_the_end(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    killer = """
        input: {prompt: go}
        assertions: [{contains: ok}]
        scripted: [{steps: [{run: 'kill -9 $(ps -o ppid= -p $PPID)'}], say: ok}]
        """
    project = Project(tmp_path).write({"eval.yaml": "name: x\n", "a.yaml": killer})
    cluster.start_worker("one")
    outcome = project.run(*on(cluster, "--json"))
    assert outcome.exit_code == 3, outcome.stderr
    (case,) = outcome.data["cases"]
    assert case["error"]["kind"] == "crash"
    assert "lost 4 times" in case["error"]["message"]
    assert "was killed (signal 9)" in case["error"]["message"]
    assert len(events(project, "trial_lost")) == 4


def test_a_worker_that_comes_later_gets_trials_too(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    only = cluster.start_worker("one")
    with project.start(*on(cluster)) as process:
        agent(tmp_path)
        only.send_signal(signal.SIGKILL)
        cluster.start_worker("two")
        stderr = process.communicate(timeout=GUARD_SECONDS)[1]
    assert process.returncode == 0, stderr
    assert "LOST   a  (worker tcp://" in stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_client_that_is_stopped_leaves_no_agent_and_the_run_can_go_on(
    project: Project, cluster: DaskCluster, tmp_path: Path, how: signal.Signals
) -> None:
    cluster.start_worker("one")
    cluster.start_worker("two")
    with project.start(*on(cluster)) as process:
        shell = agent(tmp_path)
        deadline = time.monotonic() + GUARD_SECONDS
        while not events(project, "trial_finished"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(how)
        process.wait(GUARD_SECONDS)
        wait_until_gone(shell)
    assert process.returncode == (130 if how == signal.SIGINT else -9)
    run = str(project.latest_run())
    there = ("--executor", "dask", "--scheduler", cluster.address)
    outcome = project.run("run", "--resume", run, *there, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(events(project, "trial_finished")) == 2


def test_a_run_goes_on_elsewhere_than_it_began(cluster: DaskCluster, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write({"eval.yaml": "name: x\n", "b.yaml": QUICK, "c.yaml": QUICK})
    project.write({"a.yaml": QUICK.replace("contains: ok", "contains: never")})
    cluster.start_worker("one")
    there = ("--executor", "dask", "--scheduler", cluster.address)
    for first, then in (((), there), (there, ())):
        begun = project.run("run", ".", "-j1", "--max-fail", "1", "--json", *first)
        assert [case["case_id"] for case in begun.data["cases"]] == ["a"], begun.stderr
        ended = project.run("run", "--resume", str(project.latest_run()), "--json", *then)
        assert [c["status"] for c in ended.data["cases"]] == ["FAIL", "PASS", "PASS"], ended.stderr
        assert len(events(project, "trial_finished")) == 3


@pytest.mark.parametrize("what", ["the scheduler", "all of it"])
def test_a_scheduler_that_goes_ends_the_run_in_a_bounded_time(
    project: Project, cluster: DaskCluster, tmp_path: Path, what: str
) -> None:
    cluster.start_worker("one")
    with project.start(*on(cluster)) as process:
        shell = agent(tmp_path)
        (cluster.close if what == "all of it" else cluster.kill_scheduler)()
        wait_until_gone(shell)
        stderr = process.communicate(timeout=2 * GUARD_SECONDS)[1]
    assert process.returncode == 3, stderr
    assert "the connection to the Dask scheduler broke" in stderr
    assert "--resume" in stderr
