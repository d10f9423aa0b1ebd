"""`skillup export`: where it writes, and what it refuses."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.project import Project

SUITE = {
    "s/eval.yaml": "name: s\n",
    "s/c.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
}


@pytest.fixture
def held(tmp_path: Path) -> Project:
    project = Project(tmp_path).write(SUITE)
    assert project.run("run", "s", "--out", "r").exit_code == 0
    return project


def test_files_go_to_stdout_or_to_a_new_file(held: Project) -> None:
    assert json.loads(held.run("export", "r", "--format", "json").stdout)["summary"]["pass"] == 1
    assert ET.fromstring(held.run("export", "r", "--format", "junit").stdout).tag == "testsuites"
    assert held.run("export", "r", "--format", "markdown", "--out", "a.md").exit_code == 0
    assert (held.root / "a.md").read_text("utf-8").startswith("# skillup: 1 of 1 passed")
    again = held.run("export", "r", "--format", "markdown", "--out", "a.md")
    assert (again.exit_code, "a.md: already there" in again.stderr) == (2, True)


def test_a_variant_of_elsewhere_leads_nowhere_out_of_the_workspace(held: Project) -> None:
    (path,) = (held.root / "r/trials").rglob("grading.json")
    grade = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**grade, "variant": "../../../away"}), "utf-8")
    (held.root / "r/events.jsonl").unlink()  # it knows what the run has written

    outcome = held.run("export", "r", "--format", "anthropic", "--out", "ws")

    assert (outcome.exit_code, "none of its trials" in outcome.stderr) == (2, True)
    assert not (held.root / "away").exists()


def test_of_a_run_that_was_killed_what_has_ended_is_exported(held: Project) -> None:
    held.write({"s/d.yaml": SUITE["s/c.yaml"]})
    assert held.run("run", "s", "--out", "killed", "-j", "1").exit_code == 0
    (held.root / "killed/result.json").unlink()
    (held.root / "killed/trials/d/scripted/with_skill/1/grading.json").unlink()

    outcome = held.run("export", "killed", "--format", "json")

    assert outcome.exit_code == 0, outcome.stderr
    data = json.loads(outcome.stdout)
    assert (data["summary"]["pass"], data["finished"]) == (1, False)
    assert data["not_run"] == ["d/scripted/with_skill/1"]
    assert data["analysis"]["overall"]["held"] == 1
    said = "killed has no result.json: it goes on, or was killed; 1 of 2 trials have no grade"
    assert said in outcome.stderr
    assert "skillup run --resume killed" in outcome.stderr
    (held.root / "killed/trials/c/scripted/with_skill/1/grading.json").unlink()
    nothing = held.run("export", "killed", "--format", "junit")
    assert (nothing.exit_code, nothing.stdout) == (2, "")
    assert "none of its trials has a grade" in nothing.stderr
    assert "skillup judge killed" in nothing.stderr
