"""`--until-decided`: cases are repeated until their pass rate is surely above or below."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.project import Outcome, Project

PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")


def flips(rate: float) -> str:
    return PASS.replace("{say: fine}", f"{{say: fine, probability: {rate}}}, {{say: bad}}")


def run(project: Project, *arguments: str) -> Outcome:
    return project.run("run", ".", "--out", "out", "--until-decided", "--json", *arguments)


def decisions(outcome: Outcome) -> dict[str, tuple[str, int]]:
    """By case, what `result.json` says: the verdict, and after how many trials."""
    found = {case["case_id"]: case["decision"] for case in outcome.data["analysis"]["cases"]}
    return {case: (about["verdict"], about["trials"]) for case, about in found.items()}


def events(project: Project, kind: str) -> list[dict[str, Any]]:
    text = (project.root / "out/events.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()]
    return [event for event in found if event["event"] == kind]


@pytest.mark.slow
def test_clear_cases_are_decided_rightly_and_their_other_trials_are_saved(project: Project) -> None:
    project.write(
        {
            "eval.yaml": "name: d\n",
            "always.yaml": PASS,
            "mostly.yaml": flips(0.97),
            "never.yaml": FAIL,
            "seldom.yaml": flips(0.2),
        }
    )
    outcome = run(project, "--trials", "40", "--pass-rate", "0.7", "-j", "4")
    assert outcome.exit_code == 1
    found = decisions(outcome)
    sides = {case: side for case, (side, _) in found.items()}
    assert sides == {"always": "above", "mostly": "above", "never": "below", "seldom": "below"}
    assert found["always"] == ("above", 10)
    assert found["never"] == ("below", 3)
    ran, saved = len(outcome.data["cases"]), outcome.data["not_needed"]
    assert ran + len(saved) == 160
    # What the decisions took, and at most the trials that were running when one came.
    assert ran <= sum(trials for _, trials in found.values()) + 4 * 3
    assert outcome.data["not_run"] == []
    assert outcome.data["finished"] is True
    assert outcome.data["stopped"] is None
    told = {
        event["case"]: (event["verdict"], event["trials"])
        for event in events(project, "case_decided")
    }
    assert told == found


def test_a_run_decides_by_the_gate_it_began_with_whatever_the_suite_says_later(
    project: Project,
) -> None:
    project.write({"eval.yaml": "name: d\ngates: {min_pass_rate: 0.5}\n", "a.yaml": FAIL})
    run(project, "--trials", "20", "-j", "1", "--max-fail", "1")
    project.write({"eval.yaml": "name: d\ngates: {min_pass_rate: 0.9}\n"})
    outcome = project.run("run", "--resume", "out", "--json", "-j", "1")
    assert decisions(outcome) == {"a": ("below", 5)}  # with 0.9 it takes 2
    (case,) = outcome.data["analysis"]["cases"]
    assert case["decision"]["threshold"] == 0.5
    assert [event["threshold"] for event in events(project, "case_decided")] == [0.5]
    assert len(outcome.data["cases"]) == 5
