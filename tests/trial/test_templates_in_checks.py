"""Variables in checks: filled in from what was known when the checked turn ended."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.project import Project

CASE = r"""
vars: {folder: data, file: 'a[1].txt', later2: ''}
context: {files: {"golden.txt": x}}
input:
  turns:
    - content: Which version?
      capture: [{variable: version, pattern: 'version (\S+)'}]
      assertions: [FIRST]
    - content: And now?
      capture: [{variable: version, pattern: 'version (\S+)'}]
      assertions: [SECOND]
assertions: [LAST]
scripted:
  - turn: 1
    say: "I propose version 1.5"
  - turn: 2
    steps: [{run: 'mkdir -p data && echo 2x0 > "data/a[1].txt"'}]
    say: "Now it is version 2.0"
"""
EASY = "{contains: version}"


def run_case(project: Project, *paths: str, **parts: str) -> tuple[dict[str, Any], Any]:
    case = CASE
    for name in ("first", "second", "last"):
        case = case.replace(name.upper(), parts.get(name, EASY))
    project.write(
        {"eval.yaml": "name: x\n", "cases/a.yaml": case, "data.txt": "Now it is version 2.0\n"}
    )
    outcome = project.run("run", ".", "--json", "--out", "run", *paths)
    return outcome.data["cases"][0], outcome


# The file has 2x0, which 2.0 as a pattern would match.
CHECKS = {
    "first": [("{contains: 'version <<version>>'}", True), ("{contains: '2.0'}", False)],
    "second": [
        ("{contains: 'version {{ version }}'}", True),
        ("{turn: 1, contains: 'version <<version>>'}", True),
        ("{any_of: [{contains: zzz}, {turn: 1, contains: 'version <<version>>'}]}", True),
    ],
    "last": [
        ("{turn_response_contains: {turn: 1, contains_all: ['<<version>>']}}", True),
        ("{matches: 'version <<version>>$'}", True),
        ("{file_contains: {path: 'data/*', matches: '<<version>>'}}", False),
        ("{files_exist: ['<<folder>>/<<file>>']}", True),
        ("{files_not_exist: ['<<folder>>/<<file>>']}", False),
        ("{glob: '*it is version <<version>>'}", True),
        ("{tool_called: {kind: shell, args: {command: {contains: '<<folder>>'}}}}", True),
        ("{golden_file: '<<folder>>.txt'}", True),
        ("{contains: 'is \\<<version>>'}", False),
        ("{contains: '<<version>>', literal: true}", False),
    ],
}


def test_a_check_sees_the_values_of_its_turn(project: Project) -> None:
    """U1: in text, path, pattern (escaped), tool argument; the name it has reports the value."""
    parts = {part: ", ".join(check for check, _ in checks) for part, checks in CHECKS.items()}
    grade, outcome = run_case(project, **parts)
    again = project.run("judge", "run", "--json").data["cases"][0]["grade"]
    for one in (grade, again):
        results = [*one["turns"][0]["checks"], *one["turns"][1]["checks"], *one["assertions"]]
        expected = [(check, passes) for checks in CHECKS.values() for check, passes in checks]
        for (check, passes), result in zip(expected, results, strict=True):
            assert result["passed"] is passes, (check, outcome.stderr)
            if "\\<<" not in check and "literal" not in check:
                assert "<<" not in result["name"] + result["expected"]


def test_an_edited_case_gives_checks_its_own_vars(project: Project) -> None:
    """U1: `judge --cases` reads values that were edited since, and keeps the captured ones."""
    run_case(project, last="{contains: '<<folder>> <<version>>'}")
    edited = (project.root / "cases/a.yaml").read_text().replace("folder: data", "folder: version")
    project.write({"cases/a.yaml": edited})
    outcome = project.run("judge", "run", "--cases", ".", "--json")
    grade = outcome.data["cases"][0]["grade"]
    assert grade["status"] == "PASS", outcome.stdout
    assert grade["assertions"][0]["name"] == 'contains "version 2.0"'


@pytest.mark.parametrize(
    "check", ["{contains: <<later>>}", "{none_of: [{contains: '{{later}}'}]}", "{glob: <<later2>>}"]
)
def test_a_name_without_a_value_is_an_error_of_the_template(project: Project, check: str) -> None:
    """U1: never a verdict: what was to be looked for is not known."""
    run_case(project)
    edited = (project.root / "cases/a.yaml").read_text()
    edited = edited.replace(f"assertions: [{EASY}]\nscripted", f"assertions: [{check}]\nscripted")
    edited = edited.replace(
        f"      assertions: [{EASY}]\nassertions",
        f"      assertions: [{EASY}]\n"
        "    - {content: z, capture: [{variable: later, pattern: '(y)'}]}\nassertions",
    )
    project.write({"cases/a.yaml": edited})
    outcome = project.run("judge", "run", "--cases", ".", "--json")
    grade = outcome.data["cases"][0]["grade"]
    assert grade["status"] == "ERROR", outcome.stdout + outcome.stderr
    assert grade["error"]["kind"] == "template"
    assert "later" in grade["error"]["message"]


def test_a_message_of_which_empty_values_leave_nothing_is_not_sent(project: Project) -> None:
    case = "vars: {v: ''}\ninput: {prompt: ' <<v>>'}\nscripted: [{say: hello}]\n"
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})
    grade = project.run("run", ".", "--json").data["cases"][0]
    assert (grade["error"]["kind"], grade["turns"][0]["response"]) == ("template", "")


FOLLOWED = r"""
input:
  turns:
    - content: Open a ticket.
      capture: [{variable: id, pattern: '(T-\d+)'}]
      assertions:
        - contains: '<<id>> is open'
          prompt: 'What of <<id>>?'
          assertions: [{contains: '<<id>> is open'}]
