"""`--baseline`: what fails without the skill is no failure of the skill."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.support.project import Project

SKILL = "---\nname: logs\ndescription: Cleans up logs.\n---\nAsk first.\n"
CASE = """
    input: {prompt: Delete the logs}
    assertions: [{contains: sure}]
    scripted:
      - {needs_skill: logs, say: Are you sure?}
      - {say: Deleted.}
    """


@pytest.fixture
def suite(project: Project) -> Project:
    """Two cases that only pass with the skill."""
    return project.write(
        {
            "eval.yaml": "name: demo\nskills: [{path: skills/logs}]\n",
            "skills/logs/SKILL.md": SKILL,
            "cases/a.yaml": CASE,
            "cases/b.yaml": CASE,
        }
    )


def test_the_counts_and_the_exit_code_are_those_with_the_skill(suite: Project) -> None:
    reports = ("--report", "junit,markdown")
    outcome = suite.run("run", ".", "--baseline", "--out", "out", "--json", *reports)

    assert outcome.exit_code == 0, outcome.stderr
    summary = outcome.data["summary"]
    assert (summary["total"], summary["pass"], summary["pass_rate"]) == (2, 2, 1.0)
    assert summary["baseline"] == {
        "total": 2, "pass": 0, "fail": 2, "error": 0, "skip": 0, "pass_rate": 0.0,
    }  # fmt: skip
    assert summary["usage"]["requests"] == 4  # sums are of all
    page = (suite.root / "out/summary.md").read_text("utf-8")
    assert page.startswith("# skillup: 2 of 2 passed; without the skill: 0 passed, 2 failed\n")
    assert "| of trials passed | without the skill |" in page
    assert "| 100% | 0% |" in page
    assert "## What did not pass" not in page
    tests = ET.parse(suite.root / "out/junit.xml").getroot()
    said = [skipped.get("message") for skipped in tests.iter("skipped")]
    assert said == ["without the skill: failed, which is no failure"] * 2
    assert list(tests.iter("failure")) == []


def test_an_untouched_suite_of_init_gains_nothing_by_its_skill(project: Project) -> None:
    """V17: that the skill is used, which it cannot be without it, is no gain."""
    project.write({"SKILL.md": SKILL})
    assert project.run("init").exit_code == 0
    outcome = project.run("run", ".", "--baseline", "--engine", "scripted", "--json")

    found = {item["case_id"]: item for item in outcome.data["analysis"]["uplift"]}
    assert outcome.exit_code == 0, outcome.stderr
    assert found[None]["uplift"] == 0
    assert found[None]["not_counted"] == ["uses-the-skill"]
