"""`--executor` and `--scheduler`: what does not go together, and what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project

CASE = "input: {prompt: go}\nassertions: [{contains: ok}]\nscripted: [{say: ok}]\n"
DASK = ("--executor", "dask")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"eval.yaml": "name: x\n", "a.yaml": CASE})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--executor", "desk"), "known here: local, dask"),
        (("--executor", "slurm"), "known here: local, dask"),
        (DASK, "say where: --scheduler tcp://host:8786"),
        (("--scheduler", "tcp://host:1"), "is for --executor dask only"),
        ((*DASK, "--scheduler", "host:8786"), "no address of a Dask scheduler"),
        ((*DASK, "--scheduler", "tcp://host:port"), "no address of a Dask scheduler"),
        ((*DASK, "--scheduler", "tcp://h:1", "--keep-workspaces"), "workspaces are on the workers"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_made(
    project: Project, options: tuple[str, ...], said: str
) -> None:
    outcome = project.run("run", ".", *options)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert said in outcome.stderr
    assert not (project.root / ".skillup" / "runs").exists()


@pytest.mark.slow
def test_a_scheduler_that_nobody_runs_is_an_error_in_a_bounded_time(project: Project) -> None:
    outcome = project.run("run", ".", *DASK, "--scheduler", "tcp://127.0.0.1:1")
    assert outcome.exit_code == 3
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in outcome.stderr


def test_without_the_extra_it_says_how_to_install_it(project: Project) -> None:
    # As if it were not there: this comes before all other places that modules are looked for in.
    project.write(
        {
            "without/sitecustomize.py": """
                import sys
                class Nowhere:
                    def find_spec(self, name, path=None, target=None):
                        if name.partition(".")[0] in ("dask", "distributed"):
                            raise ModuleNotFoundError(name)
                sys.meta_path.insert(0, Nowhere())
                """
        }
    )
    without = {"PYTHONPATH": str(project.root / "without")}
    outcome = project.run("run", ".", *DASK, "--scheduler", "tcp://127.0.0.1:1", env=without)
    assert outcome.exit_code == 3
    assert "pip install 'skillup-eval[cluster]'" in outcome.stderr
    assert project.run("run", ".", env=without).exit_code == 0


@pytest.mark.slow
def test_a_word_that_is_spared_keeps_no_run_from_a_cluster(project: Project) -> None:
    options = (*DASK, "--scheduler", "tcp://127.0.0.1:1")
    outcome = project.run("run", ".", *options, env={"DB_PASSWORD": project.root.name})
    assert "DB_PASSWORD holds an ordinary word" in outcome.stderr
    assert "no Dask scheduler answers" in outcome.stderr


def test_a_credential_in_an_option_is_not_sent(project: Project) -> None:
    options = (*DASK, "--scheduler", "tcp://127.0.0.1:1", "--var", "key=sk-12345678")
    outcome = project.run("run", ".", *options, env={"LAB_API_KEY": "sk-12345678"})
    assert outcome.exit_code == 3
    assert "an option of the command holds a credential" in outcome.stderr