assertions: [{contains: '<<id>>'}]
scripted:
  - {turn: 1, say: "It is T-7."}
  - {turn: 2, when: T-7, say: "ANSWER"}
"""


@pytest.mark.parametrize(
    ("answer", "id_"), [("T-7 is open", "T-7"), ("T-8 is open, not T-7 is open", "T-8")]
)
def test_follow_ups_and_their_checks_see_what_the_first_answer_gave(
    project: Project, answer: str, id_: str
) -> None:
    """U1: captures come before follow-ups, and are taken anew from the last answer."""
    case = FOLLOWED.replace("ANSWER", answer)
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})
    grade = project.run("run", ".", "--json").data["cases"][0]
    turn = grade["turns"][0]
    assert (grade["status"], turn["captures"]) == ("PASS", {"id": id_}), grade["reason"]
    assert turn["follow_ups"][0]["content"] == "What of T-7?"


def test_what_the_first_answer_gave_stands_where_the_last_has_nothing(project: Project) -> None:
    """U1: a follow-up's answer that says nothing of it takes no value away."""
    case = FOLLOWED.replace("ANSWER", "Fine.").replace("[{contains: '<<id>> is open'}]", "[Fine]")
    case = case.replace("[Fine]", "[{contains: fine}]").replace("[{contains: '<<id>>'}]", "[]")
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})
    grade = project.run("run", ".", "--json").data["cases"][0]
    assert (grade["status"], grade["turns"][0]["captures"]) == ("PASS", {"id": "T-7"})


LITERAL = r"""
vars: {a: 1}
context: {literal: LIT, files: {f.txt: '{{a}} <<a>>'}}
input:
  literal: LIT
  system: '{{a}} <<a>>'
  history:
    - {role: user, content: '{{a}} <<a>>', literal: LIT}
    - {role: assistant, content: ok}
  turns:
    - {content: '{{a}} <<a>>', literal: LIT}
assertions:
  - {equals: 'TEXT TEXT TEXT'}
  - {file_contains: {path: f.txt, content: 'TEXT'}}
scripted:
  - say: '{{user}} {{history.1.user}} {{system}}'
"""


@pytest.mark.parametrize(("literal", "text"), [("false", "1 1"), ("true", r"\{{a}} \<<a>>")])
def test_both_spellings_are_filled_in_everywhere_or_nowhere(
    project: Project, literal: str, text: str
) -> None:
    """V12: messages, system, history and files."""
    case = LITERAL.replace("LIT", literal).replace("TEXT", text)
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})
    outcome = project.run("run", ".", "--json")
    assert outcome.data["cases"][0]["status"] == "PASS"


READ = r"""
vars: {tone: calm}
input:
  turns:
    - content: Which version?
      capture: [{variable: version, pattern: 'version (\S+)'}]
      assertions: [names <<version>>, {expected_output: 'version {{version}}, <<tone>>'}]
scripted: [{say: "version 1.5"}]
"""


def test_a_model_is_asked_for_the_values(project: Project) -> None:
    """U1: rubric lines and expected outputs reach the judge with values in them."""
    lines = ["names 1.5", "version 1.5, calm"]
    criteria = [{"when": re.escape(line), "found": "version"} for line in lines]
    suite = 'name: x\njudge: {model: "scripted:lab/judge.yaml"}\n'
    project.write(
        {
            "eval.yaml": suite,
            "lab/judge.yaml": json.dumps({"criteria": criteria}),
            "cases/a.yaml": READ,
        }
    )
    outcome = project.run("run", ".", "--json")
    grade = outcome.data["cases"][0]
    assert grade["status"] == "PASS", outcome.stderr + str(grade["turns"])
    assert grade["turns"][0]["checks"][1]["expected"] == '"version 1.5, calm"'
