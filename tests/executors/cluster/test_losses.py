"""Workers, clients and schedulers that go: no finished trial is lost, and none is there twice."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.dask_cluster import GUARD_SECONDS, DaskCluster, wait_for, wait_until_gone
from tests.support.project import Project

pytestmark = pytest.mark.slow

# The first time it runs, its agent goes on for ever; the next time it answers at once.
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
    """The worker that the process descends from, and the process in between that runs the unit."""
    ancestors = [process.pid for process in psutil.Process(pid).parents()]
    (place,) = [n for n, ancestor in enumerate(ancestors) if ancestor in workers]
    return ancestors[place], ancestors[place - 1]


def events(project: Project, kind: str) -> list[Any]:
    return [event for event in project.journal() if event["event"] == kind]


LEFT, RIGHT = "c/left/scripted/with_skill/1", "c/right/scripted/with_skill/1"
# The first time that the right path runs, its agent goes on for ever.
PARTS = """
    input:
      turns:
        - content: one
          branches:
            - {name: left, turns: [two]}
            - {name: right, turns: [three]}
    assertions: [{contains: said}]
    scripted:
      - when: one
        steps: [{run: 'echo one >> "DIR/log"; echo made > made.txt'}]
        say: said
      - when: two
        steps: [{run: 'cat made.txt'}]
        say: said
      - when: three
        steps:
          - run: |
              cat made.txt
              test -e "DIR/pid" && exit
              echo $$ > "DIR/new" && mv "DIR/new" "DIR/pid"
              sleep 600
        say: said
    """
MADE = hashlib.sha256(b"made\n").hexdigest()


def test_trials_whose_worker_is_killed_run_again_together_on_one_that_comes_later(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    project.write({"eval.yaml": "name: x\n", "c.yaml": PARTS.replace("DIR", str(tmp_path))})
    project.write({"b.yaml": QUICK})
    workers = [cluster.start_worker("one").pid]
    with project.start(*on(cluster, "--json", "-j1")) as process:
        shell = agent(tmp_path)
        worker, unit = worker_and_unit_of(shell, workers)
        os.kill(unit, signal.SIGSTOP)  # or it might see its worker go
        os.kill(worker, signal.SIGKILL)
        os.kill(unit, signal.SIGKILL)
        cluster.start_worker("again")
        # Its agents are ended by whoever comes next on that machine.
        wait_until_gone(shell)
        stdout, stderr = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, stderr
    result = json.loads(stdout)
    assert [case["status"] for case in result["cases"]] == ["PASS"] * 3
    assert (tmp_path / "log").read_text().split().count("one") == 2
    finished = Counter(event["job"] for event in events(project, "trial_finished"))
    assert finished == {LEFT: 1, RIGHT: 1, "b/scripted/with_skill/1": 1}
    left, right = project.record(LEFT), project.record(RIGHT)
    assert [turn.get("counted_by") for turn in left["turns"]] == [None, None]
    assert [turn.get("counted_by") for turn in right["turns"]] == [LEFT, None]
    for record in (left, right):
        assert [turn["response"] for turn in record["turns"]] == ["said", "said"]
        assert record["turns"][0]["files_changed"]["made.txt"]["sha256"] == MADE


def test_a_trial_that_kills_who_runs_it_is_an_error_in_the_end(
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
    assert "skillup ended with -9 on tcp://" in case["error"]["message"]


def test_a_client_that_is_killed_leaves_no_agent_and_the_run_can_go_on(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    cluster.start_worker("one")
    cluster.start_worker("two")
    with project.start(*on(cluster)) as process:
        shell = agent(tmp_path)
        deadline = time.monotonic() + GUARD_SECONDS
        while not events(project, "trial_finished"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
        process.wait(GUARD_SECONDS)
        wait_until_gone(shell)
    run = str(project.latest_run())
    there = ("--executor", "dask", "--scheduler", cluster.address)
    outcome = project.run("run", "--resume", run, *there, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(events(project, "trial_finished")) == 2


def test_a_scheduler_that_goes_ends_the_run_in_a_bounded_time(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    cluster.start_worker("one")
    with project.start(*on(cluster)) as process:
        shell = agent(tmp_path)
        cluster.kill_scheduler()
        wait_until_gone(shell)
        stderr = process.communicate(timeout=2 * GUARD_SECONDS)[1]
    assert process.returncode == 3, stderr
    assert "the connection to the Dask scheduler broke" in stderr
    assert "--resume" in stderr


CASE = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted: [{steps: [{run: "STEP"}], say: ok}]
    """


def test_what_an_agent_changes_on_a_worker_judges_no_trial_there(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    """S8: an earlier trial had edited the golden file, and the case, that the next one met."""
    project, place = Project(tmp_path), cluster.root / "one"  # Dask's local directory
    edit = (
        f"for d in $(find '{place}' -name golden.txt -printf '%h '); do echo wrong > $d/golden.txt;"
        f" sed -i 's/golden_file.*}}/contains: wrong}}/' $d/b.yaml; touch '{tmp_path}/edited'; done"
    )
    project.write(
        {
            "eval.yaml": "name: x\n",
            "golden.txt": "right\n",
            "a.yaml": CASE.replace('"STEP"', json.dumps(edit)),
            "b.yaml": """
                depends_on: [a]
                input: {prompt: go}
                assertions: [{golden_file: golden.txt}]
                scripted: [{say: wrong}]
                """,
        }
    )
    cluster.start_worker("one")
    outcome = project.run(*on(cluster, "--json", "-j1"))
    first, second = outcome.data["cases"]
    assert (first["status"], second["status"]) == ("PASS", "FAIL"), outcome.stderr
    assert (tmp_path / "edited").exists()


def test_a_worker_with_another_skillup_ends_the_run_before_a_trial_begins(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(__file__).parents[3] / "skillup", other / "skillup", ignore=ignored)
    (other / "skillup" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    cluster.start_worker("other", env={"PYTHONPATH": str(other)})
    refused = project.run(*on(cluster))
    assert refused.exit_code == 3
    assert re.search(r"worker tcp://127.0.0.1:\d+ has skillup 0.0.1, not ", refused.stderr)
    assert not events(project, "trial_finished")
