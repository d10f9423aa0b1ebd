"""Trials on a cluster: as a run here, and whoever goes: none is lost, and none is there twice."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from distributed import Client

from skillup.engines.events import words
from tests.support.dask_cluster import DaskCluster
from tests.support.differences import differences
from tests.support.exported import exported
from tests.support.project import GUARD_SECONDS, Project, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler; the test starts the workers."""
    running = DaskCluster(tmp_path / "cluster")
    try:
        yield running
    finally:
        running.close()


FILES = {
    "elsewhere/skills/near/SKILL.md": "---\nname: near\ndescription: Near.\n---\nDo it.\n",
    "elsewhere/logs/data/one.log": "one\n",
    "elsewhere/answer.txt": "fine",
    "work/suite/eval.yaml": """
        name: demo
        skills: [{path: skills/own}]
        distractors: [../../elsewhere/skills/near]
        judge: {model: "scripted:judges/judge.yaml"}
        environment: {env: {SEEN: "${LAB_TOKEN}"}}
        cases:
          retry_policy: {max_retries: 1, retry_on: [crash]}
        """,
    "work/suite/skills/own/SKILL.md": "---\nname: own\ndescription: Own.\n---\nDo it.\n",
    "work/suite/judges/judge.yaml": """
        rules:
          - when: is polite
            answer: {verdicts: [{id: c1, verdict: pass, reason: It is., quote: please}]}
        """,
    "work/suite/scripts/check.sh": "#!/bin/sh\nexit 0\n",
    "work/suite/cases/passes.yaml": """
        context: {fixture: ../../elsewhere/logs}
        collect_artifacts: ["made.txt"]
        input:
          turns:
            - content: make it
              capture: [{variable: n, pattern: '(\\d+) made'}]
            - content: now <<n>>
              assertions: [is polite]
        assertions:
          - files_exist: [made.txt, data/one.log]
          - skill_used: own
          - script: {path: scripts/check.sh}
        scripted:
          - steps:
              - {skill: own}
              - {write: {path: made.txt, content: "x"}}
              - {run: 'echo "it is $SEEN"'}
            say: 3 made
          - say: "yes please"
        """,
    "work/suite/cases/fails.yaml": """
        input: {prompt: hi}
        assertions: [{contains: never}]
        scripted: [{say: no}]
        """,
    "work/suite/cases/follows.yaml": """
        depends_on: [fails]
        input: {prompt: hi}
        assertions: [{contains: no}]
        scripted: [{say: no}]
        """,
    "work/suite/cases/crashes.yaml": """
        input: {prompt: hi}
        assertions: [{contains: no}]
        scripted: [{misbehave: {exit_code: 7}, say: no}]
        """,
    "work/suite/cases/refused.yaml": """
        input: {turns: [one, two]}
        assertions: [{golden_file: ../../elsewhere/answer.txt}]
        scripted: [{turn: 1, say: fine, misbehave: {error: overloaded, times: 1}}, {say: fine}]
        """,
    "work/suite/cases/parts.yaml": """
        input:
          turns:
            - content: one
              branches:
                - {name: left, turns: [two]}
                - {name: right, turns: [three]}
        assertions: [{contains: said}]
        scripted: [{when: two, steps: [{delay: 0.5}], say: said}, {say: said}]
        """,
}
# Of `version`: the client has no CLI to ask. Of `answers`: the keys of written-down judges name
# the place of their suite.
ELSEWHERE = words("answers argv asked_for prefix_bytes version")


def files_of(run: Path) -> dict[str, str | None]:
    """The files of an exported run, and what its trials made."""
    folders = [folder for name in ("trials", "blobs", "judge-answers") for folder in run.glob(name)]
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    names = {file.relative_to(run).as_posix(): file for file in files}
    return {name: file.read_text() if "/files/" in name else None for name, file in names.items()}


