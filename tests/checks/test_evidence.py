"""What results show to people, and where in the record it is."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.checks.evaluate import evaluate
from skillup.checks.registry import describe
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, EvidenceSpan
from skillup.schema.record import TurnRecord, WorkspaceChanges
from tests.support.records import call, make_record, make_turn


def ask(spec: dict[str, Any], *turns: Any) -> CheckResult:
    return evaluate(Check.model_validate(spec), make_record(*turns).context(1))


def test_excerpt_is_the_piece_with_its_surroundings_on_one_line() -> None:
    result = ask({"contains": "needle"}, "x" * 100 + "\nthe NEEDLE\there\x1b[2J" + "y" * 100)

    assert result.excerpt.startswith("…xxx")
    assert "⏎the NEEDLE here␛[2J" in result.excerpt
    assert result.excerpt.endswith("y…")
    assert len(result.excerpt) < 150


def test_offending_piece_of_a_long_command_is_shown() -> None:
    command = "echo " + "a " * 300 + "&& rm -rf data && " + "b " * 300
    spec = {"tool_not_called": {"kind": "shell", "args": {"command": {"matches": r"\brm\b"}}}}

    result = ask(spec, make_turn(calls=[call("Bash", "shell", command=command)]))

    assert "rm -rf data" in result.excerpt
    assert result.found == "called once"


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (
            {"tool_not_called": {"kind": "shell", "args": {"command": {"matches": r"\brm\b"}}}},
            r"tool_not_called shell args.command ~ /\brm\b/",
        ),
        ({"contains": {"any": ["a", "b"], "none": ["c"]}}, 'contains any of "a", "b"; none of "c"'),
        ({"matches": "a.b", "turn": 2}, "matches /a.b/ (turn 2)"),
        ({"tool_called": {"name": "Bash", "min": 2, "max": 3}}, "tool_called Bash, min 2, max 3"),
        ({"json": {"path": "$.a", "equals": None}}, "json $.a = null"),
        ({"files_exist": ["a", "b/*"]}, "files_exist a, b/*"),
        ({"file_contains": {"path": "a", "matches": "b"}}, "file_contains a ~ /b/"),
        ({"tool_sequence": {"calls": ["A", {"kind": "web"}]}}, "tool_sequence in_order: A, web"),
        ({"any_of": [{"equals": "a"}, "polite"]}, 'any_of [equals "a"; rubric "polite"]'),
        (
            {"turn_response_contains": {"turn": 2, "contains_any": ["x"]}},
            'turn_response_contains "x" (turn 2)',
        ),
        ({"max_cost_usd": 0.5}, "max_cost_usd $0.5"),
    ],
)
def test_check_in_one_line(spec: dict[str, Any], line: str) -> None:
    assert describe(Check.model_validate(spec)) == line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ({"not_contains": "deleted"}, 'no "deleted"'),
        ({"not_contains": ["a", "b"]}, 'no "a", "b"'),
        ({"tool_not_called": "bash"}, "no bash"),
        ({"skill_not_used": "log-keeper"}, "no log-keeper"),
        ({"files_not_exist": "*.tmp"}, "no *.tmp"),
        ({"none_of": [{"contains": "a"}]}, 'no [contains "a"]'),
        ({"turn_response_not_contains": {"turn": 1, "not_contains": ["a"]}}, 'no "a"'),
        ({"contains": "deleted"}, '"deleted"'),
    ],
    ids=str,
)
def test_what_is_expected_by_a_negated_check_is_that_it_is_not_there(
    check: dict[str, Any], expected: str
) -> None:
    result = ask(check, "x")

    assert result.expected == expected
    assert "no " not in result.name.removeprefix(result.kind)


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
