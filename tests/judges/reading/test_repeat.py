"""`judge_model.repeat`: majorities, means, errors among the answers, and how all that is shown."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.judges.evaluate import UsageTracker
from tests.support.records import make_record
from tests.support.scripted_asker import ScriptedAsker, checks, read, verdicts

ONE = make_record("Hello.")
P, F = verdicts(c1="pass"), verdicts(c1="fail")


def repeat(times: int) -> dict[str, Any]:
    return {"judge_model": {"model": "test:judge", "repeat": times}}


@pytest.mark.parametrize(
    ("said", "passed", "agreement", "note"),
    [
        ([P, P, P], True, 1.0, "asked 3 times: 3 pass"),
        ([P, F, P], True, 0.666667, "asked 3 times: 2 pass, 1 fail"),
        ([F, P, F], False, 0.666667, "asked 3 times: 1 pass, 2 fail"),
        ([P, F], False, 0.5, "asked 2 times: 1 pass, 1 fail"),
        ([P, P, F, F], False, 0.5, "asked 4 times: 2 pass, 2 fail"),
    ],
)
def test_the_majority_decides_and_a_tie_is_a_no(
    said: list[Any], passed: bool, agreement: float, note: str
) -> None:
    asker, usage = ScriptedAsker(said), UsageTracker()
    (result,) = read(asker, checks("A"), ONE, turn=1, usage=usage, **repeat(len(said)))
    assert (result.passed, result.score, result.error) == (passed, float(passed), None)
    assert result.votes == [1.0 if one is P else 0.0 for one in said]
    assert (result.agreement, result.notes[-1]) == (agreement, note)
    assert sorted(question.sample for question in asker.questions) == list(range(len(said)))
    assert usage.calls == len(said)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([P, P, "down"], "pass"),
        ([F, "down", F], "fail"),
        (["down", F], "fail"),
        ([P, F, "down"], "error"),
        (["down", "down", P], "error"),
        ([P, "down"], "error"),
    ],
)
def test_an_answer_that_failed_to_come_is_an_error_unless_the_others_have_decided(
    said: list[Any], outcome: str
) -> None:
    (result,) = read(ScriptedAsker(said), checks("A"), ONE, turn=1, **repeat(len(said)))
    found = "error" if result.error else "pass" if result.passed else "fail"
    assert found == outcome
    assert "without an answer" in result.notes[-1]


def test_each_criterion_has_a_majority_and_the_check_tells_how_stable_it_is() -> None:
    said = [
        verdicts(c1="pass", c2="pass"),
        verdicts(c1="pass", c2="fail"),
        verdicts(c1="fail", c2="pass"),
    ]
    (result,) = read(ScriptedAsker(said), checks({"rubric": ["A", "B"]}), ONE, turn=1, **repeat(3))
    assert (result.passed, result.votes) == (True, [1.0, 0.5, 0.5])
    assert result.agreement == 0.333333
    assert result.notes == ["asked 3 times: 1 pass, 2 fail"]
    assert [child.votes for child in result.children] == [[1, 1, 0], [1, 0, 1]]
    assert [child.agreement for child in result.children] == [0.666667, 0.666667]


def test_scores_are_a_mean_and_every_answer_counts() -> None:
    said = [{"reason": "close", "score": score} for score in (0.7, 0.9, 0.95)]
    asked = checks({"similar": {"to": "Hi", "threshold": 0.85}})
    (result,) = read(ScriptedAsker(said), asked, ONE, turn=1, **repeat(3))
    assert (result.passed, result.score) == (True, 0.85)
    assert (result.votes, result.agreement) == ([0.7, 0.9, 0.95], 0.666667)
    assert result.notes[1:] == ["asked 3 times: 0.7, 0.9, 0.95"]
    (result,) = read(ScriptedAsker([*said[:2], "down"]), asked, ONE, turn=1, **repeat(3))
    assert result.error == "down"
