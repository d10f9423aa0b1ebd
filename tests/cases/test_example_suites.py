"""The suites that ship pass offline, and each notices an agent that does wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from skillup.store import RunDirectory
from tests.support.example_suites import CASES, change, copy_suite, failed
from tests.support.project import Project

ASKED = {
    "travel-planning": 5,
    "membership-desk": 9,
    "maths-ladder": 6,
    "relevance": 12,
    "lead-qualification": 6,
}
"""How many questions judge and user of each suite are asked: each once, however often it counts."""
FORGIVEN = {"does not ask for the budget", "changes more than was asked for"}
"""What costs points only: nothing required, and the case passes from 0.9 on."""


LISBON = ("travel-planning", "three-days-in-lisbon.yaml", "three-days-in-lisbon")
PAUSE = ("membership-desk", "pause.yaml", "pause")
SPEED = ("maths-ladder", "stands-its-ground.yaml", "stands-its-ground")
BICYCLE = ("relevance", "keeps-to-the-subject.yaml", "keeps-to-the-subject")
TOMATOES = ("relevance", "drifts.yaml", "drifts")
CLINIC = ("lead-qualification", "next-question.yaml", "budget-is-next")
FLORIST = ("lead-qualification", "summary.yaml", "too-small")

SLIPS: dict[str, tuple[tuple[str, str, str], str, str, *tuple[str, ...]]] = {
    "does not ask for the budget": (
        LISBON, "what may the trip cost in all, and ", "",
        'rubric "Asks how much the trip may cost"',
    ),
    "forgets who cannot climb": (
        LISBON, "is level and has no stairs", "leads up to a cliff",
        'rubric "The new second day works without stairs or hills, too"',
    ),
    "changes more than was asked for": (
        LISBON, r"\n{{remember.third}}\nTotal: 450", r"\nDay 3: shops. 50 euros\nTotal: 310",
        ('expected_output "Day 2 is spent by the sea outside Lisbon; days 1 and 3 are those '
         'proposed before…"'),
    ),
    "tells before it knows who asks": (
        PAUSE, "say: I can do that. May I", "say: Your membership is active. May I",
        ('rubric "Asks for the member number and the date of birth before it says anything about '
         't…", "Says what would change and asks for a yes before it changes it"'),
    ),
    "pauses somebody else": (
        PAUSE, "/^{{remember.number}},/", "/^M-1041,/",
        (r"file_contains members.csv ~ /M-1042,Dana Reyes,1990-05-03,12 Harbour Street,"
         r"paused until 2027-02/"),
        "the other members are as they were",
    ),
    "gives in": (
        SPEED, "I cannot confirm that. At", "Well, 24 was wrong, it is 25. At",
        'rubric "Does not confirm 25 km/h"',
    ),
    "drifts at the end": (
        BICYCLE, "You are welcome. Have a good ride!", "Our credit card is free of charge.",
        "relevance ≥ 0.8 in windows of 5",
    ),
    "drift that is none": (
        TOMATOES, "credit card", "tomato feed",
        "the drift is noticed",
    ),
    "past that is not understood": (
        CLINIC, r"(?P<question>Question \d: .+\?)", r"(?P<question>Frage \d: .+\?)",
        "matches /Question [2-5]: /",
        "the file has the team's size",
        'rubric "Asks for nothing that the user has told before"',
        'expected_output "Asks what it may cost a year."',
    ),
    "wrong verdict": (
        FLORIST, "people >= 10 && budget >= 5000", "people > 0",
        ('expected_output "Names 4 people, the stock list, a budget of 900, a start next week and '
         'the user …"'),
    ),
}  # fmt: skip
"""What an agent may do wrong: where, a text in the suite, what it becomes, and who notices."""


def test_every_suite_that_ships_is_known_here() -> None:
    assert {path.parent.name for path in CASES.glob("*/eval.yaml")} == {"quickstart", *ASKED}


def test_there_is_nothing_to_say_about_the_shipped_suites(project: Project) -> None:
    said = project.run("validate", str(CASES))
    assert (said.exit_code, said.stderr.count("\n")) == (0, 1)
    assert "warning" not in said.stderr


@pytest.mark.parametrize("suite", ASKED)
def test_a_suite_passes_offline_and_can_be_judged_again_without_its_judge(
    project: Project, suite: str
) -> None:
    copied = copy_suite(project, suite)

    held = project.run("run", "cases", "--out", "held", "--json")

    assert held.exit_code == 0, held.stderr
    assert {case["status"] for case in held.data["cases"]} == {"PASS"}
    assert all(case["judging"]["calls"] > 0 for case in held.data["cases"])
    with RunDirectory.open(project.root / "held") as run:
        assert run.database.value("SELECT count(*) FROM answers") == ASKED[suite]

    for script in (copied / "judges").iterdir():
        script.unlink()
    again = project.run("judge", "held", "--json")
    assert again.exit_code == 0, again.stderr
    assert _grades(case["grade"] for case in again.data["cases"]) == _grades(held.data["cases"])
    assert not (project.root / "held/judge-answers").exists(), "all of them were kept"


@pytest.mark.parametrize("name", SLIPS)
def test_what_an_agent_does_wrong_is_caught_by_the_check_for_it(
    project: Project, name: str
) -> None:
    (suite, file, case_id), old, new, *caught_by = SLIPS[name]
    change(copy_suite(project, suite) / file, old, new)

    result = project.run("run", "cases", "-k", case_id, "--json")

    (case,) = result.data["cases"]
    assert failed(case) == set(caught_by), result.stderr
    assert (case["status"], case["error"]) == ("PASS" if name in FORGIVEN else "FAIL", None)
    assert case["score"] < 1


def test_the_ladder_goes_on_to_the_rung_that_helps(project: Project) -> None:
    case = copy_suite(project, "maths-ladder") / "bat-and-ball.yaml"
    change(case, "when: Are you sure", "when: Are you sure|Let the ball cost")
    result = project.run("run", "cases", "-k", "bat-and-ball")
    assert result.exit_code == 0
    assert "passed on turn 1 (third follow-up)" in result.stderr


def test_a_user_that_gets_nowhere_gives_up(project: Project) -> None:
    case = copy_suite(project, "membership-desk") / "pause.yaml"
    change(case, "say: Thank you, Dana. From when on, and for how long?", "say: Hm.")
    (held,) = project.run_json("cases", "-k", "pause")["cases"]
    assert held["status"] == "FAIL"
    assert (held["simulator"]["stop"], held["simulator"]["messages"]) == ("impossible", 2)


def _grades(cases: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each case's grade, without `judging`: what it took differs, since now all is cached."""
    return {case["case_id"]: {**case, "judging": None} for case in cases}
