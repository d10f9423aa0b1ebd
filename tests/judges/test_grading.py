"""Design §4's rules for score and status, one row for each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from skillup.judges import grade, grade_record
from skillup.judges.evaluate import JudgeRequest, PendingJudgements, UsageTracker, evaluate
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult, Grade
from skillup.schema.record import SkillInfo, TurnRecord
from tests.support.records import make_record, make_turn

YES = {"contains": "yes"}
NO = {"contains": "absent"}
BROKEN = {"rubric": "nobody here can read this"}
STOPPED = make_turn("", status="skipped", reason="not sent")


def graded(case: dict[str, Any], turns: Sequence[TurnRecord | str], **record: Any) -> Grade:
    """The grade of a record of `turns`; the case as it was held is in the record."""
    made = Case.model_validate({"id": "case", **case})
    held = made.model_dump(mode="json", by_alias=True, exclude_unset=True)
    recorded = make_record(*turns, case=held, **record)
    return grade_record(recorded.record, recorded.read_file)


def turns_of(*checks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"turns": [{"content": f"message {n}", "assertions": c} for n, c in enumerate(checks)]}


def test_where_expect_fails_nobody_is_asked_of_the_conversation() -> None:
    """V16: a failed `expect` still paid for rubrics; those are not evaluated, and not failures."""

    class Refuses:
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


def test_in_a_single_shot_the_conversation_can_still_be_judged() -> None:
    case: dict[str, Any] = {"input": {"turns": ["a", "b"]}, "assertions": [YES]}
    grade = graded(case, ["yes"], execution_mode="single_shot")
    assert (grade.assertions[0].passed, grade.status, grade.score) == (True, "PASS", 1.0)
    case["input"] = turns_of([], [YES])
    grade = graded(case, ["yes"], execution_mode="single_shot")
    assert (grade.status, grade.score) == ("FAIL", 0.666667)


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


@pytest.mark.parametrize("how", ["mean", "max"])
def test_turns_that_an_edited_case_leaves_out_do_not_lift_its_score(how: str) -> None:
    case = {"input": turns_of([NO]), "aggregation": how, "pass_threshold": 0.5}
    grade = edited(["no", "yes"], case)
    assert (grade.status, grade.score) == ("FAIL", 0.0)
    assert [len(turn.checks) for turn in grade.turns] == [1, 0]
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
    grade = graded({"input": {"turns": turns}, "on_turn_failure": "stop"}, ["yes", STOPPED])
    assert grade.status == "FAIL"


def graded_check(passed_from: float, **case: Any) -> Grade:
    """A case with one graded check, whose judge says 0.85."""

    class Says:
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
