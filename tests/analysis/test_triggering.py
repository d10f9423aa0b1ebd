"""Precision, recall and F1 of skills."""

from __future__ import annotations

from typing import Any

from skillup.analysis import analyse
from skillup.schema.analysis import Triggering
from skillup.schema.grade import Grade
from tests.support.graded import a_check, a_grade, a_result

INFO = {"suites": {"demo": {"cases": {}, "skills": ["x"], "distractors": ["other"]}}}


def trials(expected: str, outcomes: str, **more: Any) -> list[Grade]:
    """`expected`: skill_used or skill_not_used; a trial for each letter: the check passed (p)."""
    return [
        a_grade(expected, trial=n, **{"assertions": [
            a_check(expected, expected="x", passed=mark == "p")], **more})
        for n, mark in enumerate(outcomes, start=1)
    ]  # fmt: skip


def of(*grades: Grade) -> list[Triggering]:
    return analyse(a_result(grades), INFO).triggering


def test_each_trial_is_one_of_four_outcomes() -> None:
    (found,) = of(*trials("skill_used", "pppf"), *trials("skill_not_used", "ppfff"))

    assert (found.used_rightly, found.not_used_wrongly) == (3, 1)
    assert (found.used_wrongly, found.not_used_rightly) == (3, 2)
    assert (found.precision, found.recall) == (0.5, 0.75)
    assert found.f1 == 2 * 0.5 * 0.75 / (0.5 + 0.75)
    assert (found.skill, found.distractors) == ("x", ["other"])


def test_what_is_not_defined_is_none() -> None:
    (never_wanted,) = of(*trials("skill_not_used", "pp"))
    assert (never_wanted.precision, never_wanted.recall, never_wanted.f1) == (None, None, None)
    (never_used,) = of(*trials("skill_used", "ff"))
    assert (never_used.precision, never_used.recall, never_used.f1) == (None, 0, 0)
    (used_wrongly,) = of(*trials("skill_not_used", "f"))
    assert (used_wrongly.precision, used_wrongly.recall, used_wrongly.f1) == (0, None, None)


def test_trials_without_the_skill_and_those_without_a_verdict_do_not_count() -> None:
    baseline = trials("skill_used", "ff", variant="without_skill")
    broken = trials("skill_used", "f", status="ERROR")
    (found,) = of(*trials("skill_used", "p"), *baseline, *broken)

    assert (found.used_rightly, found.not_used_wrongly) == (1, 0)
