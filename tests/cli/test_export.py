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


def test_a_workspace_goes_into_a_new_folder_only(held: Project) -> None:
    assert held.run("export", "r", "--format", "anthropic").exit_code == 0
    assert (held.root / "r/anthropic/benchmark.md").is_file()
    again = held.run("export", "r", "--format", "anthropic")
    assert again.exit_code == 2
    assert "r/anthropic: already there" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "--format", "anthropic"), "nowhere"),
        (("r",), "--format"),
        (("r", "--format", "pdf"), "anthropic"),
        (("r", "--format", "junit", "--out", "no/such/dir/x.xml"), "cannot write"),
        (("r", "--format", "anthropic", "--out", "s/c.yaml"), "already there"),
    ],
)
def test_wrong_use_is_told(held: Project, arguments: tuple[str, ...], said: str) -> None:
    outcome = held.run("export", *arguments)

    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_run_without_a_finished_trial_has_nothing_to_export(held: Project) -> None:
    for record in (held.root / "r/trials").rglob("record.json"):
        record.unlink()

    outcome = held.run("export", "r", "--format", "anthropic")

    assert outcome.exit_code == 2
    assert "none of its trials has a grade" in outcome.stderr


def test_a_benchmark_is_a_report_of_its_own(held: Project) -> None:
    assert held.run("report", "r", "--report", "benchmark").exit_code == 0
    data = json.loads((held.root / "r/benchmark.json").read_text("utf-8"))
    assert data["runs"][0]["configuration"] == "with_skill"
