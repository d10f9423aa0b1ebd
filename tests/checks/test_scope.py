"""Where checks look; that nothing passes where there is nothing to look at; compound checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.checks.context import CheckContext
from skillup.checks.evaluate import evaluate, evaluate_set
from skillup.checks.registry import JUDGED, KINDS
from skillup.schema.case import PostCondition
from skillup.schema.checks import READ_BY_MODEL, Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole
from tests.judges.integrity.reference import NAMING, ROWS, Row, reference
from tests.support.records import call, make_record, make_turn


def say_yes(check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
    return CheckResult(name=check.key, kind=check.key, passed=True, score=1.0)


asked = st.sampled_from([*ROWS, *NAMING])
compounds = st.lists(st.sampled_from(["any_of", "all_of", "none_of"]), max_size=2)


def check_of(row: Row, around: list[str], **beside: Any) -> Check:
    """The row's check, within compound ones."""
    spec: dict[str, Any] = {row.key: row.spec, **beside}
    for key in around:
        spec = {key: [spec]}
    return Check.model_validate(spec)


def test_what_decides_verdicts_is_said_of_every_kind() -> None:
    assert {key for key, kind in KINDS.items() if kind.forbids} == {
        key for key in KINDS if {"not", "none"} & set(key.split("_"))
    }
    assert set(READ_BY_MODEL) | {"script"} == JUDGED
    assert {key for key, kind in KINDS.items() if (kind.find is None) is not (kind.of is None)} == (
        set()
    )


@given(asked, compounds, st.sampled_from(["failed", "skipped", "error"]), st.integers(1, 3))
def test_no_check_passes_where_a_turn_was_not_completed(
    row: Row, around: list[str], status: Any, any_turn: int
) -> None:
    named = row.spec["turn"] if row in NAMING else row.turn
    recorded = reference()
    turns = list(recorded.record.turns)
    number = named or any_turn
    turns[number - 1] = turns[number - 1].model_copy(update={"status": status})
    changed = replace(recorded, record=recorded.record.model_copy(update={"turns": turns}))

    result = evaluate(check_of(row, around), changed.context(row.turn, say_yes))

    assert not result.passed
    assert not result.assertable
    assert result.error is None


@given(asked, compounds)
def test_no_check_passes_on_a_missing_turn(row: Row, around: list[str]) -> None:
    if row in NAMING:
        row = replace(row, spec={**row.spec, "turn": 7})
    check = check_of(row, around, turn=7)

    result = evaluate(check, reference().context(None, say_yes))

    assert not result.passed
    assert not result.assertable


@pytest.mark.parametrize(
    ("spec", "passes", "assertable"),
    [
        ({"tool_not_called": "Write"}, False, False),
        ({"tool_not_called": "Bash"}, False, True),
        ({"tool_called": "Bash"}, True, True),
        ({"tool_called": "Write"}, False, False),
        ({"tool_called": {"name": "Bash", "max": 1}}, False, False),
        ({"tool_sequence": {"calls": ["Bash"]}}, True, True),
        ({"tool_sequence": {"calls": ["Bash"], "mode": "exact"}}, False, False),
        ({"skill_not_used": "tidy"}, False, False),
        ({"skill_used": "tidy"}, False, False),
        ({"none_of": [{"tool_called": "Write"}]}, False, False),
        ({"none_of": [{"tool_called": "Bash"}]}, False, True),
        ({"not_contains": "x"}, True, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("turn", [2, None])
def test_what_may_be_in_a_line_that_nobody_could_read_was_not_done_for_sure(
    spec: dict[str, Any], passes: bool, assertable: bool, turn: int | None
) -> None:
    """S4: a call in a line that could not be read is a call that `tool_not_called` has not seen."""
    recorded = make_record("one", make_turn("two", calls=[call("Bash", "shell")], unread_lines=1))

    result = evaluate(Check.model_validate(spec), recorded.context(turn))

    assert (result.passed, result.assertable, result.error) == (passes, assertable, None)


def test_a_gate_is_asked_of_a_turn_that_is_not_in_the_record_yet() -> None:
    recorded = make_record("first")
    gated = make_turn("Are you sure?", turn_number=2)
    context = CheckContext(recorded.record, gated, recorded.read_file)
    gate = PostCondition.model_validate(
        {"must_contain_any": ["SURE"], "tool_not_called_in_turn": {"turn": 2, "kind": "shell"}}
    )

    results = evaluate_set(gate, context, role="post_condition")

    assert [(r.kind, r.passed, r.role, r.scope) for r in results] == [
        ("must_contain_any", True, "post_condition", "turn 2"),
        ("tool_not_called_in_turn", True, "post_condition", "turn 2"),
    ]


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
