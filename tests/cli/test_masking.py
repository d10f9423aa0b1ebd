"""Secrets in runs and in judging again: masked, unless the word is one of the files' own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillup.redaction.secrets import is_ordinary
from tests.support.exported import exported
from tests.support.project import Project
from tests.support.session_files import claude_row, text, write_rows
from tests.support.stored import content_of

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
    judge: {model: "scripted:judges/own.yaml"}
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
            "cases/judges/own.yaml": WRITTEN_DOWN,
            "cases/leak.yaml": EDITED,
            "cases/golden.txt": "sk-lab-0123456789\nand more\n",
        }
    )


@pytest.mark.parametrize(
    "options", [(), ("--json",), ("--against", "scripted:cases/judges/own.yaml")]
)
def test_keys_in_an_edited_case_are_masked_wherever_they_would_be_said(
    edited: Project, options: tuple[str, ...]
) -> None:
    outcome = edited.run("judge", "run", "--cases", "cases", *options, env=KEY)

    assert outcome.exit_code in (0, 1), outcome.stderr
    labels = edited.run("label", "run", "--no-page", env=KEY)
    said = outcome.stdout + outcome.stderr + labels.stderr
    said += (edited.root / "labels.csv").read_text() if labels.exit_code == 0 else ""
    said += content_of(edited.root / "run").decode(errors="replace")
    assert [key for key in KEYS if key in said] == []
    assert "***LAB_API_KEY***" in said


def test_a_key_that_is_masked_in_the_record_too_is_no_change(project: Project) -> None:
    case = CASE.replace("contains: LAB_API_KEY", "contains: sk-lab-0123456789")
    project.write({"cases/leak.yaml": case})
    assert project.run("run", "cases", "--out", "run", env=KEY).exit_code == 1
    assert SECRET.encode() not in content_of(project.root / "run")
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


# Where a credential variable holds a word of the run's own files.

ORDINARY = """
    id: walrus-case
    input: {turns: [{content: Go, assertions: [{contains: done}]}]}
    scripted: [{turn: 1, say: It is done.}]
    """


@pytest.fixture
def ordinary(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"cases/eval.yaml": "name: lab\n", "cases/one.yaml": ORDINARY})


@pytest.mark.parametrize("word", ["completed", "walrus-case"])
def test_the_records_are_whole_and_the_variable_is_named_before(
    ordinary: Project, word: str
) -> None:
    run = ordinary.run("run", "cases", "--out", "run", env={"DB_PASSWORD": word})

    assert run.exit_code == 0, run.stderr
    warning = "warning: DB_PASSWORD holds an ordinary word; it cannot be masked"
    assert warning in run.stderr.splitlines()[0]
    assert "***" not in (exported(ordinary.root / "run") / "run.json").read_text()


def test_what_agents_say_of_it_is_whole_the_judges_and_the_users_too_and_when_judged_again(
    ordinary: Project,
) -> None:
    suite = """
        name: lab
        user_simulator:
          engine: scripted
          scripted:
            - {turn: 1, say: '{"message": "Is it a walrus?"}'}
            - {say: '{"stop": "completed", "reason": "done"}'}
        """
    case = """
        id: walrus-case
        input: {conversation: {max_turns: 2, persona: {objective: ask for the walrus}}}
        assertions: [{contains: "Yes, a walrus."}]
        judges:
          - type: agent_judge
            criteria: [{id: named, outcome: the walrus is named}]
            scripted:
              - say: '{"criteria": [{"id": "named", "pass": true, "reason": "a walrus it is"}]}'
        scripted: [{when: ^Is it a walrus, say: "Yes, a walrus."}]
        """
    ordinary.write({"cases/eval.yaml": suite, "cases/one.yaml": case})
    run = ordinary.run("run", "cases", "--out", "run", "--json", env={"DB_PASSWORD": "walrus"})
    (grade,) = run.data["cases"]
    assert grade["status"] == "PASS", run.stdout
    assert "a walrus it is" in run.stdout
    assert "***" not in run.stdout
    for by in ((), ("--cases", "cases")):
        again = ordinary.run("judge", "run", *by, "--json", env={"DB_PASSWORD": "walrus"})
        assert (again.exit_code, again.data["changes"]["trials"]) == (0, 0), again.stderr
        assert "a walrus it is" in again.stdout
        assert "***" not in again.stdout


def test_a_key_that_is_named_and_a_word_is_refused_before_the_first_turn(ordinary: Project) -> None:
    suite = "name: lab\njudge: {model: 'anthropic:m', api_key_env: LAB}\n"
    judged = ORDINARY + "judge: {type: agent_judge, criteria: [It is done]}\n"
    ordinary.write({"cases/eval.yaml": suite, "cases/one.yaml": judged.replace("\n    ", "\n")})

    run = ordinary.run("run", "cases", "--out", "run", env={"LAB": "completed"})

    assert run.exit_code == 2, run.stderr
    assert "LAB, which `api_key_env` names, holds an ordinary word" in run.stderr
    assert not (ordinary.root / "run").exists()


def test_all_keys_of_the_files_of_a_run_are_known_words(ordinary: Project) -> None:
    run = ordinary.run("run", "cases", "--out", "run", "--report", "benchmark")
    assert run.exit_code == 0, run.stderr

    run_files = [ordinary.root / "run", exported(ordinary.root / "run")]
    files = [file for folder in run_files for file in folder.rglob("*.json*")]
    texts = [file.read_text() for file in files]
    whole = [
        [text] if file.suffix == ".json" else text.splitlines()
        for file, text in zip(files, texts, strict=True)
    ]
    keys = {key for lines in whole for line in lines for key in keys_of(json.loads(line))}

    assert len(keys) > 50
    assert [key for key in keys if len(key) >= 6 and not is_ordinary(key)] == []


def keys_of(data: Any) -> Iterator[str]:
    """Keys and what kind of thing something is, but for names of cases and skills."""
    if isinstance(data, dict):
        yield from (key for key in data if "walrus" not in key)
        yield from (data[key] for key in ("type", "event", "status", "variant") if key in data)
        yield from (key for item in data.values() for key in keys_of(item))
    elif isinstance(data, list):
        yield from (key for item in data for key in keys_of(item))
