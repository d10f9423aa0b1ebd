"""Where checks look; that nothing passes where there is nothing to look at; compound checks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.checks.context import CheckContext
from skillup.checks.evaluate import evaluate, evaluate_set
from skillup.checks.registry import JUDGED, KINDS
from skillup.schema.case import PostCondition
from skillup.schema.checks import CHECK_FIELDS, READ_BY_MODEL, Check, CheckSet
from skillup.schema.grade import CheckResult, CheckRole
from tests.support.records import call, make_record, make_turn

# For each key, an argument that the turn below would meet if only it had been completed.
WOULD_PASS: dict[str, Any] = {
    "contains": "done",
    "not_contains": "x",
    "matches": "done",
    "glob": "*",
    "not_glob": "x",
    "equals": "done []",
    "min_tokens": 0,
    "max_tokens": 100,
    "json": {"path": "$"},
    "tool_called": {"kind": "shell", "min": 0},
    "tool_not_called": "Write",
    "tool_sequence": {"calls": ["Bash"]},
    "skill_used": "tidy",
    "skill_not_used": "other",
    "files_exist": "a.txt",
    "files_not_exist": "b.txt",
    "file_contains": {"path": "a.txt", "content": "a"},
    "golden_file": "golden.txt",
    "exit_code": 0,
    "max_cost_usd": 1.0,
    "max_duration_seconds": 60.0,
    "script": "judge.py",
    "rubric": "Is polite",
    "similar": "done",
    "expected_output": "done",
    "answer_quality": 0.5,
    "relevance": {},
    "any_of": [{"contains": "done"}, {"not_contains": "x"}],
    "all_of": [{"contains": "done"}, {"none_of": [{"contains": "x"}]}],
    "none_of": [{"contains": "x"}, {"tool_called": "Write"}],
    "must_contain": "done",
    "must_contain_all": "done",
    "must_contain_any": "done",
    "must_not_contain": "x",
    "output_contains": "done",
    "output_matches": "done",
    "turn_response_contains": {"turn": 2, "contains_any": "done"},
    "turn_response_not_contains": {"turn": 2, "not_contains": "x"},
    "tool_called_in_turn": {"turn": 2, "kind": "shell", "min": 0},
    "tool_not_called_in_turn": {"turn": 2, "name": "Write"},
}


def say_yes(check: Check, context: CheckContext, role: CheckRole) -> CheckResult:
    return CheckResult(name=check.key, kind=check.key, passed=True, score=1.0)


def _turn(**fields: Any) -> Any:
    return make_turn(
        "done []",
        calls=[call("Bash", "shell", command="ls"), call("Skill", "skill", skill="tidy")],
        results=["", "Launching skill: tidy"],
        output_tokens=5,
        cost_usd=0.1,
        files={"a.txt": "a"},
        **fields,
    )


def _record(status: Any, **more: Any) -> Any:
    return make_record(_turn(), _turn(status=status), references={"golden.txt": "done []"}, **more)


leaves = st.sampled_from(sorted(WOULD_PASS)).map(lambda key: {key: WOULD_PASS[key]})
nested = st.recursive(
    leaves,
    lambda children: st.builds(
        lambda key, below, beside: {key: below, **beside},
        st.sampled_from(["any_of", "all_of", "none_of"]),
        st.lists(children, min_size=1, max_size=3),
        st.sampled_from([{}, {"weight": 0.0}, {"required": True}, {"case_sensitive": True}]),
    ),
    max_leaves=6,
)


def test_every_key_has_an_argument_here() -> None:
    assert set(WOULD_PASS) == set(CHECK_FIELDS)


@pytest.mark.parametrize("key", sorted(WOULD_PASS))
@pytest.mark.parametrize("number", [2, None])
def test_the_arguments_would_pass_on_a_completed_turn(key: str, number: int | None) -> None:
    check = Check.model_validate({key: WOULD_PASS[key]})

    assert evaluate(check, _record("completed").context(number, say_yes)).passed


def test_what_decides_verdicts_is_said_of_every_kind() -> None:
    assert {key for key, kind in KINDS.items() if kind.forbids} == {
        key for key in KINDS if {"not", "none"} & set(key.split("_"))
    }
    assert set(READ_BY_MODEL) | {"script"} == JUDGED
    assert {key for key, kind in KINDS.items() if (kind.find is None) is not (kind.of is None)} == (
        set()
    )


@given(nested, st.sampled_from(["failed", "skipped", "error"]))
def test_no_check_passes_on_a_turn_that_was_not_completed(spec: Any, status: Any) -> None:
    recorded = _record(status)

    result = evaluate(Check.model_validate(spec), recorded.context(2, say_yes))

    assert not result.passed
    assert not result.assertable
    assert result.error is None


@given(nested)
def test_no_check_passes_on_a_missing_turn(spec: Any) -> None:
    own_turn = [key for key in spec if key.endswith("_in_turn") or key.startswith("turn_response")]
    if own_turn:
        spec = {own_turn[0]: {**spec[own_turn[0]], "turn": 7}}
    check = Check.model_validate({**spec, "turn": 7})

    result = evaluate(check, _record("completed").context(None, say_yes))

    assert not result.passed
    assert not result.assertable


@given(leaves, st.sampled_from(["failed", "skipped", "error"]))
def test_no_check_of_the_conversation_passes_if_a_turn_was_not_completed(
    spec: Any, status: Any
) -> None:
    result = evaluate(Check.model_validate(spec), _record(status).context(None, say_yes))

    assert not result.passed


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
