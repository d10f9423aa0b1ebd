"""A judge against people's labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import InvalidFilesError
from skillup.judges.rejudge.judges_compared import CASE, JudgedItem, JudgeVerdict
from skillup.judges.rejudge.labels import (
    Confusion,
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
    read = labels(tmp_path, "label, job,check,turn\npass,a,Polite,2\nNo,b,,\n")

    assert read == [Label(2, "a", 2, "Polite", True), Label(3, "b", None, CASE, False)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1:1: the first line lacks `job`, `label`"),
        ("job,verdict\na,pass\n", ":1:1: the first line lacks `label`"),
        ("job,label\na,maybe\n", ":2:1: label: `maybe` is no label"),
        ("job,label\n,pass\n", ":2:1: job: there is no job"),
        ("job,turn,label\na,two,pass\n", ":2:1: turn: `two` is no turn"),
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

    assert score.counts == Confusion(2, 1, 1, 1)
    assert score.counts.shares() == {"accuracy": (3, 5), "precision": (2, 3), "recall": (2, 3)}
    # p_o = 3/5; both pass 3 of 5, so p_e = 9/25 + 4/25.
    assert score.counts.kappa == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert score.by_check["fp"] == Confusion(0, 1, 0, 0)
    assert [item.check for item, _, _ in score.wrong] == ["fp", "fn"]


def test_a_label_may_name_the_case_and_leave_out_the_turn() -> None:
    verdicts = {
        JudgedItem(JOB, 2, "rubric / Polite"): JudgeVerdict(True, ""),
        JudgedItem(JOB.replace("/1", "/2"), 2, "rubric / Polite"): JudgeVerdict(None, "timed out"),
        JudgedItem(JOB, 0, CASE): JudgeVerdict(False, ""),
    }
    said = [Label(2, "a/b", None, "Polite", True), Label(3, "a/b", 1, "Polite", True)]

    score = against_labels(verdicts, said)

    assert score.counts.true_pass == 1
    assert [str(item) for item in score.unanswered] == [
        "a/b/claude/with_skill/2: turn 2: rubric / Polite"
    ]
    assert score.unmatched == (said[1],)


def test_an_item_counts_once_and_not_at_all_if_it_is_labelled_both_ways() -> None:
    """J12: of conflicting labels both counted, and equal ones twice."""
    twice, both = JudgedItem(JOB, 1, "A"), JudgedItem(JOB, 1, "B")
    given = [
        Label(2, JOB, 1, "A", True),
        Label(3, "a/b", None, "A", True),
        Label(4, JOB, 1, "B", True),
        Label(5, JOB, 1, "B", False),
    ]

    score = against_labels({twice: JudgeVerdict(True, ""), both: JudgeVerdict(True, "")}, given)

    assert score.counts == Confusion(1, 0, 0, 0)
    assert score.contradicted == ((both, (given[2], given[3])),)


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
