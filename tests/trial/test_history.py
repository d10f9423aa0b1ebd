"""A history: cleaned, put into the session, and mined; and a conversation that is only judged."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.checks.text import Captured
from skillup.schema.case import HistoryMessage, Input, Reconstruct
from skillup.trial.history import NO_RESULT, Past, past_of, rebuild, turns_of
from tests.support.project import Project


def past(*messages: dict[str, Any], **more: Any) -> Past:
    return past_of(Input.model_validate({"prompt": "go", "history": list(messages), **more}))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def calls(*ids: str | None) -> dict[str, Any]:
    made = [{"name": "Bash", **({"id": one} if one else {})} for one in ids]
    return {"role": "assistant", "tool_calls": made}


def result(content: str, call_id: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": content, **({"call_id": call_id} if call_id else {})}


def pairs(found: Past) -> list[tuple[str, str]]:
    return [(i.tool_result.call_id, i.content) for i in found.items if i.tool_result is not None]


def test_every_call_gets_an_id_of_its_own_and_results_in_order() -> None:
    found = past(calls("i", "i"), result("one", "i"), result("two", "i"), calls("i"), result("x"))

    assert [content for _, content in pairs(found)] == ["one", "two", "x"]
    assert len({call_id for call_id, _ in pairs(found)}) == 3
    assert [call.id for call in found.items[0].tool_calls] == [p[0] for p in pairs(found)[:2]]


def test_messages_are_sorted_by_their_index_and_every_repair_is_noted() -> None:
    found = past(
        {"role": "assistant", "content": "b", "message_index": 1},
        {"role": "assistant", "content": "b", "message_index": 2},
        {"role": "user", "content": "later", "message_index": 6},
        {"role": "user", "content": "a", "message_index": 0},
        {"role": "user", "content": " ", "message_index": 3},
        {**result("of nothing"), "message_index": 4},
        {**calls("x"), "message_index": 5},
        message_index=6,
    )

    assert [item.content for item in found.items][:2] == ["a", "b"]
    assert found.notes == (
        "of the history, 1 message from place 6 on: left out",
        "of the history, 2 messages empty or a repeated answer: left out",
        "a tool's result without its call was left out of the history",
        "the history does not say what the call `x` gave back",
    )
    assert [content for _, content in pairs(found)] == [NO_RESULT]


@pytest.mark.parametrize("first", ["Technical", "<<query>>", "{{ query }}"])
def test_a_last_message_that_is_the_one_under_test_is_sent_once_and_is_not_past(first: str) -> None:
    """V11: compared with templates filled in, and taken out before `reconstruct` looks."""
    pairs = {"marker": "Which", "fields": ["kind"], "default": "", "pending": "asked"}
    given = {
        "prompt": first,
        "history": [
            {"role": "user", "content": "hi, I am <<name>>"},
            {"role": "assistant", "content": "Which kind?"},
            {"role": "user", "content": "Technical"},
        ],
        "reconstruct": [{"pairs": pairs}],
    }
    found = past_of(Input.model_validate(given), {"query": "Technical", "name": "Ada"})
    assert [item.content for item in found.items] == ["hi, I am Ada", "Which kind?"]
    assert found.unanswered == ()
    assert found.variables == {"kind": "", "asked": "kind?"}


def test_places_are_those_in_the_list_where_no_message_has_one() -> None:
    """V11: `message_index` cuts a history whose messages are not numbered."""
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    found = past(*said, {"role": "user", "content": "x"}, said[1], message_index=2)
    assert [item.content for item in found.items] == ["a", "b"]
    assert found.unanswered == ()


# Rules of `reconstruct`: what a history says becomes variables.

PAIRS = {"marker": r"Q\d+:", "fields": ["stage", "size"], "default": "", "pending": "open"}


def lines_of(*lines: str) -> list[HistoryMessage]:
    """``a: text`` of the assistant, ``u: text`` of the user."""
    roles = {"a": "assistant", "u": "user"}
    return [
        HistoryMessage.model_validate({"role": roles[line[0]], "content": line[3:]})
        for line in lines
    ]


def rebuilt(rule: dict[str, Any], *lines: str) -> Captured:
    return rebuild(Reconstruct.model_validate(rule), lines_of(*lines))


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (["a: Q1: Stage?", "u: Seed", "a: Q2: Size?", "u: 12"],
         {"stage": "Seed", "size": "12", "open": ""}),
        (["a: Thanks. Q1: Stage?\nTake your time.", "u: Seed", "a: Good. Q2: Size?"],
         {"stage": "Seed", "size": "", "open": "Size?"}),
        (["u: hello", "a: Hi!", "u: go on"], {"stage": "", "size": "", "open": ""}),
        # an answer in two messages; what is said after it is about something else
        (["a: Q1: Stage?", "u: Seed", "u: or nearly", "a: I see.", "u: bye"],
         {"stage": "Seed\n\nor nearly", "size": "", "open": ""}),
        # a remark in between does not close the question
        (["a: Q1: Stage?", "a: No hurry.", "u: Seed"], {"stage": "Seed", "size": "", "open": ""}),
        # asked again in the same words: the same question, the later answer
        (["a: Q1: Stage?", "u: hm", "a: Q1: stage?", "u: Seed", "a: Q2: Size?", "u: 3"],
         {"stage": "Seed", "size": "3", "open": ""}),
        (["a: Q1: Stage?", "u: hm", "a: Q2: Size?", "u: 3", "a: Q1: Stage?"],
         {"stage": "", "size": "3", "open": "Stage?"}),
    ],
)  # fmt: skip
def test_answers_belong_to_the_fields_in_the_order_of_the_questions(
    lines: list[str], values: dict[str, str]
) -> None:
    assert rebuilt({"pairs": PAIRS}, *lines) == Captured(values)


def test_a_group_named_question_says_what_the_question_is() -> None:
    rule = {"pairs": {**PAIRS, "marker": r"\[ask\] (?P<question>.*?) \[/ask\]"}}

    assert rebuilt(rule, "a: [ask] Stage? [/ask] please").values["open"] == "Stage?"


def test_an_answer_that_is_missing_without_a_default_says_what_was_asked() -> None:
    pairs = {key: value for key, value in PAIRS.items() if key != "default"}

    found = rebuilt({"pairs": pairs}, "a: Q1: Stage?", "u: Seed")

    assert found.miss == (
        '`size` was not answered in the history (questions found: "Stage?"); '
        "correct the `marker`, or give a `default`"
    )


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ({}, "3"),
        ({"take": "first"}, "1"),
        ({"role": "user"}, "2"),
        ({"role": "assistant", "take": "first"}, "1"),
        ({"take": "last_message"}, "none"),
        ({"role": "assistant", "take": "last_message"}, "3"),
        ({"role": "user", "take": "last_message"}, "none"),
    ],
)
def test_a_capture_looks_through_the_history(more: dict[str, str], value: str) -> None:
    """V11: a marker may be asked of the very last message, whoever's."""
    rule = {"capture": {"variable": "n", "pattern": r"n=(\d)", "default": "none"}, **more}

    said = ("a: n=1", "u: n=2", "a: n=3", "u: none")
    assert rebuilt(rule, *said).values == {"n": value}


