"""Where in the record the pieces are that a check found: data for reports, never parsed text."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.checks.evaluate import evaluate
from skillup.schema.checks import Check
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import TurnRecord, WorkspaceChanges
from tests.support.records import call, make_record, make_turn

CALLS = [call("Read", "read", file_path="a.txt"), call("Bash", "shell", command="cd x && rm -rf y")]
RM = {"kind": "shell", "args": {"command": {"matches": r"\brm\b"}}}


def spans(spec: dict[str, Any], turn: Any, turn_number: int | None = 1) -> list[EvidenceSpan]:
    recorded = make_record(turn)
    return evaluate(Check.model_validate(spec), recorded.context(turn_number)).spans


def shown(turn: TurnRecord | str, span: EvidenceSpan) -> str:
    """The text that a span is about, cut out of the record."""
    if isinstance(turn, str):
        turn = make_turn(turn)
    text = turn.response
    if span.part == "call":
        assert span.item is not None
        tool_call = turn.transcript[span.item].tool_call
        assert tool_call is not None
        text = tool_call.arguments[span.argument] if span.argument else tool_call.name
    return text[span.start : span.end] if span.end else text


@pytest.mark.parametrize(
    ("spec", "answer", "pieces"),
    [
        ({"contains": "NEEDLE"}, "a needle here", ["needle"]),
        ({"contains": {"all": ["b", "a"], "any": ["x", "c"]}}, "abc", ["b", "a", "c"]),
        ({"not_contains": "absent"}, "abc", []),
        ({"not_contains": "b"}, "abc", ["b"]),
        ({"not_contains": "b"}, "a b, B", ["b", "B"]),
        ({"matches": r"\d+"}, "x 12\n", ["12"]),
        ({"contains": "after"}, "\r\nafter", []),
        ({"contains": "strasse"}, "\u00df\u00df Stra\u00dfe", ["Stra\u00dfe"]),
        ({"json": {"path": "$.a", "equals": "deep"}}, 'so: {"a": "deep"}', ["deep"]),
        ({"json": {"path": "$.b"}}, '{"a": 1}', []),
        ({"equals": "abc"}, "abc", []),
    ],
    ids=str,
)
def test_spans_of_an_answer_are_those_of_the_text_as_recorded(
    spec: dict[str, Any], answer: str, pieces: list[str]
) -> None:
    assert [shown(answer, span) for span in spans(spec, answer)] == pieces


@pytest.mark.parametrize(
    ("spec", "pieces"),
    [
        ({"tool_not_called": RM}, ["rm"]),
        ({"tool_called": "Bash"}, ["Bash"]),
        ({"tool_called": {"kind": "read", "args": {"path": "a.txt"}}}, ["a.txt"]),
    ],
    ids=str,
)
def test_spans_of_a_call_name_its_item_and_the_engines_own_argument(
    spec: dict[str, Any], pieces: list[str]
) -> None:
    turn = make_turn(calls=CALLS)

    assert [shown(turn, span) for span in spans(spec, turn)] == pieces


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"file_contains": {"path": "*.txt", "content": "two"}}, [("b.txt", 4, 7)]),
        ({"files_exist": ["a.txt", "b.txt"]}, [("a.txt", 0, 0), ("b.txt", 0, 0)]),
        ({"files_not_exist": "a.txt"}, [("a.txt", 0, 0)]),
        ({"files_exist": "old/*"}, [("old/d.txt", 0, 0)]),
        ({"file_contains": {"path": "b.txt", "content": "x"}}, [("b.txt", 0, 0)]),
    ],
    ids=str,
)
def test_spans_of_files_name_their_paths(spec: dict[str, Any], expected: list[Any]) -> None:
    gone = WorkspaceChanges(deleted=["old/d.txt"])
    found = spans(spec, make_turn(files={"a.txt": "", "b.txt": "one\ntwo"}, changes=gone))

    assert [(span.path, span.start, span.end) for span in found] == expected
    assert all(span.part == "file" for span in found)


def test_span_of_a_follow_ups_answer_says_which() -> None:
    steps = [make_turn(text, source="follow_up", asked_by=[0]) for text in ("a", "here")]

    (span,) = spans({"contains": "here"}, make_turn("x", follow_ups=steps), None)

    assert (span.turn, span.follow_up, span.start, span.end) == (1, 1, 0, 4)


def test_the_skill_that_a_check_is_about_is_a_field() -> None:
    result = evaluate(Check.model_validate({"skill_not_used": "x"}), make_record("a").context(1))

    assert result.skill == "x"
