"""A history: cleaned, put into the session, and mined, with the scripted engine as its reader."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import Project

SCRIPT = """
assertions: [{matches: .}]
scripted:
  - say: "SAY"
"""


def run_case(
    project: Project, given: str, say: str = "{{user}}", more: str = ""
) -> tuple[Any, Any]:
    """The grade and the record of a case with this `input`."""
    project.write({"eval.yaml": "name: d\n", "c.yaml": given + more + SCRIPT.replace("SAY", say)})
    grade = project.run_json(".")["cases"][0]
    return grade, project.record("c/scripted/with_skill/1")


def said(record: Any) -> list[str]:
    return [f"{item['role']}: {item['content']}" for item in record["history"]]


@pytest.mark.parametrize(
    ("last", "sent"),
    [
        ("and this?", "and this?\n\ngo"),
        ("go", "go"),
        ('costs <<x>>", literal: true, status: "success', "costs <<x>>\n\ngo"),
    ],
)
def test_a_message_that_nobody_answered_goes_before_the_first_live_one(
    project: Project, last: str, sent: str
) -> None:
    given = f"""
input:
  history:
    - {{role: user, content: one}}
    - {{role: assistant, content: answer}}
    - {{role: user, content: "{last}"}}
  prompt: go
"""
    grade, record = run_case(project, given)
    assert said(record) == ["user: one", "assistant: answer"]
    assert grade["turns"][0]["content"] == sent
    assert grade["turns"][0]["response"] == sent


CAPTURED = """
context: {files: {stage.txt: "stage: <<stage>>"}}
input:
  history:
    - {role: user, content: "we are at seed", capture: [{variable: stage, pattern: 'at (\\w+)'}]}
    - role: assistant
      content: noted
      tool_calls: [{id: c1, name: note, arguments: {text: hello}}]
      capture:
        - {variable: id, jsonpath: '$.transcript.tool_calls[0].id'}
        - {variable: none, pattern: 'x(y)', default: nothing}
  turns:
    - "<<id>> <<none>> <<stage>>"
assertions: [{file_contains: {path: stage.txt, content: "stage: seed"}}]
scripted: [{say: "{{user}}"}]
"""


def test_captures_on_the_history_fill_messages_and_files(project: Project) -> None:
    project.write({"eval.yaml": "name: d\n", "c.yaml": CAPTURED})
    (grade,) = project.run_json(".")["cases"]
    assert (grade["status"], grade["turns"][0]["response"]) == ("PASS", "c1 nothing seed")


def test_a_capture_that_finds_nothing_is_an_error_before_the_first_turn(project: Project) -> None:
    text = CAPTURED.replace("at seed", "nowhere")
    project.write({"eval.yaml": "name: d\n", "c.yaml": text})
    (grade,) = project.run_json(".")["cases"]
    assert (grade["status"], grade["error"]["kind"], grade["turns"]) == ("ERROR", "capture", [])
    assert "message 1 of the history" in grade["error"]["message"]


def test_the_first_live_turn_resumes_the_session_that_was_made(project: Project) -> None:
    given = """
input:
  history: [{role: user, content: one}, {role: assistant, content: answer}]
  turns: [two, three]
"""
    grade, record = run_case(project, given, "{{turn}}")
    first, second = record["turns"]
    assert (first["session_verified"], second["session_verified"]) == (True, True)
    assert [first["session"]["messages"], second["session"]["messages"]] == [2, 3]
    assert {first["session_id"], second["session_id"]} == {record["session_id"]}
    assert [turn["response"] for turn in grade["turns"]] == ["1", "2"]
    assert grade["usage"]["input_tokens"] == 200
