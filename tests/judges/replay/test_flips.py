"""What counts as the same check, and what is said to have changed."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.judges.rejudge import compare
from skillup.schema.grade import CheckResult, Grade, TurnGrade
from tests.support.stored import a_grade


def check(name: str = "contains 'a'", **more: Any) -> CheckResult:
    given: dict[str, Any] = {
        "name": name,
        "kind": "contains",
        "expected": name.partition(" ")[2],
        "passed": True,
        "score": 1.0,
        "scope": "turn 1",
        **more,
    }
    return CheckResult(**given)


def grade(*checks: CheckResult, after: tuple[CheckResult, ...] = (), **more: Any) -> Grade:
    turn = TurnGrade(
        turn_number=1,
        status="completed",
        source="case",
        content="go on",
        response="done",
        score=1.0,
        post_condition_passed=None,
        session_verified=None,
        checks=list(checks),
    )
    return a_grade().model_copy(update={"turns": [turn], "assertions": list(after), **more})


def said(before: Grade, after: Grade) -> list[tuple[str, str, str]]:
    return [(flip.change, flip.where, flip.check.name) for flip in compare(before, after).flips]


def test_other_words_for_the_same_finding_are_no_change() -> None:
    assert said(grade(check(found="there")), grade(check(found="it is there"))) == []


ASPECT = CheckResult(name="flow", kind="aspect", passed=True, score=0.75, found="it flows")


@pytest.mark.parametrize(
    "update",
    [
        {"found": "It does not ask, but that is fine."},
        {"excerpt": "turn 1 · answer: I never said that"},
        {"notes": ["the judge's quotation is not in what was judged"]},
        {"children": [ASPECT.model_copy(update={"score": 0.0})]},
        {"children": [ASPECT.model_copy(update={"found": "it does not"})]},
    ],
)
def test_what_a_judge_says_otherwise_of_the_same_verdict_is_a_change(
    update: dict[str, Any],
) -> None:
    """J4: "nothing changed", where the reason turned round or the quotation was invented."""
    before = check("asks", kind="rubric", found="It asks.", children=[ASPECT])
    changes = said(grade(before), grade(before.model_copy(update=update)))
    assert changes == [("changed", "turn 1", "asks")]
    assert not compare(grade(before), grade(before.model_copy()))


def test_a_line_that_was_reworded_is_the_same() -> None:
    """J4: it was one that is new and one that is gone."""
    before = [check("rubric 'Asks'", kind="rubric"), check("rubric 'Is brief'", kind="rubric")]
    after = [check("rubric 'Asks first'", kind="rubric"), before[1]]
    assert said(grade(*before), grade(*after)) == [("changed", "turn 1", "rubric 'Asks first'")]
    changes = [kind for kind, *_ in said(grade(*before), grade(after[0]))]
    assert changes == ["added", "removed", "removed"]


def test_status_and_score_alone_are_a_change() -> None:
    change = compare(grade(), grade(status="FAIL", score=0.5))
    assert change
    assert change.is_flip
    assert not compare(grade(), grade(score=0.5)).is_flip
