"""What a single field cannot know: names, turn numbers, switches that must fit together."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.engines.claude_code.engine import ClaudeCode
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
    ("case", "place"),
    [
        ("input:\n  prompt: |\n    first\n    second <<a>>\n", "2:11"),
        (f"input: {{turns: [{{content: '<<a>>', capture: [{KEEP_A}]}}]}}\n", "1:27"),
        ("vars: {A: 1}\ninput: {prompt: '<<a>>'}\n", "2:17"),
        ("context: {files: {f: '<<a>>'}}\ninput: {prompt: y}\n", "1:22"),
    ],
)
def test_a_name_that_is_not_is_told_where_it_stands(tmp_path: Path, case: str, place: str) -> None:
    (line,) = told(tmp_path, case + CHECKS)
    assert line.startswith(f"{place}: ")
    assert "<<a>> is not defined" in line


TWO = "input: {turns: [a, b]}\n"


@pytest.mark.parametrize(
    ("checks", "place"),
    [
        ("assertions: [{contains: x, turn: 3}]\n", "2:34"),
        ("assertions: [{any_of: [{contains: x, turn: 9}]}]\n", "2:44"),
        ("judge: {success: [{contains: x, turn: 3}]}\n", "2:39"),
        ("expect: {tool_called_in_turn: {turn: 3, kind: shell}}\n", "2:38"),
    ],
)
def test_a_turn_that_the_case_does_not_have_is_told_wherever_it_is_asked(
    tmp_path: Path, checks: str, place: str
) -> None:
    (line,) = told(tmp_path, TWO + checks)
    assert line.startswith(f"{place}: ")
    assert " of a case with 2; turns count from 1 to 2" in line


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
    """F19: and has a name."""
    turn = "input: {{turns: [{{content: '{}', slash_command: true}}]}}\n"
    assert told(tmp_path, turn.format("/compact") + CHECKS) == []
    for wrong in ("compact", "/", "/ compact"):
        (line,) = told(tmp_path, turn.format(wrong) + CHECKS)
        assert line.startswith("1:27: input.turns[0].content: ")
        assert not ClaudeCode().is_slash_command(wrong)
    assert ClaudeCode().is_slash_command("/compact")


ERROR = "a run of this suite would be an error"


@pytest.mark.parametrize(
    ("suite", "where", "then"),
    [("skills: [{path: gone}]\n", "skills[0].path", ERROR),
     ("distractors: [gone]\n", "distractors[0]", ERROR),
     ("skills: [{path: .}]\n", "skills[0].path", ERROR),
     ("schema_version: v1alpha1\nskills: [{path: .}]\n", "skills[0].path",
      "what is there is installed all the same")],
)  # fmt: skip
def test_a_skill_without_skill_file_is_warned_of(
    tmp_path: Path, suite: str, where: str, then: str
) -> None:
    """F20: skill-up installs what is there, so its suites are no errors here."""
    (problem,) = problems(tmp_path, "input: {prompt: a}\n" + CHECKS, suite)
    assert (problem.severity, problem.field, problem.fix) == ("warning", where, then)
    assert problem.message.startswith("there is no SKILL.md in ")


def test_a_file_that_is_not_there_or_an_empty_script_is_told_at_its_place(tmp_path: Path) -> None:
    make_tree(tmp_path, {"s/golden/there.txt": "x", "s/empty.sh": ""})
    case = """\
context:
  fixture: fixtures/none
  git: {init: true, apply_diff: fixtures/none.patch}
input: {prompt: hi}
expect: {golden_file: golden/none.txt}
assertions:
  - any_of: [{golden_file: golden/there.txt}, {golden_file: golden/neither.txt}, {script: empty.sh}]