def test_a_capture_that_finds_nothing_takes_its_default_or_is_a_miss() -> None:
    capture = {"variable": "n", "pattern": r"n=(\d)"}

    assert rebuilt({"capture": {**capture, "default": "0"}}, "u: x").values == {"n": "0"}
    missed = rebuilt({"capture": capture, "role": "user"}, "a: n=1").miss or ""
    assert missed.startswith(r"capture `n`: no message of the user of the history has /n=(\d)/; ")


@pytest.mark.parametrize(
    "rule",
    [
        {"capture": {"variable": "n", "pattern": "(a+)+$", "default": "none"}},
        {"pairs": {"marker": "(a+)+$", "fields": ["n"], "default": "none"}},
    ],
)
def test_a_regex_that_takes_too_long_is_a_miss_whatever_the_default(rule: dict[str, Any]) -> None:
    found = rebuilt(rule, *[f"a: {'a' * 50_000}!"] * 5)

    assert "took too long" in (found.miss or "")


# With the scripted engine as its reader.

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


# A conversation that took place elsewhere becomes the turns of a record.


def turns(*messages: dict[str, Any]) -> list[Any]:
    return turns_of([HistoryMessage.model_validate(message) for message in messages])


def test_a_turn_is_a_user_message_and_everything_up_to_the_next() -> None:
    first, second = turns(user("a"), agent("b"), agent("c"), user("d"), agent("e"))

    assert (first.turn_number, first.content, first.response) == (1, "a", "c")
    assert [item.text for item in first.transcript] == ["b", "c"]
    assert (second.turn_number, second.content, second.response) == (2, "d", "e")
    assert {first.source, second.source} == {"history"}


def test_calls_and_results_are_paired() -> None:
    calls = [{"name": "Bash", "arguments": {"command": "ls"}}, {"kind": "read", "id": "r"}]
    (turn,) = turns(
        user("a"),
        agent("", tool_calls=calls),
        {"role": "tool", "content": "x"},
        {"role": "tool", "content": "no", "status": "error"},
        agent("done"),
    )

    assert [(call.name, call.kind) for call in turn.tool_calls] == [
        ("Bash", "other"), ("read", "read"),
    ]  # fmt: skip
    assert [result.call_id for result in turn.tool_results] == [call.id for call in turn.tool_calls]
    assert [result.status for result in turn.tool_results] == ["success", "error"]
    assert turn.response == "done"


@pytest.mark.parametrize(("word", "status"), [("330", "PASS"), ("nothing", "FAIL")])
def test_a_transcript_is_judged_without_an_agent(project: Project, word: str, status: str) -> None:
    case = f"""
        input:
          transcript:
            - {{role: user, content: How tall is it?}}
            - {{role: assistant, content: 330 metres.}}
        assertions: [{{contains: "{word}"}}, {{turn: 1, not_contains: feet}}]
    """
    project.write({"s/eval.yaml": "name: s\n", "s/c.yaml": case})

    # An engine that is not here is not missed.
    result = project.run_json("s", "--engine", "codex", env={"PATH": "/nowhere"})

    (grade,) = result["cases"]
    assert (grade["status"], len(grade["turns"])) == (status, 1)
