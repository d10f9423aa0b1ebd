"""Grades in a line, and what analysis makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillup.reports.result import build_result
from skillup.schema.grade import CheckResult, Grade, RunResult, TurnGrade

STATUSES = {"p": "PASS", "f": "FAIL", "e": "ERROR", "s": "SKIP"}


def a_check(kind: str, *, passed: bool = True, expected: str = "", **more: Any) -> CheckResult:
    if kind in ("skill_used", "skill_not_used"):
        more["skill"] = expected.removeprefix("no use of ")
    return CheckResult(
        name=f"{kind} {expected}",
        kind=kind,
        passed=passed,
        score=float(passed),
        expected=expected,
        **more,
    )


def a_turn(number: int = 1, *, passed: bool = True, **more: Any) -> TurnGrade:
    """A turn with one check, unless others are given."""
    fields: dict[str, Any] = {
        "turn_number": number,
        "status": "completed",
        "source": "case",
        "content": "hi",
        "response": "ok",
        "score": float(passed),
        "post_condition_passed": None,
        "session_verified": None,
        "checks": [a_check("contains", passed=passed)],
    }
    return TurnGrade.model_validate({**fields, **more})


def a_grade(case_id: str = "c", mark: str = "p", trial: int = 1, **more: Any) -> Grade:
    """A trial with the skill, of the suite `demo` on the engine `e`."""
    fields: dict[str, Any] = {
        "suite": "demo",
        "case_id": case_id,
        "engine": "e",
        "variant": "with_skill",
        "trial": trial,
        "status": STATUSES[mark],
        "score": float(mark == "p"),
        "reason": "why",
        "execution_mode": "multi_turn",
        "session_id": None,
        "duration_ms": 1000,
        "turns": [a_turn(passed=mark == "p")],
    }
    return Grade.model_validate({**fields, **more})


def grades_of(case_id: str, marks: str, **more: Any) -> list[Grade]:
    """A trial for each letter of `marks`."""
    return [a_grade(case_id, mark, n, **more) for n, mark in enumerate(marks, start=1)]


def a_result(
    grades: Sequence[Grade], *, not_run: Sequence[str] = (), not_needed: Sequence[str] = ()
) -> RunResult:
    result = build_result("run", "2026-01-01T00:00:00.000Z", grades, [], 10)
    update = {"not_run": list(not_run), "not_needed": list(not_needed), "finished": not not_run}
    return result.model_copy(update=update)
