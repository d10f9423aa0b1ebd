"""Judges side by side, and against people's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InvalidFilesError
from skillup.judges.rejudge import (
    CASE,
    JudgeColumn,
    JudgedItem,
    JudgeVerdict,
    Label,
    against_labels,
    agreement,
    judged_by,
    kappa_of,
    labels_to_fill_in,
    read_labels,
)
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from tests.support.stored import a_grade

# Two judges side by side.


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
    apart = [(item.check, one.reason, other.reason) for item, one, other in found.disagreements]
    assert apart == [("c1", "n", "y"), ("c2", "y", "n")]


# Judges on a panel: what each read, what it took, and who is compared with whom.

JOB = "case/e/with_skill/1"


def check(name: str, kind: str, *, passed: bool = True, **more: Any) -> CheckResult:
    return CheckResult(name=name, kind=kind, passed=passed, score=float(passed), **more)


def seat(name: str, *checks: CheckResult, status: str = "PASS", **more: Any) -> JudgeColumn:
    found = JudgeColumn(name)
    grade = a_grade().model_copy(update={"assertions": list(checks), "status": status, **more})
    found.add(JOB, grade)
    return found


def test_what_no_model_reads_is_not_compared() -> None:
    checks = [check("a", "rubric"), check("b", "script"), check("c", "contains"),
              check("the turn was not held", "rubric", passed=False, assertable=False)]  # fmt: skip
    one = seat("one", *checks)

    assert [item.check for item in one.read()] == ["a"]
    assert [item.check for item in one.trials()] == ["case"]
    assert [item.check for item in one.verdicts] == ["a", "b", "case"]


def a_case(**more: Any) -> Case:
    return Case.model_validate({"id": "c", "input": {"prompt": "a"}, **more})


AGENT = {"type": "agent_judge", "criteria": ["A"], "model": "old", "base_url": "http://x"}


def test_another_model_reads_and_leads_the_agents() -> None:
    own = {"model": "openai:own", "base_url": "http://localhost/v1", "repeat": 3}
    case = a_case(judge_model=own, judges=[AGENT, {"success": [{"contains": "a"}]}])

    other = judged_by(case, "openai-chat:new", Path())
    assert other.judge_model is not None
    assert (other.judge_model.model, other.judge_model.repeat) == ("openai-chat:new", 3)
    assert other.judge_model.base_url is None
    assert [judge.model for judge in other.all_judges()] == ["new", None]
    same = judged_by(case, "openai:own", Path())
    assert same.judge_model == case.judge_model


def test_a_written_down_judge_is_looked_for_from_here_first(tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text("rules: []\n", encoding="utf-8")
    case = a_case(judge=AGENT)

    here = judged_by(case, "scripted:strict.yaml", tmp_path)
    elsewhere = judged_by(case, "scripted:judges/strict.yaml", tmp_path)
    assert here.judge_model is not None
    assert elsewhere.judge_model is not None
    assert here.judge_model.model == f"scripted:{tmp_path / 'strict.yaml'}"
    assert elsewhere.judge_model.model == "scripted:judges/strict.yaml"
    assert [judge.model for judge in here.all_judges()] == ["old"]


# A judge against people's labels.

LABELLED = "a/b/claude/with_skill/1"


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
        JudgedItem(LABELLED, 1, name): JudgeVerdict(passed, "") for name, passed in answers.items()
    }

    score = against_labels(
        verdicts, [Label(1, LABELLED, 1, name, passed) for name, passed in meant.items()]
    )

    assert score.shares() == {"accuracy": (3, 5), "precision": (2, 3), "recall": (2, 3)}
    # p_o = 3/5; both pass 3 of 5, so p_e = 9/25 + 4/25.
    assert list(score.confusion().values()) == [2, 1, 1, 1]
    assert kappa_of(score.pairs) == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert [item.check for item, _, _ in score.wrong] == ["fp", "fn"]


def test_a_label_may_name_the_case_and_a_trials_own_outranks_it() -> None:
    """J12: of conflicting labels both counted, and equal ones twice."""
    other = JudgedItem(LABELLED.replace("/1", "/2"), 2, "Polite")
    verdicts = {
        JudgedItem(LABELLED, 2, "Polite"): JudgeVerdict(True, ""),
        other: JudgeVerdict(None, "timed out"),
        JudgedItem(LABELLED, 0, CASE): JudgeVerdict(False, ""),
    }
    given = [
        Label(2, "a/b", 2, "Polite", False),
        Label(3, LABELLED, 2, "Polite", True),
        Label(4, "a/b", 1, "Polite", True),
    ]

    score = against_labels(verdicts, given)

    assert score.pairs == [(True, True)]
    assert score.unanswered == [other]
    assert score.unmatched == [given[2]]


def test_a_file_to_fill_in_is_read_once_it_is_filled_in(tmp_path: Path) -> None:
    names = ['rubric "Is, and\nstays, polite"', "a / b", CASE]
    verdicts = {
        JudgedItem(LABELLED, place, name): JudgeVerdict(True, "")
        for place, name in enumerate(names)
    }
    text = labels_to_fill_in(verdicts)

    assert text.splitlines()[0] == "job,turn,check,label"
    assert labels(tmp_path, text) == []
    filled = text.replace(",\n", ",fail\n")
    assert against_labels(verdicts, labels(tmp_path, filled)).confusion()["false_pass"] == 3
