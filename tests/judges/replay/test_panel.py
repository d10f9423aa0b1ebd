"""Judges on a panel: what each read, what it took, and who is compared with whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.judges.rejudge.judges_compared import (
    JudgeColumn,
    judged_by,
)
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from tests.support.stored import a_grade

JOB = "case/e/with_skill/1"


def check(name: str, kind: str, *, passed: bool = True, **more: Any) -> CheckResult:
    return CheckResult(name=name, kind=kind, passed=passed, score=float(passed), **more)


def seat(name: str, *checks: CheckResult, status: str = "PASS", **more: Any) -> JudgeColumn:
    found = JudgeColumn(name)
    grade = a_grade().model_copy(update={"assertions": list(checks), "status": status, **more})
    found.add(JOB, grade)
    return found


def test_what_no_model_reads_is_not_compared() -> None:
    checks = [check("a", "rubric"), check("b", "script"), check("c", "contains"),
              check("the turn was not held", "rubric", passed=False, assertable=False)]  # fmt: skip
    one = seat("one", *checks)

    assert [item.check for item in one.read()] == ["a"]
    assert [item.check for item in one.trials()] == ["case"]
    assert [item.check for item in one.verdicts] == ["a", "b", "case"]


def a_case(**more: Any) -> Case:
    return Case.model_validate({"id": "c", "input": {"prompt": "a"}, **more})


AGENT = {"type": "agent_judge", "criteria": ["A"], "model": "old", "base_url": "http://x"}


def test_another_model_reads_and_leads_the_agents() -> None:
    own = {"model": "openai:own", "base_url": "http://localhost/v1", "repeat": 3}
    case = a_case(judge_model=own, judges=[AGENT, {"success": [{"contains": "a"}]}])

    other = judged_by(case, "openai-chat:new", Path())
    assert other.judge_model is not None
    assert (other.judge_model.model, other.judge_model.repeat) == ("openai-chat:new", 3)
    assert other.judge_model.base_url is None
    assert [judge.model for judge in other.all_judges()] == ["new", None]
    same = judged_by(case, "openai:own", Path())
    assert same.judge_model == case.judge_model


def test_a_written_down_judge_is_looked_for_from_here_first(tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text("rules: []\n", encoding="utf-8")
    case = a_case(judge=AGENT)

    here = judged_by(case, "scripted:strict.yaml", tmp_path)
    elsewhere = judged_by(case, "scripted:judges/strict.yaml", tmp_path)
    assert here.judge_model is not None
    assert elsewhere.judge_model is not None
    assert here.judge_model.model == f"scripted:{tmp_path / 'strict.yaml'}"
    assert elsewhere.judge_model.model == "scripted:judges/strict.yaml"
    assert [judge.model for judge in here.all_judges()] == ["old"]
