"""Grading again: cases are validated once, and readers asked only where needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from skillup.judges.evaluate import JudgeRequest
from skillup.judges.rejudge.regrade import RegradeItem, Regrader
from skillup.judges.usage import UsageTracker
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from skillup.schema.record import Record, TurnError
from tests.support.records import make_record, make_turn, read_file

PLAIN: dict[str, Any] = {"id": "a", "input": {"prompt": "go"}, "assertions": [{"contains": "done"}]}
READING: dict[str, Any] = {**PLAIN, "assertions": ["It says so."]}


class Yes:
    """Says yes to everything."""

    def __init__(self) -> None:
        self.asked = self.entered = self.left = 0

    async def __aenter__(self) -> Self:
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.left += 1

    def problem(self, case: Case) -> TurnError | None:
        del case
        return None

    async def answer(self, inquiry: JudgeRequest, usage: UsageTracker) -> Sequence[CheckResult]:
        del usage
        assert self.entered > self.left
        self.asked += 1
        return [CheckResult(name="r", kind="rubric", passed=True, score=1) for _ in inquiry.checks]


def record(case: dict[str, Any], response: str = "Done.") -> Record:
    made = make_record(make_turn(response)).record
    return made.model_copy(update={"case": case, "case_id": "a"})


def test_the_recorded_case_is_validated_once_for_equal_cases() -> None:
    regrader = Regrader()
    first = regrader.recorded_case(record(PLAIN))
    assert regrader.recorded_case(record(dict(PLAIN))) is first
    other = regrader.recorded_case(record({**PLAIN, "title": "other"}))
    assert (first.title, other.title) == (None, "other")


def item(
    case: dict[str, Any], response: str = "Done.", by: dict[str, Any] | None = None
) -> RegradeItem:
    return RegradeItem(record(case, response), read_file, Case.model_validate(by or case))


def test_a_reader_is_made_only_for_what_only_a_reader_can_answer() -> None:
    made: list[str] = []
    yes = Yes()

    def readers(subject: Record, case: Case) -> Yes:
        del case
        made.append(subject.turns[0].response)
        return yes

    regrader = Regrader(readers)
    by_rules = regrader.by_rules(item(PLAIN))
    assert by_rules is not None
    assert (by_rules.status, made) == ("PASS", [])
    open_items = [item(READING, words) for words in ("One.", "Two.", "Three.")]
    assert [regrader.by_rules(each) for each in open_items] == [None, None, None]
    grades = regrader.by_judges([item(READING, f"{words} Done.") for words in ("1.", "2.", "3.")])
    assert [grade.turns[0].response for grade in grades] == ["1. Done.", "2. Done.", "3. Done."]
    assert [grade.status for grade in grades] == ["PASS", "PASS", "PASS"]
    assert made == ["1. Done.", "2. Done.", "3. Done."]
    assert (yes.asked, yes.entered, yes.left) == (3, 1, 1)


def test_without_a_reader_such_checks_are_errors() -> None:
    grade = Regrader().by_rules(item(READING))
    assert grade is not None
    assert grade.status == "ERROR"
