"""Design §4's rules for score and status, one row for each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from skillup.judges import grade, grade_record
from skillup.judges.evaluate import JudgeRequest, PendingJudgements, evaluate
from skillup.judges.usage import UsageTracker
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import SkillInfo, TurnError, TurnRecord, TurnStatus
from tests.support.records import make_record, make_turn

YES = {"contains": "yes"}
NO = {"contains": "absent"}
BROKEN = {"rubric": "nobody here can read this"}


def graded(case: dict[str, Any], turns: Sequence[TurnRecord | str], **record: Any) -> Grade:
    """The grade of a record of `turns`; the case as it was held is in the record."""
    made = Case.model_validate({"id": "case", **case})
    held = made.model_dump(mode="json", by_alias=True, exclude_unset=True)
    recorded = make_record(*turns, case=held, **record)
    return grade_record(recorded.record, recorded.read_file)


def turns_of(*checks: list[dict[str, Any]]) -> dict[str, Any]:
    """The `input` of a case whose turns have these checks."""
    return {"turns": [{"content": f"message {n}", "assertions": c} for n, c in enumerate(checks)]}


def skipped(reason: str = "not sent") -> TurnRecord:
    return make_turn("", status="skipped", reason=reason)


def gated(status: TurnStatus, passed: bool | None, response: str = "yes") -> TurnRecord:
    return make_turn(response, status=status, post_condition_passed=passed, reason="why")


# What the turns check, the conversation's checks, aggregation → the score.
SCORES: list[tuple[list[list[dict[str, Any]]], list[dict[str, Any]], str | None, float]] = [
    ([[YES], [YES]], [], None, 1.0),
    ([[YES], [NO]], [], None, 0.5),
    ([[YES], [NO]], [], "mean", 0.5),
    ([[YES], [NO]], [], "min", 0.0),
    ([[YES], [NO]], [], "max", 1.0),
    # a turn without checks scores 1.0
    ([[], [NO]], [], None, 0.5),
    ([[], [NO]], [], "min", 0.0),
    # the conversation counts as one more, if it has checks
    ([[YES], [YES]], [NO], None, 0.666667),
    ([[YES], [YES]], [NO], "min", 0.0),
    ([[NO], [NO]], [YES], "max", 1.0),
    ([[NO], [NO]], [YES, YES, YES], None, 0.333333),
    # within a turn: the weighted mean
    ([[YES, NO]], [], None, 0.5),
    ([[{**YES, "weight": 3}, NO]], [], None, 0.75),
    ([[{**YES, "weight": 0}, NO]], [], None, 0.0),
    ([[{**YES, "weight": 0}, {**NO, "weight": 0}]], [], None, 1.0),
    ([[{**NO, "weight": 0}]], [], None, 1.0),
    # a required check that failed makes it 0, whatever it weighs
    ([[YES, YES, {**NO, "required": True}]], [], None, 0.0),
    ([[YES, {**NO, "required": True, "weight": 0}]], [], None, 0.0),
    ([[YES], [YES, {**NO, "required": True}]], [], None, 0.5),
    ([[YES]], [YES, {**NO, "required": True}], None, 0.5),
    # compound checks count by their own score
    ([[{"all_of": [YES, NO]}]], [], None, 0.5),
]


@pytest.mark.parametrize(("turns", "conversation", "how", "score"), SCORES)
def test_the_score_follows_from_turns_and_conversation(
    turns: list[list[dict[str, Any]]],
    conversation: list[dict[str, Any]],
    how: str | None,
    score: float,
) -> None:
    case: dict[str, Any] = {"input": turns_of(*turns), "assertions": conversation}
    if how is not None:
        case["aggregation"] = how
    grade = graded(case, ["yes"] * len(turns))
    assert grade.score == score
    checks = [*grade.assertions, *(check for turn in grade.turns for check in turn.checks)]
    evidence = any(check.passed and check.weight for check in checks)
    assert grade.status == ("PASS" if score == 1.0 and evidence else "FAIL")


ALL_FAIL = turns_of(*[[] for _ in range(9)], [NO, NO, NO])
# The case, what is said, and the verdict: what was checked decides, not what was not.
CHECKED: list[tuple[dict[str, Any], list[str], str, float]] = [
    ({"input": ALL_FAIL, "pass_threshold": 0.8}, ["yes"] * 10, "FAIL", 0.9),
    ({"input": turns_of([], [NO]), "aggregation": "max"}, ["yes"] * 2, "FAIL", 1.0),
    ({"input": turns_of([], [NO]), "pass_threshold": 0.0}, ["yes"] * 2, "FAIL", 0.5),
    ({"input": turns_of([{**NO, "weight": 0}])}, ["yes"], "FAIL", 1.0),
    ({"input": turns_of([{**YES, "weight": 0}])}, ["yes"], "FAIL", 1.0),
    ({"input": turns_of([{**YES, "weight": 0, "required": True}])}, ["yes"], "FAIL", 1.0),
    ({"input": turns_of([YES, {**NO, "weight": 0}])}, ["yes"], "PASS", 1.0),
    ({"input": turns_of([], [YES, NO]), "pass_threshold": 0.75}, ["yes"] * 2, "FAIL", 0.75),
    ({"input": turns_of([], [YES, NO]), "pass_threshold": 0.5}, ["yes"] * 2, "PASS", 0.75),
    ({"input": turns_of([], []), "assertions": [YES]}, ["yes"] * 2, "PASS", 1.0),
    ({"input": turns_of([]), "expect": {"contains": "yes"}}, ["yes"], "PASS", 1.0),
    ({"input": {"prompt": "x"}, "judge": {"success": [NO], "required": False}}, ["yes"], "FAIL", 0),
    (
        {
            "input": turns_of([YES]),
            "judge": {"success": [NO], "required": False},
            "pass_threshold": 0.5,
        },
        ["yes"],
        "PASS",
        0.5,
    ),
]


@pytest.mark.parametrize(("case", "said", "status", "score"), CHECKED)
def test_only_what_was_checked_decides(
    case: dict[str, Any], said: list[str], status: str, score: float
) -> None:
    """V1: turns without checks, and checks without weight, made PASS of nothing that passed."""
    grade = graded(case, said)
    assert (grade.status, grade.score) == (status, score)


FOLLOW_UP = {"prompt": "Again.", "assertions": [{"contains": "fine"}]}
# The turn's checks, its answer, those of its follow-ups, the verdict, and what it passed on.
HEALED: list[tuple[list[dict[str, Any]], str, list[tuple[int, str]], str, str | None]] = [
    ([NO, FOLLOW_UP], "yes", [(1, "fine")], "PASS", "first follow-up"),
    ([NO, FOLLOW_UP], "yes", [(1, "bad")], "FAIL", None),
    ([{**NO, "required": True}, FOLLOW_UP], "yes", [(1, "fine")], "FAIL", None),
    ([{**NO, "required": True, **FOLLOW_UP}], "yes", [(0, "fine")], "FAIL", None),
    (
        [{"not_contains": "hunter2", "required": True}, NO, FOLLOW_UP],
        "hunter2",
        [(2, "fine")],
        "FAIL",
        None,
    ),
    # A required check that passed does not hinder it, and goes on counting.
    ([{**YES, "required": True}, NO, FOLLOW_UP], "yes", [(2, "fine")], "PASS", "first follow-up"),
    # Nor do the required checks of another follow-up heal.
    (
        [
            {**NO, "prompt": "a", "assertions": [{"contains": "x", "required": True}]},
            {**NO, **FOLLOW_UP},
        ],
        "yes",
        [(0, "bad"), (1, "fine")],
        "FAIL",
        None,
    ),
    # A check without weight decides nothing here either.
    (
        [NO, {"prompt": "a", "assertions": [{"contains": "fine"}, {**NO, "weight": 0}]}],
        "yes",
        [(1, "fine")],
        "PASS",
        "first follow-up",
    ),
    (
        [NO, {"prompt": "a", "assertions": [{"contains": "fine", "weight": 0}]}],
        "yes",
        [(1, "fine")],
        "FAIL",
        None,
    ),
]


@pytest.mark.parametrize(("checks", "said", "again", "status", "passed_on"), HEALED)
def test_a_follow_up_heals_what_is_not_required(
    checks: list[dict[str, Any]],
    said: str,
    again: list[tuple[int, str]],
    status: str,
    passed_on: str | None,
) -> None:
    """V4: a follow-up that passed wiped out a failed check beside it that was `required`."""
    held = [make_turn(text, source="follow_up", asked_by=[place]) for place, text in again]
    case = {"input": turns_of(checks), "pass_threshold": 0.5}
    grade = graded(case, [make_turn(said, follow_ups=held)])
    assert (grade.status, grade.turns[0].passed_on) == (status, passed_on)


def test_where_expect_fails_nobody_is_asked_of_the_conversation() -> None:
    """V16: a failed `expect` still paid for rubrics; those are not evaluated, and not failures."""

    class Refuses:
        def problem(self, case: Case) -> None: ...

        async def answer(self, inquiry: JudgeRequest, usage: UsageTracker) -> list[CheckResult]:
            raise AssertionError(f"asked: {inquiry}")

    case = {
        "input": {"prompt": "x"},
        "expect": {"contains": "absent"},
        "assertions": [YES, "Is polite", {"any_of": ["Is polite", NO]}, {"script": "x.sh"}],
        "judge": {"type": "agent_judge", "criteria": ["Is polite"]},
    }
    recorded = make_record("yes")
    made = Case.model_validate(case)
    graded = anyio.run(lambda: grade(recorded.record, recorded.read_file, Refuses(), case=made))
    assert graded.status == "FAIL"
    assert graded.reason.startswith("contains")
    assert [(c.kind, c.passed, c.evaluated, c.error) for c in graded.assertions] == [
        ("contains", False, True, None),
        ("contains", True, True, None),
        ("rubric", False, False, None),
        ("any_of", False, False, None),
        ("script", False, False, None),
    ]


# What the rules find → the status, and what the reason says.
RULES: list[tuple[dict[str, Any], str, str]] = [
    ({"success": [YES]}, "PASS", "passed"),
    ({"success": [YES, NO]}, "FAIL", "absent"),
    ({"failure": [YES]}, "FAIL", "contains"),
    ({"success": [YES], "failure": [NO]}, "PASS", "passed"),
    ({"success": [YES], "failure": [YES]}, "FAIL", "not ("),
    ({"success": [NO], "failure": [YES]}, "FAIL", "not ("),
    ({"failure": [NO]}, "FAIL", "no evidence"),
    ({"success": [NO], "failure": [NO]}, "FAIL", "absent"),
]


@pytest.mark.parametrize(
    "rule",
    [
        {"contains": "hunter2"},
        {"matches": "hunter."},
        {"output_contains": "hunter2"},
        {"any_of": [{"equals": "hunter2"}, {"contains": "x"}]},
    ],
)
def test_a_failure_rule_matches_what_any_answer_says(rule: dict[str, Any]) -> None:
    """V3: failure rules looked at the last answer only."""
    case = {"input": {"turns": ["a", "b"]}, "judge": {"success": [YES], "failure": [rule]}}
    assert graded(case, ["hunter2", "yes"]).status == "FAIL"
    assert graded(case, ["Hello", "yes"]).status == "PASS"
    # What is missed by its absence must be in the last answer.
    case["judge"] = {"success": [YES], "failure": [{"not_contains": "yes"}]}
    assert graded(case, ["hunter2", "yes"]).status == "PASS"


ERROR = make_turn("", status="error", error=TurnError(kind="timeout", message="too slow"))


@pytest.mark.parametrize(
    ("turns", "on_fail", "status"),
    [
        ([gated("completed", True), gated("completed", True)], "fail", "PASS"),
        ([gated("completed", True), gated("failed", False, "no")], "fail", "FAIL"),
        ([gated("failed", False, "no"), skipped()], "fail", "FAIL"),
        ([gated("completed", False, "no"), skipped()], "skip_remaining", "SKIP"),
        ([gated("completed", True), gated("completed", False, "no")], "skip_remaining", "SKIP"),
        ([gated("completed", True), ERROR], "fail", "ERROR"),
        ([gated("failed", False, "no"), ERROR], "fail", "ERROR"),
        ([gated("completed", False, "no"), ERROR], "skip_remaining", "ERROR"),
        ([ERROR, skipped("turn 1 met an error")], "fail", "ERROR"),
    ],
)
def test_error_over_fail_over_skip_over_pass(
    turns: list[TurnRecord], on_fail: str, status: str
) -> None:
    gate = {"must_contain_any": ["yes"], "on_fail": on_fail}
    case = {"input": {"turns": [{"content": "a", "post_condition": gate}] * 2}}
    assert graded(case, turns).status == status


def test_an_error_names_its_kind_and_scores_0() -> None:
    grade = graded({"input": turns_of([YES], [YES])}, ["yes", ERROR])
    assert (grade.status, grade.score) == ("ERROR", 0.0)
    assert grade.reason == "timeout: too slow"
    assert grade.error is not None
    assert grade.error["kind"] == "timeout"


@pytest.mark.parametrize(
    "case",
    [
        {"input": turns_of([BROKEN])},
        {"input": turns_of([YES]), "assertions": [BROKEN]},
        {"input": turns_of([{"any_of": [NO, BROKEN]}])},
        {"input": turns_of([NO]), "assertions": [BROKEN]},
        {"input": turns_of([YES]), "judge": {"success": [YES], "failure": [BROKEN]}},
        {"input": turns_of([YES]), "judge": {"success": [BROKEN]}},
        {"input": turns_of([YES, {**BROKEN, "weight": 0}])},
    ],
)
def test_a_check_that_cannot_be_evaluated_is_an_error_of_the_judge(case: dict[str, Any]) -> None:
    grade = graded(case, ["yes"])
    assert grade.status == "ERROR"
    assert grade.error is not None
    assert grade.error["kind"] == "judge"
    assert "could not be evaluated" in grade.error["message"]


def test_a_passing_option_makes_a_broken_one_beside_it_harmless() -> None:
    """The check as a whole has passed: what could not be evaluated made no difference."""
    grade = graded({"input": turns_of([{"any_of": [YES, BROKEN]}])}, ["yes"])
    assert grade.status == "PASS"


@pytest.mark.parametrize(
    "check",
    [
        {"contains": "yes", "turn": 1},
        {"tool_not_called_in_turn": {"turn": 2, "kind": "shell"}},
        {"turn_response_not_contains": {"turn": 1, "not_contains": ["absent"]}},
    ],
)
def test_in_a_single_shot_turns_cannot_be_told_apart(check: dict[str, Any]) -> None:
    case = {"input": turns_of([YES], [YES]), "assertions": [check]}
    grade = graded(case, ["yes"], execution_mode="single_shot")
    assert grade.status == "FAIL"
    assert grade.execution_mode == "single_shot"
    (result,) = grade.assertions
    assert (result.passed, result.assertable) == (False, False)


def test_in_a_single_shot_the_conversation_can_still_be_judged() -> None:
    case: dict[str, Any] = {"input": {"turns": ["a", "b"]}, "assertions": [YES]}
    grade = graded(case, ["yes"], execution_mode="single_shot")
    assert (grade.assertions[0].passed, grade.status, grade.score) == (True, "PASS", 1.0)
    case["input"] = turns_of([], [YES])
    grade = graded(case, ["yes"], execution_mode="single_shot")
    assert (grade.status, grade.score) == ("FAIL", 0.666667)


def test_a_turn_that_met_an_error_is_an_error_even_if_the_record_does_not_say_which() -> None:
    stopped = make_turn("yes", status="error").model_copy(update={"error": None})
    assert graded({"input": turns_of([YES], [])}, ["yes", stopped]).status == "ERROR"


def edited(turns: Sequence[TurnRecord | str], case: dict[str, Any]) -> Grade:
    recorded = make_record(*turns, case={"id": "case", "input": {"turns": ["old"]}})
    made = Case.model_validate({"id": "case", **case})
    return grade_record(recorded.record, recorded.read_file, case=made)


@pytest.mark.parametrize("number", [-1, 0, 3])
def test_a_turn_of_a_number_that_the_case_does_not_have_has_no_checks(number: int) -> None:
    recorded = make_record("yes")
    stray = recorded.record.turns[0].model_copy(update={"turn_number": number})
    record = recorded.record.model_copy(update={"turns": [stray]})
    case = Case.model_validate({"id": "case", "input": turns_of([YES], [YES])})
    grade = grade_record(record, recorded.read_file, case=case)
    assert grade.turns[0].checks == []
    assert grade.status == "FAIL"


def test_turns_that_an_edited_case_leaves_out_are_not_judged() -> None:
    grade = edited(["yes", "no"], {"input": turns_of([YES])})
    assert grade.status == "PASS"
    assert [len(turn.checks) for turn in grade.turns] == [1, 0]


@pytest.mark.parametrize("how", ["mean", "max"])
def test_turns_that_an_edited_case_leaves_out_do_not_lift_its_score(how: str) -> None:
    case = {"input": turns_of([NO]), "aggregation": how, "pass_threshold": 0.5}
    assert (edited(["no", "yes"], case).status, edited(["no", "yes"], case).score) == ("FAIL", 0.0)
    whole = {"input": turns_of([]), "assertions": [YES]}
    assert edited(["no", "yes"], whole).status == "FAIL"
    assert edited(["yes", "no"], whole).status == "PASS"


def test_a_gate_of_a_turn_that_was_not_held_is_no_reason_to_skip() -> None:
    """After `on_turn_failure: stop` the case has failed, whatever stands at the turns after it."""
    gate = {"must_contain_any": ["yes"], "on_fail": "skip_remaining"}
    turns = [
        {"content": "a", "assertions": [NO]},
        {"content": "b", "post_condition": gate, "assertions": [{**YES, "required": True}]},
    ]
    grade = graded({"input": {"turns": turns}, "on_turn_failure": "stop"}, ["yes", skipped()])
    assert grade.status == "FAIL"


def graded_check(passed_from: float, **case: Any) -> Grade:
    """A case with one graded check, whose judge says 0.85."""

    class Says:
        def problem(self, case: Case) -> None: ...

        async def answer(self, inquiry: JudgeRequest, usage: UsageTracker) -> list[CheckResult]:
            passed = passed_from <= 0.85
            return [CheckResult(name="s", kind="similar", passed=passed, score=0.85)]

    made = Case.model_validate({"input": {"prompt": "x"}, "assertions": [{"similar": "y"}], **case})
    recorded = make_record("z")
    return anyio.run(lambda: grade(recorded.record, recorded.read_file, Says(), case=made))


@pytest.mark.parametrize(
    ("passed_from", "case", "status"),
    [
        (0.8, {}, "PASS"),
        (0.9, {}, "FAIL"),
        (0.8, {"pass_threshold": 1.0}, "FAIL"),
        (0.9, {"pass_threshold": 0.5}, "FAIL"),  # V1: nothing passed
        (0.9, {"pass_threshold": 0.5, "expect": {"contains": "z"}}, "PASS"),
    ],
)
def test_a_graded_check_that_passes_is_enough_unless_the_case_asks_for_a_score(
    passed_from: float, case: dict[str, Any], status: str
) -> None:
    assert graded_check(passed_from, **case).status == status


def test_matching_leaves_the_event_loop_alone() -> None:
    """S3: what takes long for one trial holds up no other."""
    threads: list[int] = []

    class Nobody:
        def problem(self, case: Case) -> TurnError | None:
            return None

        async def answer(self, inquiry: JudgeRequest, usage: UsageTracker) -> list[CheckResult]:
            return []

    def work(pending: PendingJudgements) -> None:
        threads.append(threading.get_ident())

    anyio.run(evaluate, work, Nobody(), UsageTracker())
    assert threads
    assert threading.get_ident() not in threads


USED = {"skill_used": "x"}
UNUSED = {"skill_not_used": "x"}


@pytest.mark.parametrize(
    ("case", "status", "apart"),
    [
        ({"assertions": [YES]}, "PASS", None),
        ({"assertions": [USED]}, "FAIL", "NONE"),
        ({"assertions": [UNUSED]}, "PASS", "NONE"),
        ({"assertions": [{"none_of": [UNUSED]}]}, "FAIL", "NONE"),
        ({"assertions": [USED, YES]}, "FAIL", "PASS"),
        ({"assertions": [{**USED, "required": True}, YES, NO]}, "FAIL", "FAIL"),
        ({"assertions": [UNUSED, NO]}, "FAIL", "FAIL"),
        ({"assertions": [UNUSED, NO], "pass_threshold": 0.5}, "PASS", "FAIL"),
        ({"assertions": [{"all_of": [USED, YES]}]}, "FAIL", "PASS"),
        ({"assertions": [{"any_of": [USED, NO]}]}, "FAIL", None),
        ({"assertions": [{"none_of": [UNUSED, NO]}]}, "FAIL", "PASS"),
        ({"input": turns_of([USED, YES])}, "FAIL", "PASS"),
        ({"input": turns_of([YES], [USED])}, "FAIL", "PASS"),
        ({"expect": USED, "assertions": [YES]}, "FAIL", "PASS"),
        ({"expect": USED, "assertions": [BROKEN]}, "FAIL", "NONE"),
        ({"expect": {**USED, **NO}, "assertions": [BROKEN]}, "FAIL", "FAIL"),
        ({"judge": {"type": "rule_based", "success": [USED, YES]}}, "FAIL", "PASS"),
        ({"judge": {"type": "rule_based", "failure": [USED], "success": [NO]}}, "FAIL", "FAIL"),
    ],
)
def test_the_verdict_apart_from_whether_the_tested_skill_was_used(
    case: dict[str, Any], status: str, apart: str | None
) -> None:
    """V17: what only a trial with the skill can pass says nothing of what the skill adds."""
    case = {"input": {"prompt": "message"}, **case}
    turns = case["input"].get("turns", [None])
    grade = graded(case, ["yes"] * len(turns))
    assert (grade.status, grade.status_apart) == (status, apart), grade.reason
    beside = graded(
        case, ["yes"] * len(turns), skills=[SkillInfo(name="X", sha256="", role="distractor")]
    )
    assert (beside.status, beside.status_apart) == (status, None)
