"""Judging again what was held for real: the quickstart's run, moved, and sessions of the CLIs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from skillup.sessions.index import session_files, session_homes
from tests.support.model_server import Answer, ModelServer, Rule, Shell, Text, WriteFile, by_rules
from tests.support.project import Project
from tests.support.raw_cli import RawClaude, RawCodex

pytestmark = pytest.mark.e2e

QUICKSTART = Path(__file__).parents[2] / "cases" / "quickstart"
SCRIPT = by_rules(
    Rule(
        "do it",
        [
            Answer((Text("I look."), Shell("echo hi"), Shell("false"))),
            WriteFile("notes.md", "x\n"),
            Text("Wrote notes.md with 12 lines."),
        ],
    )
)


def _grades(folder: Path) -> dict[str, Any]:
    found = [json.loads(path.read_bytes()) for path in (folder / "trials").rglob("grading.json")]
    return {grade["case_id"]: grade for grade in found}


def test_a_run_of_the_quickstart_that_was_moved_is_graded_the_same(tmp_path: Path) -> None:
    project = Project(tmp_path)
    shutil.copytree(QUICKSTART, project.root / "cases")
    held = project.run("run", "cases", "--out", "held")
    assert held.exit_code == 0, held.stderr
    moved = project.root / "elsewhere" / "run"
    moved.parent.mkdir()
    (project.root / "held").rename(moved)
    (project.root / "cases").rename(project.root / "other")

    again = project.run("judge", "elsewhere/run", "--json", env={"PATH": "/nonexistent"})
    assert again.exit_code == 0, again.stderr
    grades = {case["grade"]["case_id"]: case["grade"] for case in again.data["cases"]}
    assert len(grades) == 4
    assert grades == _grades(moved)

    case = project.root / "other" / "clarification.yaml"
    text = case.read_text("utf-8")
    assert "severity: high" in text
    case.write_text(text.replace('"severity: high"', '"severity: low"'), "utf-8")
    edited = project.run("judge", "elsewhere/run", "--cases", "other")
    assert edited.exit_code == 1
    assert "PASS → FAIL  clarification" in edited.stderr
    assert "severity: low" in edited.stderr


def _graded_by_its_own_case(
    tmp_path: Path, session: str, homes: dict[str, str]
) -> tuple[str, float]:
    """Status and score of a session, judged by the case that was made of it."""
    project = Project(tmp_path)
    made = project.run("session", "to-case", session, "--out", "cases/made.yaml", env=homes)
    assert made.exit_code == 0, made.stderr
    text = (project.root / "cases/made.yaml").read_text("utf-8")
    for part in ("do it", "and now?", "kind: shell", "notes.md", "12 lines", "files_exist"):
        assert part in text
    assert project.run("validate", "cases").stderr == "1 suite, 1 case: ok\n"
    judged = project.run("judge", session, "--cases", "cases", "--json", env=homes)
    assert judged.exit_code == 0, judged.stderr
    [case] = judged.data["cases"]
    assert case["grade"]["usage"]["output_tokens"] > 0
    text = text.replace("contains: 12 lines", "contains: 13 lines")
    (project.root / "cases/made.yaml").write_text(text, "utf-8")
    assert project.run("judge", session, "--cases", "cases", env=homes).exit_code == 1
    return case["grade"]["status"], case["grade"]["score"]


def test_a_session_of_claude_becomes_a_case_that_it_passes(
    raw_claude: Callable[[str], RawClaude],
    model_server: Callable[..., ModelServer],
    tmp_path: Path,
) -> None:
    claude = raw_claude(model_server(SCRIPT).url)
    session = str(uuid4())
    claude.first("do it", session, "--permission-mode", "bypassPermissions")
    claude.resume("and now?", session)
    homes = {"CLAUDE_CONFIG_DIR": str(claude.state)}
    assert _graded_by_its_own_case(tmp_path, session, homes) == ("PASS", 1.0)


def test_a_session_of_codex_becomes_a_case_that_it_passes(
    raw_codex: Callable[[str], RawCodex],
    model_server: Callable[..., ModelServer],
    tmp_path: Path,
) -> None:
    codex = raw_codex(model_server(SCRIPT).url)
    thread = str(codex.first("do it").one("thread.started")["thread_id"])
    codex.resume("and now?", thread)
    homes = {"CODEX_HOME": str(codex.state)}
    assert session_files(session_homes({**homes, "CLAUDE_CONFIG_DIR": str(tmp_path / "none")}))
    assert _graded_by_its_own_case(tmp_path, thread, homes) == ("PASS", 1.0)
