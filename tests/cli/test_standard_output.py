"""A stdout that cannot be written: the user's disk, and no defect of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import GUARD_SECONDS, Project

FULL = Path("/dev/full")  # every write to it finds the disk full

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def into_full_disk(project: Project, *arguments: str, err: bool = True) -> tuple[int, str]:
    """`skillup ARGUMENTS >/dev/full`: the exit code, and stderr; not `err`: that is full, too."""
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "skillup", *arguments],
            cwd=project.root,
            env=project.environment({"TMPDIR": str(project.root)}),
            stdout=full,
            stderr=subprocess.PIPE if err else full,
            timeout=GUARD_SECONDS,
            check=False,
        )
    return done.returncode, (done.stderr or b"").decode()


@pytest.mark.indexed
@pytest.mark.parametrize("verb", [["compare"], ["compare", "--json"], ["trends"]])
def test_verbs_about_past_runs(project: Project, verb: list[str]) -> None:
    case = "{input: {prompt: x}, assertions: [{contains: y}], scripted: [{say: y}]}"
    project.write({"eval.yaml": "name: demo", "cases/a.yaml": case})
    for _ in range(2):
        project.run("run", ".")
    assert into_full_disk(project, *verb) == (
        3,
        "error: cannot write to stdout: No space left on device\n",
    )


@pytest.mark.parametrize("arguments", [["schema", "suite"], ["schema", "profile"], ["--help"]])
def test_more_and_less_than_a_buffer_holds(project: Project, arguments: list[str]) -> None:
    told = (3, "error: cannot write to stdout: No space left on device\n")
    assert into_full_disk(project, *arguments) == told
    assert not list(project.root.glob("skillup-error-*"))


def test_where_nobody_can_be_told_the_exit_code_says_it(project: Project) -> None:
    assert into_full_disk(project, "schema", "suite", err=False)[0] == 3
