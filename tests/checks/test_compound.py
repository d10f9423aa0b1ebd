"""Scores, errors and manners that go up and down between a compound check and its children."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.checks.context import CheckContext
from skillup.checks.evaluate import evaluate, evaluate_set
from skillup.schema.checks import Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole
from tests.support.records import make_record

YES = {"contains": "yes"}
NO = {"contains": "no!"}
BROKEN = {"rubric": "it needs a judge, and there is none"}


def of_yes(spec: dict[str, Any], ask: Any = None) -> CheckResult:
    return evaluate(Check.model_validate(spec), make_record("yes").context(1, ask))


@pytest.mark.parametrize(
    ("spec", "score"),
    [
        ({"any_of": [YES, NO]}, 1.0),
        ({"any_of": [NO, NO]}, 0.0),
        ({"all_of": [YES, NO]}, 0.5),
        ({"all_of": [{**YES, "weight": 3.0}, NO]}, 0.75),
        ({"all_of": [YES, {**NO, "required": True}]}, 0.0),
        ({"all_of": [YES, YES]}, 1.0),
        ({"none_of": [NO]}, 1.0),
        ({"none_of": [NO, YES]}, 0.0),
        ({"all_of": [YES, BROKEN]}, 0.0),
    ],
)
def test_score_follows_from_the_children(spec: dict[str, Any], score: float) -> None:
    assert of_yes(spec).score == score


@pytest.mark.parametrize("spec", [{"any_of": [NO, BROKEN]}, {"all_of": [YES, BROKEN]}])
def test_a_child_that_cannot_be_evaluated_breaks_its_parent(spec: dict[str, Any]) -> None:
    result = of_yes({"any_of": [spec]})

    assert not result.passed
    assert "needs a judge" in (result.error or "")


def test_a_judge_is_asked_about_the_turn_that_the_check_names() -> None:
    asked: list[tuple[str, int | None]] = []

    def judge(check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
        asked.append((check.key, context.turn.turn_number if context.turn else None))
        return CheckResult(name="polite", kind=check.key, passed=True, score=0.9)

    recorded = make_record("yes", "no")
    evaluate(Check.model_validate({"rubric": "Polite", "turn": 2}), recorded.context(None, judge))
    checks = CheckSet.model_validate({"script": "judge.py"})
    (result,) = evaluate_set(checks, recorded.context(1, judge), role="expect")

    assert asked == [("rubric", 2), ("script", 1)]
    assert (result.role, result.score) == ("expect", 0.9)


def test_a_follow_up_is_not_evaluated_as_a_check() -> None:
    result = of_yes({"prompt": "Are you sure?", "assertions": [YES]})

    assert not result.passed
    assert result.error is not None
    assert result.name == 'follow-up "Are you sure?"'
