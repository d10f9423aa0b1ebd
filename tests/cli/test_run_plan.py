"""Parts of a run that are made before and around its trials: plans, clusters, limits, time."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from skillup.app.interruption import milliseconds_of_starts, resume_command, run_stoppable
from skillup.app.planning import RunRequest, plan_of
from skillup.app.run_session import router_of
from skillup.errors import SkillupError
from skillup.judges.models import Models
from skillup.redaction.secrets import NO_SECRETS
from tests.support.project import Project

CASE = "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: y}]}"
SUITES = {
    "a/eval.yaml": "name: a\nbenchmark: {enabled: true}\ncases: {parallelism: 8}\n",
    "a/cases/a.yaml": CASE,
    "b/eval.yaml": "name: b\ncases: {parallelism: 3}\n",
    "b/cases/b.yaml": CASE,
    "c/eval.yaml": "name: c\ncases: {parallelism: 1}\n",
    "c/cases/c.yaml": CASE,
}


def request(root: Path, **options: object) -> RunRequest:
    return RunRequest(paths=(".",), directory=str(root), **options)  # type: ignore[arg-type]


def test_a_suites_baseline_is_its_own_and_the_smallest_parallelism_counts(project: Project) -> None:
    """F12: one suite's baseline was every suite's, and excluded suites counted."""
    project.write(SUITES)
    both = ["a/scripted/with_skill/1", "a/scripted/without_skill/1", "b/scripted/with_skill/1"]

    plan, parallel = plan_of(request(project.root, cases=("a", "b")))
    assert ([job.id for job in plan.jobs], parallel) == (both, 3)
    plan, parallel = plan_of(request(project.root, cases=("c",)))
    assert ([job.id for job in plan.jobs], parallel) == (["c/scripted/with_skill/1"], 1)
    plan, _ = plan_of(request(project.root, cases=("b",), baseline=True))
    assert [job.variant for job in plan.jobs] == ["with_skill", "without_skill"]


def test_a_judges_profile_is_that_of_its_own_suites_workspace(project: Project) -> None:
    """F17: it was looked for beside the first suite only."""
    case = CASE[:-1] + ", judge: {type: agent_judge, engine: reviewer, criteria: [It is so]}}"
    one = {"one/.git/HEAD": "", "one/eval.yaml": "name: one\n", "one/cases/a.yaml": CASE}
    two = {"two/.git/HEAD": "", "two/eval.yaml": "name: two\n", "two/cases/b.yaml": case}
    project.write({**one, **two, "two/engines/reviewer.yaml": "engine: scripted\n"})
    plan, _ = plan_of(RunRequest(paths=("one", "two"), directory=str(project.root)))
    environment = dict(os.environ)
    secrets = NO_SECRETS.also_of(environment)
    job = plan.jobs[1]
    desk = router_of(plan, project.root, Models(environment, secrets))
    problem = anyio.run(desk.problem, job.loaded.case, job.suite.root, "scripted")
    assert "there is no engine" not in (problem.message if problem else "")
    (project.root / "two/engines/reviewer.yaml").unlink()
    problem = anyio.run(desk.problem, job.loaded.case, job.suite.root, "scripted")
    assert "there is no engine `reviewer`" in (problem.message if problem else "")


def test_a_golden_file_that_an_agent_edits_is_for_later_trials_what_it_was(
    project: Project,
) -> None:
    """S8: the second trial passed by what the first one had made of the file."""
    golden = project.root / "golden.txt"
    project.write(
        {
            "eval.yaml": "name: s\n",
            "golden.txt": "right\n",
            "cases/a.yaml": f"""
                input: {{prompt: x}}
                assertions: [{{contains: done}}]
                scripted: [{{steps: [{{run: "echo wrong > '{golden}'"}}], say: done}}]
                """,
            "cases/b.yaml": """
                depends_on: [a]
                input: {prompt: x}
                assertions: [{golden_file: golden.txt}]
                scripted: [{say: wrong}]
                """,
        }
    )
    outcome = project.run("run", ".", "--json")
    assert golden.read_text() == "wrong\n"
    statuses = {case["case_id"]: case["status"] for case in outcome.data["cases"]}
    assert statuses == {"a": "PASS", "b": "FAIL"}


DASK = {"executor": "dask", "scheduler": "tcp://h:1"}
RESUME = "skillup run --resume '/runs/a night'"


@pytest.mark.parametrize(
    ("options", "index", "more"),
    [
        (DASK, None, "--executor dask --scheduler tcp://h:1"),
        ({}, "/var/runs of us.sqlite", "--index '/var/runs of us.sqlite'"),
        ({}, "postgresql://me:pa@ss@host/runs", "--index 'postgresql://me:***@host/runs'"),
    ],
)
def test_the_command_that_goes_on_says_where(
    options: dict[str, str], index: str | None, more: str
) -> None:
    command = resume_command(Path("/runs/a night"), request(Path(), **options), index)
    assert command == f"{RESUME} {more}"


def test_a_refusal_names_the_command_that_goes_on_and_a_defect_is_not_hidden() -> None:
    async def refuse() -> None:
        raise SkillupError("the disk is full", hint="make room")

    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(SkillupError) as raised:
        run_stoppable(refuse, lambda _: None, RESUME)
    assert raised.value.message == "the disk is full"
    assert raised.value.hint == f"make room; go on with: {RESUME}"
    with pytest.raises(ExceptionGroup) as defect:
        run_stoppable(fail, lambda _: None, RESUME)
    assert defect.group_contains(ZeroDivisionError)


def test_the_time_between_two_starts_does_not_count() -> None:
    events = [
        {"event": event, "time": f"2026-01-01T{time}Z"}
        for event, time in (
            ("run_created", "10:00:00.000"),
            ("trial_finished", "10:00:02.500"),
            ("run_reopened", "12:00:00.000"),
            ("result_written", "12:00:01.000"),
            ("run_reopened", "13:00:00.000"),
        )
    ]
    assert milliseconds_of_starts(events) == 3500


# `--executor dask`: what is not there.

SMALL = "input: {prompt: go}\nassertions: [{contains: ok}]\nscripted: [{say: ok}]\n"
NOWHERE = ("--executor", "dask", "--scheduler", "tcp://127.0.0.1:1")


@pytest.fixture
def small(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"eval.yaml": "name: x\n", "a.yaml": SMALL})


@pytest.mark.slow
def test_a_scheduler_that_nobody_runs_is_an_error_in_a_bounded_time(small: Project) -> None:
    # A word that is spared, as it is in the name of the folder, keeps no run from a cluster.
    outcome = small.run("run", ".", *NOWHERE, env={"DB_PASSWORD": small.root.name})
    assert outcome.exit_code == 3
    assert "DB_PASSWORD holds an ordinary word" in outcome.stderr
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in outcome.stderr


@pytest.mark.slow
def test_without_the_extra_it_says_how_to_install_it(small: Project) -> None:
    # As if it were not there.
    program = "import sys\nsys.modules['distributed'] = None\n"
    small.write({"without/sitecustomize.py": program})
    without = {"PYTHONPATH": str(small.root / "without")}
    outcome = small.run("run", ".", *NOWHERE, env=without)
    assert outcome.exit_code == 3
    assert "pip install 'skillup-eval[cluster]'" in outcome.stderr


def test_a_credential_in_an_option_is_not_sent(small: Project) -> None:
    options = (*NOWHERE, "--var", "key=sk-12345678")
    outcome = small.run("run", ".", *options, env={"LAB_API_KEY": "sk-12345678"})
    assert outcome.exit_code == 3
    assert "an option of the command holds a credential" in outcome.stderr
