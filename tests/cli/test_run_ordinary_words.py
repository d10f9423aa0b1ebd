"""`skillup run` where a credential variable holds a word of the run's own files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillup.redaction.secrets import is_ordinary
from tests.support.project import Project

CASE = """
    id: walrus-case
    input: {turns: [{content: Go, assertions: [{contains: done}]}]}
    scripted: [{turn: 1, say: It is done.}]
    """


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"cases/eval.yaml": "name: lab\n", "cases/one.yaml": CASE})


@pytest.mark.parametrize("word", ["completed", "walrus-case"])
def test_the_records_are_whole_and_the_variable_is_named_before(
    project: Project, word: str
) -> None:
    run = project.run("run", "cases", "--out", "run", env={"DB_PASSWORD": word})

    assert run.exit_code == 0, run.stderr
    warning = "warning: DB_PASSWORD holds an ordinary word; it cannot be masked"
    assert warning in run.stderr.splitlines()[0]
    assert "***" not in (project.root / "run/run.json").read_text()
    shown = project.run("judge", "run", env={"DB_PASSWORD": word})
    assert shown.exit_code == 0, shown.stderr


def test_what_agents_say_of_it_is_whole_the_judges_and_the_users_too(project: Project) -> None:
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
    project.write({"cases/eval.yaml": suite, "cases/one.yaml": case})
    run = project.run("run", "cases", "--out", "run", "--json", env={"DB_PASSWORD": "walrus"})
    (grade,) = run.data["cases"]
    assert grade["status"] == "PASS", run.stdout
    assert "a walrus it is" in run.stdout
    assert "***" not in run.stdout


@pytest.mark.parametrize("by", [(), ("--cases", "cases")])
def test_judging_again_spares_what_the_run_spared(project: Project, by: tuple[str, ...]) -> None:
    checks = "{content: Go, assertions: [{contains: done}, {not_contains: no walrus}]}"
    case = CASE.replace("{content: Go, assertions: [{contains: done}]}", checks)
    project.write({"cases/one.yaml": case})
    assert project.run("run", "cases", "--out", "run", env={"DB_PASSWORD": "walrus"}).exit_code == 0

    judged = project.run("judge", "run", *by, "--json", env={"DB_PASSWORD": "walrus"})

    assert judged.exit_code == 0, judged.stderr
    assert "no walrus" in judged.stdout
    assert "***" not in judged.stdout


def test_a_key_that_is_named_and_a_word_is_refused_before_the_first_turn(project: Project) -> None:
    suite = "name: lab\njudge: {model: 'anthropic:m', api_key_env: LAB}\n"
    judged = CASE + "judge: {type: agent_judge, criteria: [It is done]}\n"
    project.write({"cases/eval.yaml": suite, "cases/one.yaml": judged.replace("\n    ", "\n")})

    run = project.run("run", "cases", "--out", "run", env={"LAB": "completed"})

    assert run.exit_code == 2, run.stderr
    assert "LAB, which `api_key_env` names, holds an ordinary word" in run.stderr
    assert not (project.root / "run").exists()


def test_all_keys_of_the_files_of_a_run_are_known_words(project: Project) -> None:
    run = project.run("run", "cases", "--out", "run", "--report", "benchmark")
    assert run.exit_code == 0, run.stderr

    files = [*(project.root / "run").rglob("*.json"), *(project.root / "run").rglob("*.jsonl")]
    texts = [file.read_text() for file in files]
    whole = [[text] if file.suffix == ".json" else text.splitlines()
             for file, text in zip(files, texts, strict=True)]  # fmt: skip
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
