"""`skillup judge INPUT.json`: skill-up's judge-debug files from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "compat" / "skill-up"
INPUTS = sorted([*CORPUS.glob("**/judge-inputs/*.json"), *CORPUS.glob("**/judge-debug-*.json")])
CODES = {"PASS": 0, "SKIP": 0, "FAIL": 1, "ERROR": 3}
BASE: dict[str, Any] = {
    "case_id": "review",
    "final_message": "There is a bug in line 42.",
    "transcript": [{"role": "user", "content": "Look at it", "turn": 1}],
    "exit_code": 0,
}
CRITERIA = ["Names the line", "Proposes a fix"]
AGENT = {"type": "agent_judge", "criteria": CRITERIA, "pass_threshold": 0.5}


def given(project: Project, **more: Any) -> str:
    project.write({"debug/input.json": json.dumps({**BASE, **more})})
    return "debug/input.json"


def script(project: Project, path: str, text: str) -> None:
    project.write({path: "#!/bin/sh\n" + text})
    (project.root / path).chmod(0o755)


def listed(grade: dict[str, Any]) -> list[tuple[str, bool]]:
    """As a grading of skill-up lists them: the rules that succeed; if a gate failed, that."""
    results = grade["assertions"]
    failed = [r for r in results if r["role"] == "expect" and not r["passed"]]
    told = failed or [r for r in results if r["role"] in ("success", "judge")]
    return sorted((result["kind"], result["passed"]) for result in told)


def wanted(expected: dict[str, Any]) -> list[tuple[str, bool]]:
    return sorted(
        (
            entry["text"].removeprefix("expect.").split(":")[0].split(".")[0].split("{")[0],
            entry["passed"],
        )
        for entry in expected["assertion_results"]
    )


@pytest.mark.skipif(not INPUTS, reason="the corpus of other tools' files is not here")
def test_files_of_the_corpus_come_out_as_expected(project: Project) -> None:
    compared = 0
    for path in INPUTS:
        outcome = project.run("judge", str(path), "--json")
        [case] = outcome.data["cases"]
        grade = case["grade"]
        assert outcome.exit_code == CODES[grade["status"]], path
        file = path.parent.parent / "expected" / f"{path.stem}-grading.json"
        judges = json.loads(path.read_text("utf-8"))["judge"]
        if judges["type"] == "script":
            # Their scripts are no part of the corpus: that is no verdict on the agent.
            assert (grade["status"], grade["error"]["kind"]) == ("ERROR", "judge")
        elif file.is_file():
            expected = json.loads(file.read_text("utf-8"))
            assert (grade["status"], listed(grade)) == (expected["status"], wanted(expected)), path
            compared += 1
    assert compared


def test_folders_fill_the_placeholders(project: Project) -> None:
    project.write({"elsewhere/out.txt": "ok\n", "skill/golden.md": "There is a bug in line 42.\n"})
    path = given(
        project,
        workspace_path="__WORKSPACE__",
        skill_dir="__SKILL_DIR__",
        expect={"golden_file": "golden.md"},
        judge={"success": [{"file_contains": {"path": "out.txt", "content": "ok"}}]},
    )
    without = project.run("judge", path)
    assert without.exit_code == 1
    assert "`expect.golden_file: golden.md` was left out" in without.stderr
    options = ("--workspace", "elsewhere", "--skill-dir", "skill")
    filled = project.run("judge", path, *options)
    assert filled.exit_code == 0, filled.stderr
    assert "left out" not in filled.stderr
    project.write({"skill/golden.md": "There is none.\n"})
    assert project.run("judge", path, *options).exit_code == 1


def test_a_script_judges_in_a_copy_of_the_workspace(project: Project) -> None:
    project.write({"debug/ws/out.json": "[1, 2]\n"})
    script(
        project,
        "skill/check.sh",
        'grep -q 2 out.json && rm out.json && grep -q "line 42" <<X\n$EVAL_FINAL_MESSAGE\nX\n',
    )
    path = given(
        project,
        workspace_path="ws",
        skill_dir="../skill",
        judge={"type": "script", "script_path": "check.sh"},
    )
    outcome = project.run("judge", path)
    assert outcome.exit_code == 0, outcome.stderr
    assert (project.root / "debug/ws/out.json").is_file()
    script(project, "skill/check.sh", "echo there is no 3; exit 1\n")
    assert project.run("judge", path).exit_code == 1
    (project.root / "skill/check.sh").unlink()
    gone = project.run("judge", path)
    assert (gone.exit_code, "there is no script" in gone.stderr) == (3, True)


def test_mocked_results_stand_for_the_agent_unless_judges_are_compared(project: Project) -> None:
    mocked = [
        {"criterion_id": f"criterion-{n}", "passed": n == 2, "evidence": ["line 42"]}
        for n in (1, 2)
    ]
    said = [
        {"id": f"criterion-{n}", "pass": True, "reason": "It does.", "evidence": ["line 42"]}
        for n in (1, 2)
    ]
    answer = {"turn": 1, "say": json.dumps({"criteria": said})}
    judge = {**AGENT, "engine": "scripted", "scripted": [answer]}
    path = given(project, judge=judge, mock_results=mocked)
    (case,) = project.run("judge", path, "--json").data["cases"]
    [judged] = case["grade"]["assertions"]
    assert [child["passed"] for child in judged["children"]] == [False, True]
    compared = project.run("judge", path, "--against", "small", "--against", "large", "--json")
    assert compared.exit_code == 0, compared.stderr
    assert [judge["passed"] for judge in compared.data["judges"]] == [2, 2]
    assert project.run("judge", given(project, judge=judge)).exit_code == 0
    nameless = project.run("judge", given(project, judge=AGENT))
    assert (nameless.exit_code, "names no engine" in nameless.stderr) == (3, True)


def test_mistakes_are_told(project: Project) -> None:
    wrong = project.run("judge", given(project, judge={"success": [{"contians": "x"}]}))
    assert (wrong.exit_code, "did you mean `contains`?" in wrong.stderr) == (2, True)
    path = given(project, judge={"success": [{"contains": "bug"}]})
    nowhere = project.run("judge", path, "--workspace", "nowhere")
    assert (nowhere.exit_code, "there is no such folder" in nowhere.stderr) == (2, True)
    (project.root / "other.json").write_text("{}", "utf-8")
    other = project.run("judge", "other.json", "--skill-dir", ".")
    assert (other.exit_code, "for judge-debug files" in other.stderr) == (2, True)
