"""`skillup run`, with and without `--baseline`; follow-ups: sent only when a check failed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.support.project import Project
from tests.support.stored import content_of

SUITE = {"eval.yaml": "name: demo\ncases: {files: ['cases/*.yaml']}\n"}

ECHO = """
    input:
      turns:
        - content: one
          assertions: [{contains: first}]
        - content: two
          assertions: [{contains: one}]
    scripted:
      - {turn: 1, say: first answer}
      - {turn: 2, say: "you said {{turns.1.user}}"}
    """


@pytest.mark.parametrize(
    ("misbehaviour", "kind"),
    [
        ("{error: auth}", "auth"),
        ("{error: rate_limit}", "rate_limit"),
        ("{exit_code: 7}", "crash"),
        ("{no_result: true}", "protocol"),
        ("{forget: true}", "session_lost"),
        ("{new_session: true}", "session_mismatch"),
    ],
)
def test_trouble_is_an_error_of_its_kind_and_the_agent_is_not_called_again(
    project: Project, misbehaviour: str, kind: str
) -> None:
    case = f"""
        input: {{turns: [one, two, three]}}
        assertions: [{{tool_not_called: {{kind: shell}}}}]
        scripted:
          - {{turn: 2, say: x, misbehave: {misbehaviour}}}
          - {{say: fine}}
        """
    project.write({**SUITE, "cases/trouble.yaml": case})
    outcome = project.run("run", ".", "--rate-limit-wait", "0", "--json")
    assert outcome.exit_code == 3
    graded = outcome.data["cases"][0]
    assert graded["status"] == "ERROR"
    assert graded["error"]["kind"] == kind
    assert [turn["status"] for turn in graded["turns"]] == ["completed", "error", "skipped"]


@pytest.mark.parametrize(
    ("on_fail", "code", "status", "turns"),
    [("skip_remaining", 0, "SKIP", "completed"), ("fail", 1, "FAIL", "failed")],
)
def test_a_gate_that_fails_ends_the_conversation(
    project: Project, on_fail: str, code: int, status: str, turns: str
) -> None:
    case = f"""
        input:
          turns:
            - content: one
              post_condition: {{must_contain_any: [walrus], on_fail: {on_fail}}}
            - content: two
        assertions: [{{contains: x}}]
        scripted: [{{say: no}}]
        """
    project.write({**SUITE, "cases/gate.yaml": case})
    outcome = project.run("run", ".", "--json")
    graded = outcome.data["cases"][0]
    assert (outcome.exit_code, graded["status"]) == (code, status)
    assert "walrus" in graded["reason"]
    assert [turn["status"] for turn in graded["turns"]] == [turns, "skipped"]


def test_a_password_in_a_profiles_address_is_in_no_file(project: Project) -> None:
    """S11."""
    profile = "engine: scripted\nbase_url: https://me:hunter2-hunter3@models.example/v1\n"
    project.write({**SUITE, "cases/echo.yaml": ECHO, "engines/mine.yaml": profile})

    assert project.run("run", ".", "-e", "mine").exit_code == 0
    run = project.latest_run()
    assert {path.name for path in run.iterdir()} == {"run.sqlite", "result.json", "lock"}
    written = content_of(run)
    assert b"models.example" in written
    assert b"hunter2-hunter3" not in written


def test_warnings_are_those_of_the_cases_that_are_run(project: Project) -> None:
    odd = """
        input: {prompt: x}
        assertions: [{golden_file: nowhere}]
        scripted: [{say: x}]
        """
    project.write({**SUITE, "cases/echo.yaml": ECHO, "cases/odd.yaml": odd})

    assert "warning" not in project.run("run", ".", "-k", "echo").stderr
    told = project.run("run", ".").stderr
    assert told.startswith("cases/odd.yaml:2:28: warning: assertions[0].golden_file: there is no")


def test_every_engine_runs_every_case_and_what_it_depends_on(project: Project) -> None:
    case = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
    project.write({**SUITE, "cases/a.yaml": case, "cases/b.yaml": "depends_on: [a]\n" + case})
    project.write({f"engines/{name}.yaml": "engine: scripted\n" for name in ("one", "two")})
    project.write({"engines/gone.yaml": "engine: scripted\ncommand: no-such-agent\n"})
    result = project.run_json(".", "-e", "one", "-e", "gone", "-e", "two")
    found = {(case["engine"], case["case_id"]): case["status"] for case in result["cases"]}
    for engine, statuses in {"one": "PASS PASS", "gone": "ERROR SKIP", "two": "PASS PASS"}.items():
        assert f"{found[engine, 'a']} {found[engine, 'b']}" == statuses


# `--baseline`: what fails without the skill is no failure of the skill.

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
    suite = "name: demo\nskills: [skills/logs]\n"
    project.write({"cases/a.yaml": CASE, "cases/b.yaml": CASE})
    return project.write({"eval.yaml": suite, "skills/logs/SKILL.md": SKILL})


def test_the_counts_and_the_exit_code_are_those_with_the_skill(suite: Project) -> None:
    reports = ("--report", "junit,markdown")
    outcome = suite.run("run", ".", "--baseline", "--out", "out", "--json", *reports)

    assert outcome.exit_code == 0, outcome.stderr
    summary = outcome.data["summary"]
    assert (summary["total"], summary["pass"], summary["pass_rate"]) == (2, 2, 1.0)
    assert (summary["baseline"]["total"], summary["baseline"]["fail"]) == (2, 2)
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


# Follow-ups, in their order.


def follow(project: Project, case: str) -> Any:
    """The one case's grade."""
    project.write({"eval.yaml": "name: demo\n", "cases/a.yaml": case})
    outcome = project.run("run", ".", "--rate-limit-wait", "0", "--json")
    assert outcome.stdout, outcome.stderr
    return outcome.data["cases"][0]


def test_a_follow_up_is_sent_when_a_check_beside_it_failed(project: Project) -> None:
    grade = follow(
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
    grade = follow(project, f'{turn}scripted: [{{say: "{says}"}}]\n')
    follow_ups = grade["turns"][0]["follow_ups"]
    assert [f["content"] for f in follow_ups] == sent
    assert [f["asked_by"] for f in follow_ups] == asked_by
    assert grade["status"] == ("FAIL" if says.startswith("no") else "PASS")


def test_an_error_in_a_follow_up_is_the_turns_error(project: Project) -> None:
    grade = follow(
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
