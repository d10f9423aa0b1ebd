"""`skillup export`: where it writes, and what it refuses."""

from __future__ import annotations

import json
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


def test_a_variant_of_elsewhere_leads_nowhere_out_of_the_workspace(held: Project) -> None:
    (path,) = (held.root / "r/trials").rglob("grading.json")
    grade = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**grade, "variant": "../../../away"}), "utf-8")
    (held.root / "r/events.jsonl").unlink()  # it knows what the run has written

    outcome = held.run("export", "r", "--format", "anthropic", "--out", "ws")

    assert (outcome.exit_code, "none of its trials" in outcome.stderr) == (2, True)
    assert not (held.root / "away").exists()
