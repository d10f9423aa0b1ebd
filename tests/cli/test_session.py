"""`skillup session`, as the command line calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.cli.commands.suites import session as session_app
from tests.support.session_files import claude_row, codex_meta, said, text, write_rows


def run(*arguments: str) -> int:
    code = session_app(list(arguments), standalone_mode=False)
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


def test_list_as_json(homes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json", "--engine", "claude_code") == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["engine"] == "claude_code"
    assert row["session_id"] == "s1"
    assert row["project"] == "/project"
    assert (row["turns"], row["turns_complete"]) == (1, True)
    assert row["first_words"] == "first words"
    assert row["path"] == str(homes / "claude/projects/-project/s1.jsonl")
    assert row["modified"].endswith("+00:00")


def test_list_of_a_project(homes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json", "--project", "/other") == 0
    assert [row["session_id"] for row in json.loads(capsys.readouterr().out)] == ["t1"]
    assert run("list", "--project", "/nowhere") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "no sessions of /nowhere" in err


def test_show_prints_a_transcript(homes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "s") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "claude_code s1"
    shown = "\n".join(lines)
    assert "turn 1  user\n    first words\nturn 1  agent\n    an answer" in shown
    assert lines[-1] == "1 turn"


def test_show_as_json(homes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "t1", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["entries"] == [
        {
            "line": 3,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "turn": 1,
            "role": "user",
            "text": "other words",
        }
    ]
    assert data["session"]["engine"] == "codex"
    assert data["session"]["session_id"] == "t1"
    assert data["session"]["turns"] == 1
