"""A session where a suite or a dataset belongs, and the other way round."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.session_files import claude_row, text, write_rows

CLAUDE = [
    {"type": "summary", "summary": "x", "leafUuid": "2"},
    claude_row("user", "How many files?", "1", None),
    claude_row("assistant", text("3."), "2", "1"),
]
CODEX = [{"timestamp": "t", "type": "session_meta", "payload": {"id": "1", "cwd": "/p"}}]
RECORDING = [{"type": "thread.started", "thread_id": "1"}]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("verb", ["run", "validate", "list"])
@pytest.mark.parametrize(
    ("rows", "cli"), [(CLAUDE, "Claude Code"), (CODEX, "Codex"), (RECORDING, "Codex")]
)
def test_a_session_is_no_dataset_and_what_to_do_with_it_is_said(
    project: Project, verb: str, rows: list[object], cli: str
) -> None:
    write_rows(project.root / "held.jsonl", rows)
    outcome = project.run(verb, "held.jsonl")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    error, hint = outcome.stderr.splitlines()
    assert error == f"error: held.jsonl: this is a session of {cli}, not a suite or a dataset"
    assert "`skillup judge held.jsonl --cases CASE`" in hint
    assert "`skillup session to-case held.jsonl`" in hint


def test_an_item_may_have_the_keys_of_a_session(project: Project) -> None:
    item = {"id": "1", "timestamp": "t", "sessionId": "s", "input": {"query": "hi"}}
    write_rows(project.root / "items.jsonl", [item])
    assert project.run("validate", "items.jsonl").exit_code == 0


def test_judging_a_file_that_is_no_session_says_so_before_the_cases_are_counted(
    project: Project,
) -> None:
    case = "input: {prompt: hi}\nassertions: [{contains: x}]\n"
    project.write({"s/eval.yaml": "name: s\n", "s/a.yaml": case, "s/b.yaml": case})
    (project.root / "items.jsonl").write_text(json.dumps({"input": {"query": "hi"}}) + "\n")
    outcome = project.run("judge", "items.jsonl", "--cases", "s")
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("error: items.jsonl is no session of Claude Code or Codex\n")
