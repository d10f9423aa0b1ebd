"""`skillup session`: list, show and to-case."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from skillup.cli.main import app_for
from tests.support.project import Project
from tests.support.session_files import claude_row, codex_meta, said, text, write_rows


def run(*arguments: str) -> int:
    code = app_for(["session"])(["session", *arguments], standalone_mode=False)
    return code if isinstance(code, int) else 0


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of each CLI."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    rows = [
        claude_row("user", "first words", "1", None),
        claude_row("assistant", text("an answer"), "2", "1"),
    ]
    write_rows(tmp_path / "claude" / "projects" / "-project" / "s1.jsonl", rows)
    rollout = tmp_path / "codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-t1.jsonl"
    write_rows(rollout, [codex_meta(cwd="/other"), *said("user", "other words")])
    return tmp_path


def test_sessions_are_listed_all_or_those_of_a_project(
    homes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list", "--json", "--engine", "claude_code") == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["engine"] == "claude_code"
    assert row["session_id"] == "s1"
    assert row["cwd"] == "/project"
    assert (row["turns"], row["turns_complete"]) == (1, True)
    assert row["first_words"] == "first words"
    assert row["path"] == str(homes / "claude/projects/-project/s1.jsonl")
    assert row["modified"].endswith("+00:00")
    assert run("list", "--json", "--project", "/other") == 0
    assert [row["session_id"] for row in json.loads(capsys.readouterr().out)] == ["t1"]
    assert run("list", "--project", "/nowhere") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "no sessions of /nowhere" in err


def test_a_session_is_shown_as_a_transcript_or_as_json(
    homes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", "s") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("claude_code s1\n")
    assert "turn 1  user\n    first words\nturn 1  agent\n    an answer" in shown
    assert shown.endswith("\n1 turn\n")
    assert run("show", "t1", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    at = {"line": 3, "timestamp": "2026-01-01T00:00:00.000Z", "turn": 1}
    assert data["entries"] == [{**at, "role": "user", "text": "other words"}]
    about = data["session"]
    assert (about["engine"], about["session_id"], about["turns"]) == ("codex", "t1", 1)


# `skillup session to-case`, as the command line calls it: files written, none lost.


@pytest.fixture
def project(project: Project) -> Project:
    """A session, and the workspace it ran in."""
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


def test_a_case_without_a_suite_gets_one_and_nothing_is_overwritten_without_force(
    project: Project,
) -> None:
    to_case = ("session", "to-case", "session.jsonl", "--out", "cases/files.yaml")
    project.write({"cases/files.yaml": "mine"})
    refused = project.run(*to_case)
    assert (refused.exit_code, "--force" in refused.stderr) == (2, True)
    assert (project.root / "cases/files.yaml").read_text("utf-8") == "mine"
    assert not (project.root / "cases/eval.yaml").exists()
    made = project.run(*to_case, "--force")
    assert made.exit_code == 0, made.stderr
    assert "wrote cases/files.yaml" in made.stderr
    assert "wrote cases/eval.yaml" in made.stderr
    assert "How many files?" in (project.root / "cases/files.yaml").read_text("utf-8")
    valid = project.run("validate", "cases")
    assert (valid.exit_code, valid.stderr) == (0, "1 suite, 1 case: ok\n")


def test_a_fixture_beside_the_case_without_what_does_not_belong_into_one(project: Project) -> None:
    key = "sk-" + "ant-api03-abcdefgh01234567"  # in two, so that nobody takes it for a real one
    kept = {"a.txt": "a", "src/b.py": "b", ".env.example": "KEY=", ".gitignore": "*.log\n"}
    secret = {".env": "", "config/server.pem": "", "Notes.md": key, "own.sh": "my-own-token"}
    more = {"old.log": "x", "node_modules/x.js": "x", "large.bin": "x" * ((1 << 20) + 1)}
    project.write({f"work/{name}": text for name, text in (kept | secret | more).items()})
    (project.root / "work/utf16.txt").write_text(key, "utf-16")
    (project.root / "work/link").symlink_to("../session.jsonl")
    subprocess.run(["git", "init", "-q", "work"], cwd=project.root, check=True)
    project.write({"skill/evals/eval.yaml": "name: mine\n", "skill/SKILL.md": "# Files\n"})
    arguments = ("session", "to-case", "session.jsonl", "--with-fixture", "--out")
    out = "skill/evals/cases/files.yaml"

    made = project.run(*arguments, out, env={"LAB_TOKEN": "my-own-token"})

    assert made.exit_code == 0, made.stderr
    fixture = project.root / "skill/evals/cases/fixtures/files"
    files = {p.relative_to(fixture).as_posix() for p in fixture.rglob("*") if not p.is_dir()}
    assert files == set(kept)
    for line in (
        "copied 4 files to skill/evals/cases/fixtures/files",
        "left out, may hold secrets: .env, config/server.pem",
        "left out, holds what looks like a key: Notes.md, own.sh, utf16.txt",
        "left out, over 1 MiB: large.bin",
        "left out, no regular file: link",
    ):
        assert line in made.stderr.splitlines()
    valid = project.run("validate", "skill")
    assert (valid.exit_code, valid.stderr) == (0, "1 suite, 1 case: ok\n")
    again = project.run(*arguments, out, "--force")
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    home = project.run(*arguments, "new.yaml", env={"HOME": str(project.root / "work/me")})
    assert (home.exit_code, "too much for a fixture" in home.stderr) == (2, True)
    assert not (project.root / "new.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("none.jsonl",), "is no file"),
        (("session.jsonl", "--with-fixture"), "needs --out"),
        (("session.jsonl", "--out", "case.txt"), "not a YAML file"),
        (("session.jsonl", "--out", "eval.yaml"), "a suite's name"),
    ],
)
def test_mistakes_are_usage_errors(project: Project, arguments: tuple[str, ...], says: str) -> None:
    outcome = project.run("session", "to-case", *arguments)
    assert outcome.exit_code == 2
    assert says in outcome.stderr
