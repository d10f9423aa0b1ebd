"""Judges side by side, and against people's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.judges.labels import COLUMNS, Label, against_labels, read_labels, rows_text
from skillup.judges.rejudge import (
    CASE,
    JudgeColumn,
    JudgedItem,
    JudgeVerdict,
    Said,
    both_said,
    judged_by,
    kappa_of,
)
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from tests.support.stored import a_grade

# Two judges side by side.


def said(answers: str) -> dict[JudgedItem, JudgeVerdict]:
    """A letter for each item: y, n, u, or ? for a judge that failed; a dot: it was not asked."""
    passed: dict[str, Said | None] = {"y": "pass", "n": "fail", "u": "unknown", "?": None}
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
        ("yynnuu", "yynnuu", 1.0, 1.0),
        ("yyu", "yyn", 2 / 3, 0.4),  # p_e = 4/9
    ],
)
def test_kappa_is_agreement_beyond_chance(
    first: str, second: str, share: float | None, kappa: float | None
) -> None:
    both = [(str(a.said), str(b.said)) for _, a, b in both_said(said(first), said(second))]

    assert (sum(a == b for a, b in both) / len(both) if both else None) == share
    assert kappa_of(both)[0] == (None if kappa is None else pytest.approx(kappa))


def test_the_interval_of_kappa_is_that_of_its_large_sample_variance() -> None:
    # Cohen's form above; its standard error by numerical derivatives of kappa (delta method).
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    low, high = kappa_of(pairs)[1] or (0, 0)
    assert (low + high) / 2 == pytest.approx(0.4)
    assert (high - low) / 2 == pytest.approx(1.96 * 0.126996, abs=1e-5)
    assert kappa_of([("y", "y"), ("n", "n")]) == (1.0, None)


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


# A judge against people's labels.

LABELLED = "a/b/claude/with_skill/1"


def labels(tmp_path: Path, text: str) -> list[Label]:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return read_labels(path)


def test_labels_are_read_by_their_columns(tmp_path: Path) -> None:
    read = labels(tmp_path, "label, job,check,turn\npass,a,Polite,2\nFail,b,,\nfail,b,,\n")

    assert read == [Label(2, "a", 2, "Polite", "pass"), Label(3, "b", 0, CASE, "fail")]


def test_a_label_may_name_the_case_and_a_trials_own_outranks_it() -> None:
    """J12: of conflicting labels both counted, and equal ones twice."""
    other = JudgedItem(LABELLED.replace("/1", "/2"), 2, "Polite")
    verdicts = {
        JudgedItem(LABELLED, 2, "Polite"): JudgeVerdict("pass", ""),
        other: JudgeVerdict(None, "timed out"),
        JudgedItem(LABELLED, 0, CASE): JudgeVerdict("fail", ""),
    }
    given = [
        Label(2, "a/b", 2, "Polite", "fail"),
        Label(3, LABELLED, 2, "Polite", "pass"),
        Label(4, "a/b", 1, "Polite", "pass"),
    ]

    score = against_labels(verdicts, given, {})

    assert score.pairs == [("pass", "pass")]
    assert score.unanswered == [other]
    assert score.unmatched == [given[2]]


def test_what_a_spreadsheet_would_compute_is_text_and_read_back(tmp_path: Path) -> None:
    cells = ["=1+1", "-rf", "@x", "'=quoted", "'mine", '+1, "or"\nmore', "plain"]
    rows = [dict.fromkeys(COLUMNS, "") | {"job": "a", "check": c, "label": "pass", "answer": c}
            for c in cells]  # fmt: skip
    text = rows_text(COLUMNS, rows)
    assert not any(cell[:1] in "=+-@" for cell in text.replace('"', "").split(",") if cell)
    assert [one.answer for one in labels(tmp_path, text)] == [" ".join(c.split()) for c in cells]
