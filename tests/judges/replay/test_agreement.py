"""Two judges side by side."""

from __future__ import annotations

import pytest

from skillup.judges.rejudge.judges_compared import JudgedItem, JudgeVerdict, agreement


def said(answers: str) -> dict[JudgedItem, JudgeVerdict]:
    """A letter for each item: y, n, or ? for a judge that failed; a dot: it was not asked."""
    passed = {"y": True, "n": False, "?": None}
    return {
        JudgedItem("case/e/with_skill/1", 1, f"c{place}"): JudgeVerdict(passed[letter], letter)
        for place, letter in enumerate(answers)
        if letter != "."
    }


@pytest.mark.parametrize(
    ("first", "second", "share", "kappa"),
    [
        ("yynn", "yynn", 1.0, 1.0),
        ("yynn", "nnyy", 0.0, -1.0),
        ("ynyn", "yynn", 0.5, 0.0),
        ("yyyy", "yyyy", 1.0, None),  # no variation: chance alone explains it
        ("yyyn", "yyyy", 0.75, 0.0),
        # Cohen's worked two-by-two form: 20 both yes, 15 both no, 5 and 10 apart, of 50
        ("y" * 25 + "n" * 25, "y" * 20 + "n" * 5 + "y" * 10 + "n" * 15, 0.7, 0.4),
        ("", "", None, None),
    ],
)
def test_kappa_is_agreement_beyond_chance(
    first: str, second: str, share: float | None, kappa: float | None
) -> None:
    found = agreement(said(first), said(second))

    assert found.share == share
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))


def test_what_one_judge_did_not_answer_is_left_out() -> None:
    found = agreement(said("yny?."), said("yyn?y"))

    assert (found.items, found.agreed) == (3, 1)
    assert [d.item.check for d in found.disagreements] == ["c1", "c2"]
    assert [(d.first.reason, d.second.reason) for d in found.disagreements] == [
        ("n", "y"), ("y", "n"),
    ]  # fmt: skip
