"""Follow-ups from the outside: sent only when a check failed, and in order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import Project


def graded(project: Project, case: str) -> Any:
    """The one case's grade."""
    project.write({"eval.yaml": "name: demo\n", "cases/a.yaml": case})
    outcome = project.run("run", ".", "--rate-limit-wait", "0", "--json")
    assert outcome.stdout, outcome.stderr
    return outcome.data["cases"][0]


def test_a_follow_up_is_sent_when_a_check_beside_it_failed(project: Project) -> None:
    grade = graded(
        project,
        """
        input:
          turns:
            - content: delete it
              capture: [{variable: n, pattern: '(\\d+)'}]
              assertions:
                - contains: {any: [confirm]}
                - prompt: You have not asked me. Are you sure?
                  assertions: [{contains: {any: [confirm]}}]
            - content: thanks for <<n>>
              assertions: [{contains: you are welcome}]
        scripted:
          - {when: delete, say: Done., usage: {output_tokens: 5}}
          - {when: sure, say: Please confirm 7., usage: {output_tokens: 7}}
          - {turn: 3, when: thanks for 7, say: you are welcome}
        """,
    )
    first, second = grade["turns"]
    assert grade["status"] == "PASS"
    assert "turn 1 (first follow-up)" in grade["reason"]
    assert (first["passed_on"], first["score"]) == ("first follow-up", 1.0)
    assert [f["response"] for f in first["follow_ups"]] == ["Please confirm 7."]
    assert first["usage"]["output_tokens"] == 12
    assert first["captures"] == {"n": "7"}, "of the answer that stands"
    assert second["status"] == "completed"


@pytest.mark.parametrize(
    ("assertions", "says", "sent", "asked_by"),
    [
        ("[{contains: go}, {prompt: never, assertions: [{contains: x}]}]", "go", [], []),
        # The first failing check's own follow-up goes first.
        (
            """
            - {contains: go, prompt: wrong one, assertions: [{contains: x}]}
            - {contains: apple, prompt: "apple?", assertions: [{contains: apple}]}
            - {contains: pear, prompt: "pear?", assertions: [{contains: pear}]}
            - {prompt: alone, assertions: [{contains: alone}]}
            """,
            "{{user}} no",
            ["apple?"],
            [[1]],
        ),
        # All are tried in order, and a turn that passes on none fails.
        (
            """
            - {contains: apple, prompt: one, assertions: [{contains: apple}]}
            - any_of: [{contains: pear}, {contains: plum}]
              prompt: two
              assertions:
                - contains: pear
                - {prompt: two and a half, assertions: [{contains: pear}]}
            - {prompt: three, assertions: [{contains: apple}]}
            """,
            "no {{turn}}",
            ["one", "two", "two and a half", "three"],
            [[0], [1], [1, 1], [2]],
        ),
        # An any_of block's is not sent when one option passed.
        (
            """
            - any_of: [{contains: pear}, {contains: go}]
              prompt: never
              assertions: [{contains: pear}]
            - {contains: apple}
            - {prompt: apple, assertions: [{contains: apple}]}
            """,
            "{{user}}",
            ["apple"],
            [[2]],
        ),
    ],
)
def test_which_are_sent(
    project: Project, assertions: str, says: str, sent: list[str], asked_by: list[list[int]]
) -> None:
    turn = f"input:\n  turns:\n    - content: go\n      assertions: {assertions}\n"
    grade = graded(project, f'{turn}scripted: [{{say: "{says}"}}]\n')
    follow_ups = grade["turns"][0]["follow_ups"]
    assert [f["content"] for f in follow_ups] == sent
    assert [f["asked_by"] for f in follow_ups] == asked_by
    assert grade["status"] == ("FAIL" if says.startswith("no") else "PASS")


def test_an_error_in_a_follow_up_is_the_turns_error(project: Project) -> None:
    grade = graded(
        project,
        """
        input:
          turns:
            - content: go
              assertions: [{contains: x, prompt: again, assertions: [{contains: x}]}]
            - content: more
        scripted:
          - {when: again, say: x, misbehave: {error: rate_limit}}
          - {say: no}
        """,
    )
    assert (grade["status"], grade["error"]["kind"]) == ("ERROR", "rate_limit")
    assert [turn["status"] for turn in grade["turns"]] == ["error", "skipped"]
