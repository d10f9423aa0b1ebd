"""Several engines in one run: side by side, and none in the way of another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import Project

CASE = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"


@pytest.fixture
def suite(project: Project) -> Project:
    """Three cases, two engines that work and one whose program is nowhere."""
    cases = {f"c{n}.yaml": CASE for n in range(3)}
    return project.write(
        {
            "eval.yaml": "name: d\n",
            **cases,
            "engines/one.yaml": "engine: scripted\n",
            "engines/two.yaml": "engine: scripted\n",
            "engines/gone.yaml": "engine: scripted\ncommand: no-such-agent\n",
        }
    )


def by_engine(result: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for case in result["cases"]:
        found.setdefault(case["engine"], []).append(case["status"])
    return found


def test_every_case_is_held_by_every_engine(suite: Project) -> None:
    outcome = suite.run("run", ".", "-e", "one", "-e", "two", "--trials", "2", "--json")
    assert outcome.exit_code == 0
    assert by_engine(outcome.data) == {"one": ["PASS"] * 6, "two": ["PASS"] * 6}
    columns = {column["engine"]: column["rate"] for column in outcome.data["analysis"]["engines"]}
    assert {name: rate["passed"] for name, rate in columns.items()} == {"one": 6, "two": 6}


def test_what_depends_on_a_case_depends_on_it_on_the_same_engine(suite: Project) -> None:
    suite.write({"d.yaml": "depends_on: [c0]\n" + CASE})
    outcome = suite.run("run", ".", "-e", "gone", "-e", "one", "--json")
    statuses = {c["engine"]: c["status"] for c in outcome.data["cases"] if c["case_id"] == "d"}
    assert statuses == {"gone": "SKIP", "one": "PASS"}
