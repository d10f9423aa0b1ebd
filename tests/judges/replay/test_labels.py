"""A judge against people's labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import InvalidFilesError
from skillup.judges.rejudge.judges_compared import (
    CASE,
    Confusion,
    JudgedItem,
    JudgeVerdict,
    Label,
    against_labels,
    labels_to_fill_in,
    read_labels,
)

JOB = "a/b/claude/with_skill/1"


def labels(tmp_path: Path, text: str) -> list[Label]:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return read_labels(path)


def test_labels_are_read_by_their_columns(tmp_path: Path) -> None:
    read = labels(tmp_path, "label, job,check,turn\npass,a,Polite,2\nNo,b,,\nno,b,,\n")

    assert read == [Label(2, "a", 2, "Polite", True), Label(3, "b", 0, CASE, False)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1:1: the first line lacks `job`, `label`"),
        ("job,verdict\na,pass\n", ":1:1: the first line lacks `label`"),
        ("job,label\na,maybe\n", ":2:1: label: `maybe` is no label"),
        ("job,label\n,pass\n", ":2:1: job: there is no job"),
        ("job,turn,label\na,two,pass\n", ":2:1: turn: `two` is no turn"),
        ("job,label\na,pass\na,fail\n", ":3:1: label: line 2 says the opposite"),  # J12
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        labels(tmp_path, text)
    assert told in str(refused.value.problems[0])


def test_passes_are_the_positive_class() -> None:
    answers = {"tp": True, "tp2": True, "fp": True, "tn": False, "fn": False}
    meant = {"tp": True, "tp2": True, "fp": False, "tn": False, "fn": True}
    verdicts = {
        JudgedItem(JOB, 1, name): JudgeVerdict(passed, "") for name, passed in answers.items()
    }

    score = against_labels(
        verdicts, [Label(1, JOB, 1, name, passed) for name, passed in meant.items()]
    )

    assert score.counts.shares() == {"accuracy": (3, 5), "precision": (2, 3), "recall": (2, 3)}
    # p_o = 3/5; both pass 3 of 5, so p_e = 9/25 + 4/25.
    assert score.counts == Confusion(2, 1, 1, 1, score.counts.kappa)
    assert score.counts.kappa == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert score.by_check["fp"] == Confusion(0, 1, 0, 0, 0.0)
    assert [item.check for item, _, _ in score.wrong] == ["fp", "fn"]


def test_a_label_may_name_the_case_and_a_trials_own_outranks_it() -> None:
    """J12: of conflicting labels both counted, and equal ones twice."""
    other = JudgedItem(JOB.replace("/1", "/2"), 2, "Polite")
    verdicts = {
        JudgedItem(JOB, 2, "Polite"): JudgeVerdict(True, ""),
        other: JudgeVerdict(None, "timed out"),
        JudgedItem(JOB, 0, CASE): JudgeVerdict(False, ""),
    }
    given = [
        Label(2, "a/b", 2, "Polite", False),
        Label(3, JOB, 2, "Polite", True),
        Label(4, "a/b", 1, "Polite", True),
    ]

    score = against_labels(verdicts, given)

    assert (score.counts.true_pass, score.counts.false_pass) == (1, 0)
    assert score.unanswered == (other,)
    assert score.unmatched == (given[2],)


def test_a_file_to_fill_in_is_read_once_it_is_filled_in(tmp_path: Path) -> None:
    names = ['rubric "Is, and\nstays, polite"', "a / b", CASE]
    verdicts = {
        JudgedItem(JOB, place, name): JudgeVerdict(True, "") for place, name in enumerate(names)
    }
    text = labels_to_fill_in(verdicts)

    assert text.splitlines()[0] == "job,turn,check,label"
    assert labels(tmp_path, text) == []
    filled = text.replace(",\n", ",fail\n")
    assert against_labels(verdicts, labels(tmp_path, filled)).counts.false_pass == 3
