"""One real run, and what its trials say together, worked out again by hand from its grades."""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from statistics import fmean
from typing import Any

import pytest

from tests.support.project import Outcome, Project

Z = 1.959963984540054
TRIALS = 20
SKILL = """
    ---
    name: {name}
    description: Knows {name}. Use it for {name}.
    ---
    Be careful.
    """
FILES = {
    "s/eval.yaml": "{name: demo, skills: [{path: skills/logs}], distractors: [skills/other]}\n",
    "s/skills/logs/SKILL.md": SKILL.format(name="logs"),
    "s/skills/other/SKILL.md": SKILL.format(name="other"),
    "s/cases/steady.yaml": """
        input: {prompt: hi}
        assertions: [{contains: hello}, {skill_not_used: logs}]
        scripted: [{say: hello}]
        """,
    "s/cases/wavers.yaml": """
        input:
          turns:
            - {content: one, assertions: [{contains: well}]}
            - {content: two, assertions: [{contains: well}, {skill_used: logs}]}
        scripted:
          - {turn: 1, probability: 0.9, say: well}
          - turn: 2
            needs_skill: logs
            probability: 0.8
            say: well
            steps: [{skill: logs}]
          - {say: bad}
        """,
    "s/cases/breaks.yaml": """
        input: {prompt: hi}
        assertions: [{contains: well}]
        scripted:
          - {probability: 0.2, misbehave: {error: auth}}
          - {probability: 0.7, say: well}
          - {say: bad}
        """,
}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Outcome]:
    """The run, held once."""
    project = Project(tmp_path_factory.mktemp("analysis")).write(FILES)
    outcome = project.run(
        "run", "s", "--trials", str(TRIALS), "--baseline", "--report", "markdown", "--json"
    )
    assert outcome.exit_code == 3, outcome.stderr
    return project, outcome


@pytest.fixture
def result(held: tuple[Project, Outcome]) -> Any:
    return held[1].data


def verdicts(result: Any, case: str, variant: str = "with_skill") -> list[bool]:
    """Whether each trial with a verdict passed, in order."""
    return [
        grade["status"] == "PASS"
        for grade in result["cases"]
        if (grade["case_id"], grade["variant"]) == (case, variant)
        and grade["status"] in ("PASS", "FAIL")
    ]


def wilson(outcomes: list[bool]) -> tuple[float, float]:
    n, p = len(outcomes), fmean(outcomes)
    middle, half = p + Z**2 / (2 * n), Z * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["steady", "wavers", "breaks"])
@pytest.mark.parametrize("variant", ["with_skill", "without_skill"])
def test_rates_and_intervals_are_those_of_the_grades(result: Any, case: str, variant: str) -> None:
    (told,) = [
        c for c in result["analysis"]["cases"] if (c["case_id"], c["variant"]) == (case, variant)
    ]
    outcomes = verdicts(result, case, variant)

    rate = told["rate"]
    assert (rate["passed"], rate["held"]) == (sum(outcomes), len(outcomes))
    assert told["error"] == TRIALS - len(outcomes)
    assert (rate["low"], rate["high"]) == pytest.approx(wilson(outcomes), abs=1e-9)
    assert told["flaky"] == (0 < sum(outcomes) < len(outcomes))
    for k in (1, 2, 3):
        chosen = list(combinations(outcomes, k))
        assert told["at_k"][k - 1]["pass_at_k"] == pytest.approx(fmean(map(any, chosen)))
        assert told["at_k"][k - 1]["pass_hat_k"] == pytest.approx(fmean(map(all, chosen)))


def test_judging_again_comes_to_the_same(held: tuple[Project, Outcome], result: Any) -> None:
    project, run = held[0], held[0].latest_run()

    judged = project.run("judge", str(run), "--json").data

    assert judged["analysis"] == result["analysis"]
