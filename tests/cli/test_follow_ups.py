"""Follow-ups from the outside: sent only when a check failed, and in order."""

from __future__ import annotations

from typing import Any

from tests.support.project import Project

SUITE = {"eval.yaml": "name: demo\n"}


def held(project: Project, case: str) -> Any:
    """The one case's grade."""
    project.write({**SUITE, "cases/a.yaml": case})
    outcome = project.run("run", ".", "--rate-limit-wait", "0", "--json")
    assert outcome.stdout, outcome.stderr
    return outcome.data["cases"][0]


def test_a_follow_up_is_sent_when_a_check_beside_it_failed(project: Project) -> None:
    grade = held(
        project,
        """
        input:
          turns:
            - content: delete it
              assertions:
                - contains: {any: [confirm]}
                - prompt: You have not asked me. Are you sure?
                  assertions: [{contains: {any: [confirm]}}]
            - content: thanks
              assertions: [{contains: you are welcome}]
        scripted:
          - {when: delete, say: Done., usage: {output_tokens: 5}}
          - {when: sure, say: Please confirm., usage: {output_tokens: 7}}
          - {turn: 3, when: thanks, say: you are welcome}
        """,
    )
    first, second = grade["turns"]
    assert grade["status"] == "PASS"
    assert "turn 1 (first follow-up)" in grade["reason"]
    assert first["passed_on"] == "first follow-up"
    assert first["score"] == 1.0
    assert [f["response"] for f in first["follow_ups"]] == ["Please confirm."]
    assert first["usage"]["output_tokens"] == 12
    assert second["status"] == "completed"


def test_it_is_not_sent_when_every_check_passed(project: Project) -> None:
    grade = held(
        project,
        """
        input:
          turns:
            - content: delete it
              assertions:
                - contains: confirm
                - prompt: never
                  assertions: [{contains: x}]
        scripted: [{turn: 1, say: Please confirm.}]
        """,
    )
    assert grade["status"] == "PASS"
    assert grade["turns"][0]["follow_ups"] == []


def test_the_first_failing_checks_own_follow_up_goes_first(project: Project) -> None:
    grade = held(
        project,
        """
        input:
          turns:
            - content: go
              assertions:
                - {contains: go, prompt: wrong one, assertions: [{contains: x}]}
                - {contains: apple, prompt: "apple?", assertions: [{contains: apple}]}
                - {contains: pear, prompt: "pear?", assertions: [{contains: pear}]}
                - prompt: alone
                  assertions: [{contains: alone}]
        scripted: [{say: "{{user}} no"}, {say: x}]
        """,
    )
    sent = [f["content"] for f in grade["turns"][0]["follow_ups"]]
    assert sent == ["apple?"]
    assert grade["status"] == "PASS"


def test_all_are_tried_in_order_and_a_turn_that_passes_on_none_fails(project: Project) -> None:
    grade = held(
        project,
        """
        input:
          turns:
            - content: go
              assertions:
                - {contains: apple, prompt: one, assertions: [{contains: apple}]}
                - any_of: [{contains: pear}, {contains: plum}]
                  prompt: two
                  assertions:
                    - contains: pear
                    - {prompt: two and a half, assertions: [{contains: pear}]}
                - {prompt: three, assertions: [{contains: apple}]}
        scripted: [{say: "no {{turn}}"}]
        """,
    )
    turn = grade["turns"][0]
    assert grade["status"] == "FAIL"
    assert [f["content"] for f in turn["follow_ups"]] == ["one", "two", "two and a half", "three"]
    assert [f["asked_by"] for f in turn["follow_ups"]] == [[0], [1], [1, 1], [2]]
    assert turn["passed_on"] is None
    assert turn["score"] == 0.0


def test_an_any_of_blocks_follow_up_is_not_sent_when_one_option_passed(project: Project) -> None:
    grade = held(
        project,
        """
        input:
          turns:
            - content: go
              assertions:
                - any_of: [{contains: pear}, {contains: go}]
                  prompt: never
                  assertions: [{contains: pear}]
                - {contains: apple}
                - {prompt: apple, assertions: [{contains: apple}]}
        scripted: [{say: "{{user}}"}]
        """,
    )
    assert [f["content"] for f in grade["turns"][0]["follow_ups"]] == ["apple"]
    assert grade["status"] == "PASS"


def test_captures_take_the_answer_that_stands(project: Project) -> None:
    grade = held(
        project,
        """
        input:
          turns:
            - content: how many
              capture: [{variable: n, pattern: '(\\d+)'}]
              assertions:
                - {matches: '\\d', prompt: a number please, assertions: [{matches: '\\d'}]}
            - content: "<<n>> it is"
              assertions: [{contains: "7 it is"}]
        scripted:
          - {when: number, say: "7"}
          - {when: "many", say: several}
          - {say: "{{user}}"}
        """,
    )
    assert grade["status"] == "PASS", grade["reason"]
    assert grade["turns"][0]["captures"] == {"n": "7"}


def test_an_error_in_a_follow_up_is_the_turns_error(project: Project) -> None:
    grade = held(
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


def test_a_follow_up_outside_of_a_turn_is_refused(project: Project) -> None:
    case = "input: {prompt: go}\nassertions: [{prompt: p, assertions: [{contains: x}]}]\n"
    project.write({**SUITE, "cases/a.yaml": case})
    outcome = project.run("validate", ".")
    assert outcome.exit_code == 2
    assert "cases/a.yaml:2:" in outcome.stderr
