"""Trials that share turns are one task of a worker."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.dask_cluster import GUARD_SECONDS, DaskCluster, wait_for
from tests.support.project import Project

LEFT, RIGHT = "c/left/scripted/with_skill/1", "c/right/scripted/with_skill/1"
# The first time that the right path is held, its agent goes on for ever.
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
        steps: [{run: 'echo one >> "DIR/held"; echo made > made.txt'}]
        say: said
      - when: two
        steps: [{run: 'echo two >> "DIR/held"; cat made.txt'}]
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
# Trials that share their first turn, and fail in the second.
FAILING = """
    input: {turns: [one, two]}
    assertions: [{contains: said}]
    scripted:
      - {when: one, say: fine}
      - {when: two, steps: [{run: 'echo two >> "DIR/held"'}], say: bad}
    """
MADE = hashlib.sha256(b"made\n").hexdigest()
PRICED = "engine: scripted\nprices: {input: 1000, output: 1000}\n"  # 0.12 USD a turn


def on(cluster: DaskCluster, *more: str) -> tuple[str, ...]:
    return ("run", ".", "--executor", "dask", "--scheduler", cluster.address, "--json", *more)


def written(tmp_path: Path, case: str) -> Project:
    files = {"eval.yaml": "name: x\n", "c.yaml": case.replace("DIR", str(tmp_path))}
    return Project(tmp_path).write({**files, "engines/priced.yaml": PRICED})


def events(project: Project, kind: str) -> list[dict[str, Any]]:
    return [event for event in project.journal() if event["event"] == kind]


def held(tmp_path: Path) -> Counter[str]:
    return Counter((tmp_path / "held").read_text().split())


@pytest.mark.parametrize("victim", ["worker", "process"])
def test_trials_that_share_turns_are_run_again_together_when_their_worker_is_lost(
    cluster: DaskCluster, tmp_path: Path, victim: str
) -> None:
    project = written(tmp_path, PARTS)
    workers = [cluster.start_worker(name).pid for name in ("one", "two")]
    with project.start(*on(cluster)) as process:
        wait_for(tmp_path / "pid")
        shell = psutil.Process(int((tmp_path / "pid").read_text()))
        ancestors = [ancestor.pid for ancestor in shell.parents()]
        (place,) = [n for n, ancestor in enumerate(ancestors) if ancestor in workers]
        os.kill(ancestors[place if victim == "worker" else place - 1], signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, stderr
    assert [case["status"] for case in json.loads(stdout)["cases"]] == ["PASS", "PASS"]
    assert held(tmp_path)["one"] == 2
    assert {event["job"] for event in events(project, "trial_lost")} == {LEFT, RIGHT}
    assert sorted(event["job"] for event in events(project, "trial_finished")) == [LEFT, RIGHT]
    left, right = project.record(LEFT), project.record(RIGHT)
    assert [turn.get("held_by") for turn in left["turns"]] == [None, None]
    assert [turn.get("held_by") for turn in right["turns"]] == [LEFT, None]
    for record in (left, right):
        assert [turn["response"] for turn in record["turns"]] == ["said", "said"]
        assert record["turns"][0]["files_changed"]["made.txt"]["sha256"] == MADE


def test_shared_turns_count_once_in_budgets_when_the_trials_have_ended(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    project = written(tmp_path, FAILING)
    project.write({"d.yaml": FAILING.replace("DIR", str(tmp_path))})
    cluster.start_worker("one")
    shared = ("--trials", "2", "--trials-from-turn", "2", "-e", "priced")
    # A family has three turns of 0.12 USD: a budget stops nothing in its midst.
    outcome = project.run(*on(cluster, *shared, "--max-cost-usd", "0.3"))
    assert outcome.data["stopped"]["kind"] == "max_cost_usd", outcome.stderr
    assert [case["case_id"] for case in outcome.data["cases"]] == ["c", "c"]
    assert "0.36" in outcome.data["stopped"]["message"]
    (noted,) = events(project, "turns_shared")
    assert len(noted["jobs"]) == 2
    assert [turn["turn_number"] for turn in noted["turns"]] == [1]
