"""`--executor` and `--scheduler`: what does not go together, and what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project

CASE = "input: {prompt: go}\nassertions: [{contains: ok}]\nscripted: [{say: ok}]\n"
NOWHERE = ("--executor", "dask", "--scheduler", "tcp://127.0.0.1:1")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"eval.yaml": "name: x\n", "a.yaml": CASE})


@pytest.mark.slow
def test_a_scheduler_that_nobody_runs_is_an_error_in_a_bounded_time(project: Project) -> None:
    # A word that is spared, as it is in the name of the folder, keeps no run from a cluster.
    outcome = project.run("run", ".", *NOWHERE, env={"DB_PASSWORD": project.root.name})
    assert outcome.exit_code == 3
    assert "DB_PASSWORD holds an ordinary word" in outcome.stderr
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in outcome.stderr


@pytest.mark.slow
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
    outcome = project.run("run", ".", *NOWHERE, env=without)
    assert outcome.exit_code == 3
    assert "pip install 'skillup-eval[cluster]'" in outcome.stderr


def test_a_credential_in_an_option_is_not_sent(project: Project) -> None:
    options = (*NOWHERE, "--var", "key=sk-12345678")
    outcome = project.run("run", ".", *options, env={"LAB_API_KEY": "sk-12345678"})
    assert outcome.exit_code == 3
    assert "an option of the command holds a credential" in outcome.stderr
