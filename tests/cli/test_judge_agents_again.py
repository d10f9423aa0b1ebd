"""`skillup judge` where an agent has judged: its answer is in the run, and nobody is started."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project

MET = {"criteria": [{"id": "ok", "pass": True, "reason": "fine", "evidence": ["nowhere"]}]}
UNMET = {"criteria": [{"id": "ok", "pass": False, "reason": "bad", "evidence": []}]}


def judged_by(*replies: Any, **more: Any) -> dict[str, Any]:
    scripted = [
        {"say": reply if isinstance(reply, str) else json.dumps(reply)} for reply in replies
    ]
    criteria = [{"id": "ok", "outcome": "it is ok"}]
    return {
        "type": "agent_judge",
        "engine": "judger",
        "criteria": criteria,
        "scripted": scripted,
        **more,
    }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A suite whose judge is a program that counts how often it is started."""
    project = Project(tmp_path)
    agent = project.root / "agent"
    calls = f"echo called >> {project.root}/calls"
    start = f'exec {sys.executable} -m skillup.engines.scripted_agent "$@"'
    agent.write_text(f"#!/bin/sh\n{calls}\n{start}\n")
    agent.chmod(0o755)
    engine = json.dumps({"engine": "scripted", "command": str(agent)})
    return project.write({"engines/judger.yaml": engine})


def calls(project: Project) -> int:
    file = project.root / "calls"
    return file.read_text().count("called") if file.exists() else 0


def write(project: Project, judge: dict[str, Any]) -> None:
    steps = [{"write": {"path": "a.txt", "content": "x"}}]
    case = {"input": {"prompt": "x"}, "judge": judge, "scripted": [{"steps": steps, "say": "ok"}]}
    project.write({"cases/eval.yaml": "name: s\n", "cases/a.yaml": json.dumps(case)})


def judged(project: Project, *arguments: str) -> dict[str, Any]:
    outcome = project.run("judge", "run", "--json", *arguments)
    (case,) = outcome.data["cases"]
    grade: dict[str, Any] = case["grade"]
    return grade


def assertions_of_the_run(project: Project) -> Any:
    (grade,) = (project.root / "run").rglob("grading.json")
    return json.loads(grade.read_text())["assertions"]


@pytest.mark.parametrize(("reply", "repeat"), [(UNMET, 1), (MET, 3)])
def test_the_kept_answer_gives_the_same_result_without_agent_suite_and_engine_file(
    project: Project, reply: dict[str, Any], repeat: int
) -> None:
    write(project, judged_by(reply, repeat=repeat))
    project.run("run", "cases", "--out", "run")
    assert calls(project) == repeat
    (project.root / "agent").unlink()
    shutil.rmtree(project.root / "engines")
    shutil.rmtree(project.root / "cases")

    grade = judged(project)

    assert grade["assertions"] == assertions_of_the_run(project)
    assert grade["judging"]["cached_calls"] == grade["judging"]["calls"] == repeat
    assert calls(project) == repeat


def test_another_threshold_asks_nobody_and_another_criterion_asks(project: Project) -> None:
    write(project, judged_by(UNMET))
    project.run("run", "cases", "--out", "run")

    write(project, judged_by(UNMET, pass_threshold=0))
    assert judged(project, "--cases", "cases")["status"] == "PASS"
    assert calls(project) == 1

    write(project, judged_by(UNMET, criteria=[{"id": "ok", "outcome": "it is good"}]))
    assert judged(project, "--cases", "cases")["status"] == "FAIL"
    assert calls(project) == 2


@pytest.mark.parametrize(("arguments", "asked"), [((), 1), (("--no-judge-cache",), 2)])
def test_a_resumed_trial_is_asked_about_again_only_without_the_cache(
    project: Project, arguments: tuple[str, ...], asked: int
) -> None:
    write(project, judged_by(MET))
    project.run("run", "cases", "--out", "run", *arguments)
    (grade,) = (project.root / "run").rglob("grading.json")
    grade.unlink()

    outcome = project.run("run", "--resume", "run")

    assert outcome.exit_code == 0, outcome.stderr
    assert calls(project) == asked
