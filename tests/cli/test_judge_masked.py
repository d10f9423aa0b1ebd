"""`skillup judge` after a run in which a secret was said: the same bytes again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.session_files import claude_row, text, write_rows

SECRET = "sk-lab-0123456789"
KEY = {"LAB_API_KEY": SECRET}
CASE = """
    id: leak
    input:
      turns:
        - content: What is the key?
          capture:
            - {variable: key, pattern: 'key is (?P<value>\\S+)', default: none}
          assertions:
            - matches: 'key is sk-lab-\\d+'
            - contains: LAB_API_KEY
            - max_tokens: 4
        - content: Write <<key>> down
          assertions:
            - file_contains: {path: key.txt, matches: 'sk-lab'}
    scripted:
      - turn: 1
        say: The key is sk-lab-0123456789
      - turn: 2
        steps:
          - write: {path: key.txt, content: sk-lab-0123456789}
        say: It is written.
    """


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"cases/eval.yaml": "name: lab\n", "cases/leak.yaml": CASE})


EDITED = """
    id: leak
    input:
      turns:
        - content: What is the key?
          assertions:
            - contains: sk-lab-0123456789
            - contains: sk-lab-0123456789 of the suite
            - "it says sk-lab-0123456789"
        - content: Write it down
          assertions:
            - contains: sk-suite-0123456789
            - golden_file: {path: golden.txt, file: key.txt}
"""
SUITE = """
    name: lab
    judge: {model: "scripted:judge.yaml"}
    environment: {env: {LAB_SUITE_KEY: sk-suite-0123456789}}
"""
WRITTEN_DOWN = "criteria: [{found: sk-lab-0123456789 and more}]\n"
KEYS = ("sk-lab-0123456789", "sk-suite-0123456789")


@pytest.fixture
def edited(project: Project) -> Project:
    """A run, and its case with keys in what it looks for."""
    ran = project.run("run", "cases", "--out", "run", env=KEY)
    assert ran.exit_code == 1, ran.stderr
    return project.write(
        {
            "cases/eval.yaml": SUITE,
            "cases/judge.yaml": WRITTEN_DOWN,
            "cases/leak.yaml": EDITED,
            "cases/golden.txt": "sk-lab-0123456789\nand more\n",
        }
    )


@pytest.mark.parametrize(
    "options",
    [(), ("--json",), ("--against", "scripted:cases/judge.yaml"), ("--write-labels", "labels.csv")],
)
def test_keys_in_an_edited_case_are_masked_wherever_they_would_be_said(
    edited: Project, options: tuple[str, ...]
) -> None:
    outcome = edited.run("judge", "run", "--cases", "cases", *options, env=KEY)

    assert outcome.exit_code in (0, 1), outcome.stderr
    files = [p for p in edited.root.rglob("*") if p.is_file() and "cases" not in p.parts]
    said = "".join(
        [outcome.stdout, outcome.stderr, *(p.read_text("utf-8", "replace") for p in files)]
    )
    assert [key for key in KEYS if key in said] == []
    assert "***LAB_API_KEY***" in said


def test_a_key_that_is_masked_in_the_record_too_is_no_change(project: Project) -> None:
    case = CASE.replace("contains: LAB_API_KEY", "contains: sk-lab-0123456789")
    project.write({"cases/leak.yaml": case})
    assert project.run("run", "cases", "--out", "run", env=KEY).exit_code == 1
    trial = project.root / "run/trials/leak/scripted/with_skill/1"
    files = [(trial / name).read_bytes() for name in ("grading.json", "record.json")]
    assert SECRET.encode() not in b"".join(files)
    for options in ((), ("--cases", "cases")):
        again = project.run("judge", "run", *options, env=KEY)
        assert (again.exit_code, "nothing changed" in again.stderr) == (1, True), again.stderr


def test_a_key_in_a_variable_that_only_the_judge_names_is_masked(project: Project) -> None:
    project.run("run", "cases", "--out", "run", env=KEY)
    suite = 'name: lab\njudge: {model: "anthropic:m", api_key_env: FOR_JUDGES}\n'
    project.write({"cases/eval.yaml": suite})
    project.write({"cases/leak.yaml": CASE.replace("LAB_API_KEY", "the-judges-own")})

    again = project.run("judge", "run", "--cases", "cases", env={"FOR_JUDGES": "the-judges-own"})

    assert again.exit_code == 1, again.stderr
    assert "the-judges-own" not in again.stdout + again.stderr
    assert "***FOR_JUDGES***" in again.stdout + again.stderr


def test_a_session_is_judged_as_it_is_and_shown_without_keys(
    project: Project, tmp_path: Path
) -> None:
    said = text("It is sk-lab-0123456789.")
    rows = [claude_row("user", "Go", "1", None), claude_row("assistant", said, "2", "1")]
    session = write_rows(tmp_path / "s.jsonl", rows)
    case = "input: {turns: [{content: Go, assertions: [{contains: sk-lab-0123456789}]}]}\n"
    project.write({"lone/eval.yaml": "name: lone\n", "lone/one.yaml": case})

    outcome = project.run("judge", str(session), "--cases", "lone/one.yaml", "--json", env=KEY)

    assert outcome.exit_code == 0, outcome.stderr
    assert SECRET not in outcome.stdout
    assert "***LAB_API_KEY***" in outcome.stdout
