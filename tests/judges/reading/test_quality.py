"""Answer quality: aspects, steps, their mean."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.records import make_record, make_turn
from tests.support.scripted_asker import ScriptedAsker, checks, read

ONE = make_record(make_turn("It is 4.", content="How much is 2 and 2?"))


def grades(**by_aspect: int) -> dict[str, Any]:
    return {
        "grades": [
            {"aspect": aspect, "grade": grade, "reason": f"{aspect}!", "quote": "It is 4"}
            for aspect, grade in by_aspect.items()
        ]
    }


def test_the_score_is_the_mean_of_the_steps_from_0_to_1() -> None:
    asker = ScriptedAsker(grades(correctness=5, completeness=4, flow=3, format=2))
    (result,) = read(
        asker, checks({"answer_quality": {"threshold": 0.6, "min_grade": 1}}), ONE, turn=1
    )
    assert (result.passed, result.score) == (True, 0.625)
    assert [(c.name, c.score, c.passed) for c in result.children] == [
        ("correctness", 1.0, True),
        ("completeness", 0.75, True),
        ("flow", 0.5, False),
        ("format", 0.25, False),
    ]
    assert result.found == (
        "correctness 1.00, completeness 0.75, flow 0.50, format 0.25; format: format!"
    )
    assert result.children[0].excerpt == "turn 1 · answer: It is 4."
    wanted = {"threshold": 0.63, "min_grade": 1}
    (result,) = read(asker, checks({"answer_quality": wanted}), ONE, turn=1)
    assert not result.passed


@pytest.mark.parametrize(
    ("given", "least", "passed"),
    [(1, None, False), (2, None, False), (3, None, True), (2, 2, True), (1, 2, False)],
)
def test_no_aspect_may_be_below_the_least_grade_however_good_the_others_are(
    given: int, least: int | None, passed: bool
) -> None:
    """J6: an answer that is wrong throughout passed for being complete, fluent and well formed."""
    asker = ScriptedAsker(grades(correctness=given, completeness=5, flow=5, format=5))
    wanted = {} if least is None else {"min_grade": least}
    (result,) = read(asker, checks({"answer_quality": wanted}), ONE, turn=1)
    assert result.score >= 0.7
    assert result.passed is passed
    assert (f"; below grade {least or 3}" in result.found) is not passed
