"""`skillup session to-case`, as the command line calls it: files written, none lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.session_files import claude_row, text, write_rows


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A session, and the workspace it was held in."""
    project = Project(tmp_path)
    rows = [
        claude_row("user", "How many files?", "1", None, cwd=str(project.root / "work")),
        claude_row("assistant", text("There are 3 files."), "2", "1"),
    ]
    write_rows(project.root / "session.jsonl", rows)
    return project


def test_without_out_the_case_is_printed_and_judges_its_session(project: Project) -> None:
    made = project.run("session", "to-case", "session.jsonl")
    assert made.exit_code == 0, made.stderr
    assert made.stderr == ""
    project.write({"lone/eval.yaml": "name: lone\n", "lone/case.yaml": made.stdout})
    judged = project.run("judge", "session.jsonl", "--cases", "lone/case.yaml")
    assert judged.exit_code == 0, judged.stderr


def test_a_case_without_a_suite_gets_one_and_both_are_valid(project: Project) -> None:
    made = project.run("session", "to-case", "session.jsonl", "--out", "cases/files.yaml")
    assert made.exit_code == 0, made.stderr
    assert "wrote cases/files.yaml" in made.stderr
    assert "wrote cases/eval.yaml" in made.stderr
    valid = project.run("validate", "cases")
    assert (valid.exit_code, valid.stderr) == (0, "1 suite, 1 case: ok\n")


def test_nothing_is_overwritten_without_force(project: Project) -> None:
    project.write({"case.yaml": "mine"})
    refused = project.run("session", "to-case", "session.jsonl", "--out", "case.yaml")
    assert (refused.exit_code, "--force" in refused.stderr) == (2, True)
    assert (project.root / "case.yaml").read_text("utf-8") == "mine"
    assert not (project.root / "eval.yaml").exists()
    assert project.run(
        "session", "to-case", "session.jsonl", "--out", "case.yaml", "--force"
    ).exit_code == 0  # fmt: skip
    assert "How many files?" in (project.root / "case.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("none.jsonl",), "is no file"),
        (("session.jsonl", "--out", "case.txt"), "not a YAML file"),
        (("session.jsonl", "--out", "eval.yaml"), "a suite's name"),
    ],
)
def test_mistakes_are_usage_errors(project: Project, arguments: tuple[str, ...], says: str) -> None:
    outcome = project.run("session", "to-case", *arguments)
    assert outcome.exit_code == 2
    assert says in outcome.stderr
