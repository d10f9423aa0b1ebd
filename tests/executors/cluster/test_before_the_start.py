"""What is found out before any trial starts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.dask_cluster import DaskCluster
from tests.support.project import Project

CASE = "input: {prompt: go}\nassertions: [{contains: ok}]\nscripted: [{say: ok}]\n"
# A CLI that only some of the workers have: it tells its version, which is all that is asked here.
CLI = "#!/bin/sh\necho '9.9.9 (Claude Code)'\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"eval.yaml": "name: x\n", "a.yaml": CASE})


def folder_with(tmp_path: Path, program: str) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / program).write_text(CLI)
    (folder / program).chmod(0o755)
    return str(folder)


def test_workers_without_the_cli_get_no_trials(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    path = os.pathsep.join((folder_with(tmp_path, "agent-cli"), os.environ["PATH"]))
    project.write(
        {
            "engines/lab.yaml": "engine: claude_code\ncommand: agent-cli\n",
            "cases/eval.yaml": "name: x\nengine: lab\n",
            # Nobody is asked for what is recorded already, so no agent is needed to pass.
            "cases/a.yaml": """
                input:
                  transcript: [{role: user, content: hi}, {role: assistant, content: ok}]
                assertions: [{contains: ok}]
                """,
        }
    )
    cluster.start_worker("without")
    there = ("--executor", "dask", "--scheduler", cluster.address)

    refused = project.run("run", "cases", *there)
    assert refused.exit_code == 3
    assert "no worker can run these trials: tcp://127.0.0.1:" in refused.stderr
    assert "there is no program `agent-cli`" in refused.stderr
    assert "trial_started" not in {event["event"] for event in project.journal()}

    cluster.start_worker("with", env={"PATH": path, "ANTHROPIC_API_KEY": "sk-lab"})
    outcome = project.run("run", "cases", *there)
    assert "it gets no trials" in outcome.stderr
    assert outcome.exit_code == 0, outcome.stderr


def test_workers_have_the_files_of_the_repository_that_a_suite_lies_in(
    project: Project, cluster: DaskCluster
) -> None:
    """S10: a worker has no `.git`, and refused what leads out of the suite's own folder."""
    project.write(
        {
            ".git/HEAD": "",
            "shared/answer.txt": "ok",
            "skills/a/eval.yaml": "name: x\n",
            "skills/a/a.yaml": f"{CASE}judge:\n  type: rule_based\n"
            "  success: [{golden_file: ../../shared/answer.txt}]\n",
        }
    )
    cluster.start_worker("one")
    there = ("--executor", "dask", "--scheduler", cluster.address)
    outcome = project.run("run", ".", *there, cwd="skills/a")
    assert outcome.exit_code == 0, outcome.stderr


def test_a_worker_with_another_skillup_gets_no_trials(
    project: Project, cluster: DaskCluster, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(
        Path(__file__).parents[3] / "skillup",
        other / "skillup",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (other / "skillup" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    cluster.start_worker("other", env={"PYTHONPATH": str(other)})
    outcome = project.run("run", ".", "--executor", "dask", "--scheduler", cluster.address)
    assert outcome.exit_code == 3
    assert "it has skillup 0.0.1, not " in outcome.stderr


def test_secrets_of_a_worker_are_masked_and_those_of_the_client_stay_there(
    project: Project, cluster: DaskCluster
) -> None:
    project.write(
        {
            "eval.yaml": 'name: x\nenvironment: {env: {SEEN: "${LAB_TOKEN}"}}\n',
            "a.yaml": """
                input: {prompt: go}
                assertions: [{contains: ok}]
                scripted: [{steps: [{run: 'echo "it is $SEEN"'}], say: ok}]
                """,
        }
    )
    cluster.start_worker("one", env={"LAB_TOKEN": "sk-of-the-worker"})
    there = ("--executor", "dask", "--scheduler", cluster.address)
    outcome = project.run("run", ".", *there, "-v", env={"LAB_TOKEN": "sk-of-the-client"})
    assert outcome.exit_code == 0, outcome.stderr
    written = [f.read_bytes() for f in project.latest_run().rglob("*") if f.is_file()]
    assert any(b"it is ***LAB_TOKEN***" in content for content in written)
    for secret in ("sk-of-the-worker", "sk-of-the-client"):
        assert not any(secret.encode() in content for content in written)
        assert secret not in outcome.stderr + cluster.log("one") + cluster.log("scheduler")
