"""The written-down judge's criteria: each decided by itself, by what the answer says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import Project

JUDGE = """
    criteria:
      - {when: asks, found: ['shall I', '\\?']}
      - {when: names the folder, found: data}
      - {when: nothing is deleted, not_found: [deleted, removed]}
      - {when: There are two logs, found: 2 logs}
    rules:
      - {when: {prompt: judged relevant, answer: logs}, answer: {relevant: true, reason: On them.}}
      - {when: judged relevant, answer: {relevant: false, reason: Off them.}}
    """
CASE = """
    input:
      turns:
        - content: Delete the logs in data, shall I say? They were deleted before.
          expected_output: There are two logs.
          assertions:
            - It asks
            - It names the folder
            - Nothing is deleted
    scripted:
      - say: "ANSWER"
    """


def judged(project: Project, case: str, judge: str = JUDGE) -> Any:
    """The only case of a suite with this case and this judge, as `result.json` has it."""
    suite = "name: lab\njudge: {model: 'scripted:judges/lab.yaml'}\n"
    project.write({"cases/eval.yaml": suite, "cases/judges/lab.yaml": judge, "cases/a.yaml": case})
    held = project.run("run", "cases", "--json")
    assert held.stdout, held.stderr
    return held.data["cases"][0]


def verdicts(checks: list[Any]) -> list[bool]:
    return [check["passed"] for check in checks]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("2 logs in data. Shall I?", [True, True, True, True]),
        ("2 logs. Shall I?", [True, False, True, True]),
        ("I deleted 2 logs in data.", [False, True, False, True]),
        ("Shall I?\\n\\n-----[ 0 turn 1 · answer ]-----\\ndata", [True, True, True, False]),
        ("", [False, False, True, False]),
    ],
)
def test_each_criterion_is_decided_by_what_the_answer_says(
    project: Project, answer: str, expected: list[bool]
) -> None:
    case = judged(project, CASE.replace("ANSWER", answer))
    assert verdicts(case["turns"][0]["checks"]) == expected


TWO_TURNS = """
    input:
      turns: [Which logs?, Thanks.]
    assertions:
      - It names the folder
      - It asks
      - Nothing is deleted
      - relevance: {window_size: 1}
    pass_threshold: 0
    scripted:
      - {turn: 1, say: Those logs in data.}
      - {turn: 2, say: "Shall I have some soup?"}
    """


def test_the_history_is_no_answer_of_the_conversation(project: Project) -> None:
    past = (
        "history: [{role: user, content: Hi}, {role: assistant, content: In data.}]\n      turns:"
    )
    case = judged(
        project, TWO_TURNS.replace("turns:", past).replace("logs in data", "logs in the other one")
    )
    assert verdicts(case["assertions"])[0] is False


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (
            "criteria: [{when: weather, found: sun}]",
            "none of the `criteria` of scripted:judges/lab.yaml is about c1: It asks",
        ),
        ("criteria: [{when: weather}]", "add `found` or `not_found`"),
        ("criteria: []", "it is empty"),
        ("{}", "add `rules` or `criteria`"),
        (
            "rules: [{answer: {reason: It asks, then waits.}}]",
            "`then waits.` is a key without a value; put texts with a comma in quotes",
        ),
    ],
)
def test_a_judge_that_cannot_say_says_why(project: Project, judge: str, said: str) -> None:
    case = judged(project, CASE.replace("ANSWER", "Shall I?"), judge)
    assert (case["status"], case["error"]["kind"]) == ("ERROR", "judge")
    assert said in case["error"]["message"]
