"""`--resume` after the suite's files have changed: the run stays what it was asked to be."""

from __future__ import annotations

import pytest

from tests.support.project import Project

PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")


@pytest.fixture
def stopped(project: Project) -> Project:
    """Of three cases, one passed, one failed and one was not run."""
    files = {"eval.yaml": "name: d\n", "a.yaml": PASS, "b.yaml": FAIL, "c.yaml": PASS}
    project.write(files)
    outcome = project.run("run", ".", "--out", "out", "-j", "1", "--max-fail", "1")
    assert outcome.exit_code == 1
    return project


def test_a_case_that_failed_cannot_be_lost_by_removing_its_file(stopped: Project) -> None:
    result = (stopped.root / "out/result.json").read_bytes()
    (stopped.root / "b.yaml").unlink()
    outcome = stopped.run("run", "--resume", "out")
    assert outcome.exit_code == 2
    assert "there no longer: 1 trial (b/scripted/with_skill/1)" in outcome.stderr
    assert "start a new run" in outcome.stderr
    assert (stopped.root / "out/result.json").read_bytes() == result


def test_cases_that_are_new_are_not_slipped_in(stopped: Project) -> None:
    stopped.write({"z.yaml": PASS})
    outcome = stopped.run("run", "--resume", "out")
    assert outcome.exit_code == 2
    assert "new: 1 trial (z/scripted/with_skill/1)" in outcome.stderr


def test_a_case_that_was_not_held_yet_may_be_mended(stopped: Project) -> None:
    stopped.write({"c.yaml": PASS.replace("prompt: hi", "prompt: hello")})
    outcome = stopped.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 1
    assert [case["status"] for case in outcome.data["cases"]] == ["PASS", "FAIL", "PASS"]