"""
    assert [(p.severity, p.line, p.message.split()[3]) for p in problems(tmp_path, case)] == [
        ("warning", 2, "fixtures/none"),
        ("warning", 3, "fixtures/none.patch"),
        ("warning", 5, "golden/none.txt"),
        ("warning", 7, "golden/neither.txt"),
        ("error", 7, "it"),  # empty.sh is empty
    ]


CAPTURED = (
    "input: {turns: [{content: x, assertions: [FIRST], post_condition: {GATE}, capture: ["
    + KEEP_A
    + "]}, {content: y, assertions: [SECOND]}]}\nassertions: [LAST]\n"
)


def of_parts(**parts: str) -> str:
    text = CAPTURED
    for name in ("first", "second", "last"):
        text = text.replace(name.upper(), parts.get(name, "{contains: x}"))
    return text.replace("GATE", parts.get("gate", "matches: x"))


@pytest.mark.parametrize(
    "parts",
    [
        {"first": "{contains: '<<a>>'}"},
        {"second": "{any_of: [{matches: 'v<<a>>'}, {turn: 1, contains: '{{a}}'}]}"},
        {"last": "{tool_called: {kind: shell, args: {command: '<< a >>'}}}"},
        {"first": "{contains: x, prompt: 'And <<a>>?', assertions: [{contains: '<<a>>'}]}"},
        {"first": "{contains: '{{ b }} <<b>>', literal: true}"},
        {"last": "{rubric: {criteria: [x], prompt: 'Is {{output}} about <<a>>?'}}"},
        {"last": "{turn_response_contains: {turn: 2, contains_any: ['<<a>>']}}"},
    ],
)
def test_names_in_checks_are_those_that_their_turn_knows(
    tmp_path: Path, parts: dict[str, str]
) -> None:
    """U1: a check may use what is captured up to the end of the turn that it looks at."""
    assert told(tmp_path, of_parts(**parts)) == []


@pytest.mark.parametrize(
    ("parts", "field", "written"),
    [
        ({"last": "{contains: '<<b>> files'}"}, "assertions[0].contains", "<<b>>"),
        ({"last": "{none_of: [{contains: x}, {matches: 'x{{ b }}'}]}"},
         "assertions[0].none_of[1].matches", "{{ b }}"),
        ({"last": "{json: {path: $.a, equals: {b: ['<<b>>']}}}"}, "assertions[0].json", "<<b>>"),
        ({"gate": "contains: '<<a>>'"}, "input.turns[0].post_condition.contains", "<<a>>"),
        ({"last": "{golden_file: 'golden/<<a>>.md'}"}, "assertions[0].golden_file", "<<a>>"),
        ({"last": "{rubric: {criteria: [x], prompt: 'About <<b>>?'}}"},
         "assertions[0].rubric", "<<b>>"),
        ({"first": "{contains: x, prompt: '{{b}}?', assertions: [{contains: y}]}"},
         "input.turns[0].assertions[0].prompt", "{{b}}"),
    ],
)  # fmt: skip
def test_a_name_in_a_check_that_nothing_defines_is_told_where_it_stands(
    tmp_path: Path, parts: dict[str, str], field: str, written: str
) -> None:
    """U1, V12"""
    case = of_parts(**parts)
    (line,) = told(tmp_path, case)
    at = next(n for n, text in enumerate(case.splitlines(), start=1) if written in text)
    assert line.startswith(f"{at}:")
    assert line.partition(" ")[2].startswith(f"{field}: {written} is not defined")
    assert "`literal: true`" in line


@pytest.mark.parametrize(
    ("case", "fine"),
    [
        ("input: {system: '{{a}}', prompt: x}",
         "input: {system: '{{a}}', prompt: x, literal: true}"),
        ("input: {prompt: '${{ secrets.KEY }}'}", "input: {prompt: '$\\{{ secrets.KEY }}'}"),
        ("input: {turns: ['{{a}}']}", "input: {turns: [{content: '{{a}}', literal: true}]}"),
        ("input: {prompt: x, answers: [{question: '{{a}}', answer: y}]}",
         "input: {prompt: x, answers: [{question: '{{a}}', answer: y, literal: true}]}"),
        ("input: {history: [{role: user, content: '{{a}}'}], prompt: x}",
         "input: {history: [{role: user, content: '{{a}}', literal: true}], prompt: x}"),
        ("input: {prompt: x}\ncontext: {files: {f: '{{a}}'}}",
         "input: {prompt: x}\ncontext: {literal: true, files: {f: '{{a}}'}}"),
        ("input: {prompt: x}\nexpected_output: '{{a}}'",
         "input: {prompt: x}\nexpected_output: '\\{{a}}'"),
    ],
)  # fmt: skip
def test_double_braces_are_templates_unless_the_text_is_literal(
    tmp_path: Path, case: str, fine: str
) -> None:
    """V12: a name that nothing defines is no text for the agent."""
    (line,) = told(tmp_path, f"{case}\n{CHECKS}")
    assert "}} is not defined" in line
    assert told(tmp_path, f"{fine}\n{CHECKS}") == []


@pytest.mark.parametrize(
    ("name", "context", "severity", "fix"),
    [
        ("log-keeper", "", None, ""),
        ("tools:log-keeper", "", None, ""),
        ("'<<a>>'", "", None, ""),
        ("log-keper", "", "error", "did you mean `log-keeper`?"),
        ("log-keper", "context: {setup: [x]}\n", "warning", "did you mean `log-keeper`?"),
        ("pdf", "", "warning", "it installs: keeps-logs, log-keeper, near"),
    ],
)
def test_checks_of_skills_that_the_suite_does_not_install_are_told(
    tmp_path: Path, name: str, context: str, severity: str | None, fix: str
) -> None:
    """V9: `skill_not_used` of a misspelt name passed every time."""
    skill = "---\nname: log-keeper\n---\nKeep them.\n"
    make_tree(tmp_path, {"s/keeps-logs/SKILL.md": skill, "s/near/SKILL.md": "Near.\n"})
    case = f"vars: {{a: x}}\ninput: {{prompt: x}}\n{context}"
    checks = f"assertions: [{{any_of: [{{skill_not_used: {name}}}, {{contains: x}}]}}]\n"
    suite = "name: d\nskills: [{path: keeps-logs}]\ndistractors: [near]\n"

    found = [p for p in problems(tmp_path, case + checks, suite) if "no skill" in p.message]

    expected = [] if severity is None else [(severity, fix)]
    assert [(problem.severity, problem.fix) for problem in found] == expected


@pytest.mark.parametrize(
    ("check", "at", "later"),
    [
        ("{contains: x, turn: last}", "turn", "last"),
        ("{any_of: [{contains: x, turn: 2}]}", "any_of[0].turn", "2"),
        ("{turn_response_contains: {turn: last, contains_any: x}}",
         "turn_response_contains.turn", "last"),
        ("{prompt: Again., assertions: [{contains: x, turn: last}]}", "assertions[0].turn", "last"),
        ("{contains: x, turn: 1}", "", ""),
    ],
)  # fmt: skip
def test_a_turns_own_check_cannot_look_at_a_later_turn(
    tmp_path: Path, check: str, at: str, later: str
) -> None:
    """S6: such a check was asked of what was not there yet."""
    case = f"input:\n  turns:\n    - content: a\n      assertions: [{check}]\n    - b\n"
    said = [line.partition(": ")[2] for line in told(tmp_path, case + CHECKS)]
    where = f"input.turns[0].assertions[0].{at}"
    wanted = f"{where}: a check of turn 1 cannot look at turn `{later}`"
    assert [line.partition("; ")[0].partition("\n")[0] for line in said] == [wanted] * bool(later)
