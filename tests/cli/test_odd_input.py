"""Whatever is given, the answer is a message and exit code 2: never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import Outcome, Project

SUITE = {
    "s/eval.yaml": "name: s\n",
    "s/a.yaml": "input: {prompt: x}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n",
}


def refused(outcome: Outcome) -> str:
    """The message; checks that it is a message, and nothing more."""
    assert outcome.exit_code == 2, outcome.stderr
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert "itself failed" not in outcome.stderr
    return outcome.stderr


@pytest.mark.parametrize("verb", ["run", "validate"])
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere", "no such file or folder"),
        ("s/notes.txt", "not a YAML file"),
        ("folder", "no eval.yaml in it or below it"),
        ("binary/eval.yaml", "UTF-8"),
        ("nul/eval.yaml", "#x0000"),
        ("loop/eval.yaml", ""),
        ("pipe/eval.yaml", ""),
    ],
)
def test_a_path_that_is_no_suite(project: Project, verb: str, path: str, said: str) -> None:
    project.write({**SUITE, "s/notes.txt": "x", "nul/eval.yaml": "a: \0\n"})
    for name in ("folder/eval.yaml", "binary", "loop", "pipe"):
        (project.root / name).mkdir(parents=True)
    (project.root / "binary/eval.yaml").write_bytes(Path(sys.executable).read_bytes()[:4096])
    (project.root / "loop/eval.yaml").symlink_to("eval.yaml")
    os.mkfifo(project.root / "pipe/eval.yaml")
    assert said in refused(project.run(verb, path))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "full"], "is not empty"),
        (["--out", "full/file"], "full/file"),
        (["--resume", "nowhere"], "there is no run nowhere"),
        (["--resume", "full"], "is no run directory"),
        (["--resume", "other"], "written by another version"),
        (["--resume", "full", "s"], "--resume goes on with what the run was asked to do"),
        (["--var", "novalue"], "not NAME=VALUE"),
        (["-j", "0"], "--parallel"),
        (["--engine", "nope"], "there is no engine `nope`"),
        (["--engine", "scripted", "--engine", "scripted"], "given twice"),
        (["-k", "zzz"], "no case matches the selection"),
    ],
)
def test_an_option_that_cannot_be(project: Project, arguments: list[str], said: str) -> None:
    project.write(
        {
            **SUITE,
            "full/file": "x",
            "other/run.json": '{"schema_version": "x", "run_id": "r", "request": {"bogus": 1}}',
        }
    )
    given = [] if "--resume" in arguments else ["s"]
    assert said in refused(project.run("run", *given, *arguments))
    assert not (project.root / ".skillup").exists(), "nothing is begun"


@pytest.mark.parametrize("verb", ["run .", "doctor"])
def test_a_current_directory_that_was_deleted_is_said(project: Project, verb: str) -> None:
    """S13."""
    script = f"mkdir gone && cd gone && rmdir ../gone && exec {sys.executable} -m skillup {verb}"
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    said = refused(Outcome(done.returncode, done.stdout, done.stderr))
    assert "current directory" in said