def test_records_grades_files_and_answers_are_those_of_a_local_run(
    project: Project, cluster: DaskCluster
) -> None:
    """S10: a worker refused what leads out of the suite's own folder; secrets stay masked."""
    project.write(FILES)
    for name in ("one", "two"):
        cluster.start_worker(name, env={"LAB_TOKEN": "sk-of-the-worker"})
    (project.root / "work/suite/scripts/check.sh").chmod(0o755)

    env = {"LAB_TOKEN": "sk-of-the-client"}
    here = project.run("run", "work/suite", "--out", "here", "--json", env=env)
    there = ("--executor", "dask", "--scheduler", cluster.address)
    away = project.run("run", "work/suite", "--out", "away", "--json", "-v", *there, env=env)

    assert (away.exit_code, here.exit_code) == (3, 3), away.stderr + here.stderr
    assert differences(project.root / "here", project.root / "away", ELSEWHERE) == ""
    statuses = {c["case_id"]: c["status"] for c in here.data["cases"]}
    others = {"fails": "FAIL", "follows": "SKIP", "crashes": "ERROR"}
    names = ("passes", "refused", "parts/left", "parts/right")
    assert statuses == {**others, **dict.fromkeys(names, "PASS")}
    of_away = exported(project.root / "away")
    written = files_of(exported(project.root / "here"))
    assert files_of(of_away) == written
    kinds = ["crashes/scripted/with_skill/1/attempt-1.json", "blobs/", "judge-answers/"]
    kinds.append("passes/scripted/with_skill/1/files/made.txt")
    assert [k for k in kinds if not any(k in name for name in written)] == []
    with Client(cluster.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        assert [topic for topic in client.get_events() if "skillup" in topic] == []  # F15
    assert str(cluster.root) not in (project.root / "away" / "result.json").read_text()
    # Nothing stays behind at the cluster.
    assert [p for p in (cluster.root / "tmp").iterdir() if p.name.startswith("skillup")] == []
    files = [f.read_bytes() for f in of_away.rglob("*") if f.is_file()]
    assert any(b"it is ***LAB_TOKEN***" in content for content in files)
    logs = "".join(cluster.log(name) for name in ("one", "two", "scheduler"))
    for secret in ("sk-of-the-worker", "sk-of-the-client"):
        assert not any(secret.encode() in content for content in files)
        assert secret not in away.stderr + logs
    again = project.run("judge", "away", "--json").data
    assert not [case for case in again["cases"] if case.get("changed")]


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
    wait_until((tmp_path / "pid").exists)
    return int((tmp_path / "pid").read_text())


def worker_and_unit_of(pid: int, workers: list[int]) -> tuple[int, int]:
    """The worker that the process descends from, and the process in between that runs the unit."""
    ancestors = [process.pid for process in psutil.Process(pid).parents()]
    (place,) = [n for n, ancestor in enumerate(ancestors) if ancestor in workers]
    return ancestors[place], ancestors[place - 1]


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
        wait_until(lambda: not psutil.pid_exists(shell))
        stdout, stderr = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, stderr
    result = json.loads(stdout)
    assert [case["status"] for case in result["cases"]] == ["PASS"] * 3
    assert (tmp_path / "log").read_text().split().count("one") == 2
    finished = Counter(event["job"] for event in project.journal("trial_finished"))
    assert finished == {LEFT: 1, RIGHT: 1, "b/scripted/with_skill/1": 1}
    left, right = project.record(LEFT), project.record(RIGHT)
    assert [turn.get("counted_by") for turn in left["turns"]] == [None, None]
    assert [turn.get("counted_by") for turn in right["turns"]] == [LEFT, None]
    for record in (left, right):
        assert [turn["response"] for turn in record["turns"]] == ["said", "said"]
        assert record["turns"][0]["files_changed"]["made.txt"]["sha256"] == MADE


def test_a_client_that_is_killed_leaves_no_agent_and_the_run_can_go_on(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    cluster.start_worker("one")
    cluster.start_worker("two")
    with project.start(*on(cluster)) as process:
        shell = agent(tmp_path)
        wait_until(lambda: project.journal("trial_finished"))
        process.kill()
        process.wait(GUARD_SECONDS)
        wait_until(lambda: not psutil.pid_exists(shell))
    run = str(project.latest_run())
    there = ("--executor", "dask", "--scheduler", cluster.address)
    outcome = project.run("run", "--resume", run, *there, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(project.journal("trial_finished")) == 2


def test_when_a_case_is_decided_is_known_to_the_client_alone(
    project: Project, cluster: DaskCluster
) -> None:
    project.write({"a.yaml": QUICK})
    cluster.start_worker("one")
    until = ("--trials", "2", "--until-decided", "--pass-rate", "0.5", "--json")
    outcome = project.run(*on(cluster, *until))
    assert (outcome.exit_code, len(outcome.data["cases"])) == (0, 4), outcome.stderr


def test_a_scheduler_that_goes_ends_the_run_in_a_bounded_time(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    cluster.start_worker("one")
    with project.start(*on(cluster)) as process:
        shell = agent(tmp_path)
        cluster.kill_scheduler()
        wait_until(lambda: not psutil.pid_exists(shell))
        stderr = process.communicate(timeout=2 * GUARD_SECONDS)[1]
    assert process.returncode == 3, stderr
    assert "the connection to the Dask scheduler broke" in stderr
    assert "--resume" in stderr


CASE = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted: [{steps: [{run: "STEP"}], say: ok}]
    """


def test_what_an_agent_changes_on_a_worker_judges_no_trial_and_who_kills_it_is_an_error(
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
            "c.yaml": CASE.replace("STEP", "kill -9 $(ps -o ppid= -p $PPID)"),
        }
    )
    cluster.start_worker("one")
    outcome = project.run(*on(cluster, "--json", "-j1"))
    assert outcome.exit_code == 3, outcome.stderr
    statuses = [case["status"] for case in outcome.data["cases"]]
    assert statuses == ["PASS", "FAIL", "ERROR"], outcome.stderr
    assert (tmp_path / "edited").exists()
    error = outcome.data["cases"][2]["error"]
    assert error["kind"] == "crash"
    assert "skillup ended with -9 on tcp://" in error["message"]


def test_a_worker_with_another_skillup_ends_the_run_before_a_trial_begins(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(__file__).parents[2] / "skillup", other / "skillup", ignore=ignored)
    (other / "skillup" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    cluster.start_worker("other", env={"PYTHONPATH": str(other)})
    refused = project.run(*on(cluster))
    assert refused.exit_code == 3
    assert re.search(r"worker tcp://127.0.0.1:\d+ has skillup 0.0.1, not ", refused.stderr)
    assert not project.journal("trial_finished")
