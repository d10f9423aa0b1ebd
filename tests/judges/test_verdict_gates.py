"""Gates and required checks in the verdict: FAIL outranks SKIP, SKIP outranks PASS."""

from __future__ import annotations

from typing import Any

from tests.support.project import Project


def status(project: Project, case: str) -> Any:
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})
    return project.run_json(".")["cases"][0]


def test_a_conversation_that_was_stopped_does_not_pass_on_what_came_before(
    project: Project,
) -> None:
    grade = status(
        project,
        """
        input:
          turns:
            - {content: one, assertions: [{contains: yes}]}
            - {content: two, assertions: [{contains: absent}]}
            - content: three
              post_condition: {must_contain_any: [walrus], on_fail: skip_remaining}
        on_turn_failure: stop
        aggregation: max
        pass_threshold: 0.5
        scripted: [{say: "yes"}, {say: "no"}]
        """,
    )
    assert [turn["status"] for turn in grade["turns"]] == ["completed", "completed", "skipped"]
    assert (grade["status"], grade["score"]) == ("FAIL", 1.0)
    assert "turn 2" in grade["reason"]


def test_a_required_part_of_a_check_has_to_pass(project: Project) -> None:
    """V1, V4: within `all_of`, too, no threshold and no follow-up outweighs it."""
    threshold = status(
        project,
        """
        input: {prompt: hi}
        pass_threshold: 0.5
        assertions:
          - all_of: [{contains: absent, required: true}, {contains: hello}]
          - contains: hello
          - contains: hello
        scripted: [{say: Hello}]
        """,
    )
    healed = status(
        project,
        """
        input:
          turns:
            - content: hi
              assertions:
                - all_of: [{all_of: [{not_contains: hi, required: true}]}]
                - {prompt: again, assertions: [{contains: again}]}
        scripted: [{say: "{{user}}"}]
        """,
    )
    assert (threshold["status"], healed["status"]) == ("FAIL", "FAIL")


def test_an_empty_list_asks_nothing_and_passes_nothing(project: Project) -> None:
    """V1: nothing passed, so it is no PASS."""
    lists = "must_contain: [], must_not_contain: [], files_exist: [], files_not_exist: [], glob: []"
    case = f"input: {{prompt: hi}}\nexpect: {{{lists}}}\nscripted: [{{say: Hello}}]\n"
    assert status(project, case)["status"] == "FAIL"
