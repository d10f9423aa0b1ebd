"""What a single field cannot know: names, turn numbers, switches that must fit together."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import Problem
from skillup.load.suites import load_paths
from tests.support.trees import make_tree


def problems(root: Path, case: str, suite: str = "name: d\n") -> list[Problem]:
    make_tree(root, {"s/eval.yaml": suite, "s/c.yaml": case})
    return list(load_paths([root / "s"]).problems)


def told(root: Path, case: str, suite: str = "name: d\n") -> list[str]:
    """``LINE:COLUMN: …`` of the errors."""
    found = [p for p in problems(root, case, suite) if p.severity == "error"]
    return [str(p).removeprefix(f"{p.file}:") for p in found]


KEEP_A = "{variable: a, pattern: '(y)'}"
CHECKS = "assertions: [{contains: x}]\n"


@pytest.mark.parametrize(
    "case",
    [
        "vars: {a: 1}\ninput: {prompt: 'x <<a>> << a >>'}\n",
        "input: {prompt: '\\<<a>> and {{b}} and << c'}\n",
        "input: {turns: [{content: x, capture: [{variable: a, pattern: '(y)'}]}, '<<a>>']}\n",
        "vars: {a: 1}\ncontext: {files: {f: '<<a>>'}}\ninput: {prompt: x}\n",
        "vars: {a.b-c: 1}\ninput: {prompt: '<<a.b-c>>'}\n",
    ],
)
def test_a_name_that_is_defined_before_it_is_used_is_fine(tmp_path: Path, case: str) -> None:
    assert told(tmp_path, case + CHECKS) == []


@pytest.mark.parametrize(
    ("case", "place", "name"),
    [
        ("input: {prompt: 'x <<a>>'}\n", "1:20", "a"),
        ("input:\n  prompt: |\n    first\n    second <<a>>\n", "4:12", "a"),
        ("input:\n  prompt: >\n    folded <<a>>\n    <<a>>\n", "3:12", "a"),
        (f"input: {{turns: [{{content: '<<a>>', capture: [{KEEP_A}]}}]}}\n", "1:28", "a"),
        (f"input: {{turns: ['<<a>>', {{content: y, capture: [{KEEP_A}]}}]}}\n", "1:18", "a"),
        ("vars: {A: 1}\ninput: {prompt: '<<a>>'}\n", "2:18", "a"),
        ("context: {files: {f: '<<a>>'}}\ninput: {prompt: y}\n", "1:23", "a"),
        ("input: {prompt: '\\<<a>> <<a>>'}\n", "1:25", "a"),
    ],
)  # fmt: skip
def test_a_name_that_is_not_is_told_where_it_stands(
    tmp_path: Path, case: str, place: str, name: str
) -> None:
    (line,) = told(tmp_path, case + CHECKS)
    assert line.startswith(f"{place}: ")
    assert f"<<{name}>> is not defined" in line


def test_every_name_is_told_and_what_is_defined_there(tmp_path: Path) -> None:
    case = "vars: {one: 1, two: 2}\ninput: {prompt: '<<x>> <<y>> <<one>>'}\n"
    lines = told(tmp_path, case + CHECKS)
    assert [line.split(" is not")[0] for line in lines] == [
        "2:18: input.prompt: <<x>>",
        "2:24: input.prompt: <<y>>",
    ]
    assert "defined here: one, two" in lines[0]


TWO = "input: {turns: [a, b]}\n"


@pytest.mark.parametrize(
    ("checks", "place"),
    [
        ("assertions: [{contains: x, turn: 3}]\n", "2:34"),
        ("assertions: [{any_of: [{contains: x, turn: 9}]}]\n", "2:44"),
        ("assertions: [{turn_response_contains: {turn: 3, contains_any: [x]}}]\n", "2:46"),
        ("assertions: [{tool_not_called_in_turn: {turn: 3, kind: shell}}]\n", "2:47"),
        ("judge: {success: [{contains: x, turn: 3}]}\n", "2:39"),
        ("judges: [{success: [{contains: x}]}, {success: [{contains: y, turn: 3}]}]\n", "2:69"),
        ("expect: {tool_called_in_turn: {turn: 3, kind: shell}}\n", "2:38"),
    ],
)
def test_a_turn_that_the_case_does_not_have_is_told_wherever_it_is_asked(
    tmp_path: Path, checks: str, place: str
) -> None:
    (line,) = told(tmp_path, TWO + checks)
    assert line.startswith(f"{place}: ")
    assert " of a case with 2; turns count from 1 to 2" in line


def test_the_turns_that_the_case_has_may_be_asked(tmp_path: Path) -> None:
    checks = "assertions: [{contains: x, turn: 1}, {contains: x, turn: 2}]\n"
    assert told(tmp_path, TWO + checks) == []


def test_a_turn_of_the_suites_default_gate_is_checked_in_each_case(tmp_path: Path) -> None:
    suite = "cases: {defaults: {expect: {tool_called_in_turn: {turn: 2, kind: shell}}}}\n"
    assert told(tmp_path, TWO, suite) == []
    assert len(told(tmp_path, "input: {prompt: a}\n", suite)) == 1


def follow_ups(depth: int) -> str:
    inner = "{contains: x}"
    for _ in range(depth):
        inner = f"{{prompt: sure?, assertions: [{inner}]}}"
    return f"input: {{turns: [{{content: a, assertions: [{inner}]}}]}}\n"


def test_follow_ups_may_be_five_deep(tmp_path: Path) -> None:
    assert told(tmp_path, follow_ups(5)) == []
    (line,) = told(tmp_path, follow_ups(6))
    assert "follow-ups nested 6 deep; the limit is 5" in line


def test_a_slash_command_begins_with_a_slash(tmp_path: Path) -> None:
    turn = "input: {{turns: [{{content: '{}', slash_command: true}}]}}\n"
    assert told(tmp_path, turn.format("/compact") + CHECKS) == []
    (line,) = told(tmp_path, turn.format("compact") + CHECKS)
    assert line.startswith("1:27: input.turns[0].content: ")


def test_a_message_that_begins_with_a_slash_is_text_without_being_told_so(tmp_path: Path) -> None:
    assert problems(tmp_path, "input: {prompt: /etc/hosts is a file}\n" + CHECKS) == []


def test_a_case_that_checks_nothing_is_warned_of(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "input: {prompt: a}\n")
    assert problem.severity == "warning"
    assert "nothing is checked" in problem.message


@pytest.mark.parametrize(
    ("suite", "place"),
    [("name: d\nskills: [{path: gone}]\n", (2, 17)), ("name: d\nneighbours: [gone]\n", (2, 14))],
)
def test_a_skill_that_is_not_there_is_warned_of(
    tmp_path: Path, suite: str, place: tuple[int, int]
) -> None:
    (problem,) = problems(tmp_path, "input: {prompt: a}\n" + CHECKS, suite)
    assert (problem.severity, problem.line, problem.column) == ("warning", *place)
    assert problem.message.startswith("no such directory: gone")


@pytest.mark.parametrize(
    ("check", "field"),
    [
        ("contains: '<<a>> files'", "assertions[0].contains"),
        ("tool_called: {kind: shell, args: {command: {matches: 'x<<a>>'}}}",
         "assertions[0].tool_called"),
        ("any_of: [{contains: x}, {not_contains: '<< a >>'}]",
         "assertions[0].any_of[1].not_contains"),
        ("json: {path: $.a, equals: {b: ['<<a>>']}}", "assertions[0].json"),
    ],
)  # fmt: skip
def test_a_template_in_a_check_is_a_warning_where_it_stands(
    tmp_path: Path, check: str, field: str
) -> None:
    case = f"vars: {{a: 1}}\ninput: {{prompt: 'x <<a>>'}}\nassertions:\n  - {check}\n"
    (problem,) = problems(tmp_path, case)

    assert problem.severity == "warning"
    assert (problem.line, problem.field) == (4, field)
    assert problem.message.startswith("<<a>> is not filled in in checks")


def test_a_template_in_a_check_may_be_of_a_captured_name(tmp_path: Path) -> None:
    check = "assertions: [{contains: '<<a>>'}]"
    turns = f"input: {{turns: [{{content: y, capture: [{KEEP_A}], {check}}}]}}\n"
    (problem,) = problems(tmp_path, turns)

    assert problem.field == "input.turns[0].assertions[0].contains"


@pytest.mark.parametrize(
    "case",
    [
        "vars: {a: 1}\ninput: {prompt: '\\<<a>>'}\nassertions: [{contains: '<<a>>'}]\n",
        "input: {prompt: x}\nassertions: [{contains: '<<a>>'}, {contains: 'x << y'}]\n",
        "vars: {a: 1}\ninput: {turns: [{content: x, assertions: [{contains: y}, ASK]}]}\n",
    ],
)
def test_signs_that_are_meant_so_in_a_check_are_fine(tmp_path: Path, case: str) -> None:
    ask = "{prompt: '<<a>>', assertions: [{contains: z}]}"
    assert problems(tmp_path, case.replace("ASK", ask)) == []
