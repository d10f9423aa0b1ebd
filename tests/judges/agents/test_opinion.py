"""Votes become one result."""

from __future__ import annotations

import pytest

from skillup.judges.agent.answer import AgentCriterionVerdict, numbered
from skillup.judges.agent.judge import opinion
from skillup.schema.check_specs import Criterion


def _opinion(*votes: str, threshold: float = 1.0) -> dict[str, object]:
    """Each vote is a letter for each criterion, y or n; the first criterion is required."""
    criteria = [
        Criterion(id=name, outcome=name, required=name == "a") for name in "abc"[: len(votes[0])]
    ]
    answers = [
        {
            name: AgentCriterionVerdict(said == "y", said)
            for name, said in zip("abc", vote, strict=False)
        }
        for vote in votes
    ]
    return opinion(numbered(criteria), answers, threshold, lambda *_: None, str)


@pytest.mark.parametrize(
    ("votes", "passed", "score", "agreement"),
    [
        (("yy", "yy", "yn"), True, 1.0, 2 / 3),
        (("yy", "yn", "yn"), False, 0.5, 2 / 3),
        (("yy", "ny"), False, 0.0, 0.5),
        (("yyy", "yny", "yyn"), True, 1.0, 1 / 3),
        (("nn", "nn"), False, 0.0, 1.0),
    ],
)
def test_each_criterion_is_decided_by_its_majority_and_a_tie_is_no_pass(
    votes: tuple[str, ...], passed: bool, score: float, agreement: float
) -> None:
    said = _opinion(*votes)

    assert (said["passed"], said["score"]) == (passed, score)
    assert said["agreement"] == pytest.approx(agreement)
    assert bool(said["notes"]) == (agreement < 1)


def test_the_score_is_compared_with_the_threshold() -> None:
    assert _opinion("yyn", threshold=0.66)["passed"]
    assert not _opinion("yyn", threshold=0.67)["passed"]
    assert not _opinion("nyy", threshold=0.0)["passed"]
    found = _opinion("yyn")["found"]
    assert found == "2 of 3 criteria met, score 0.67 < 1.00; c: c: n"
