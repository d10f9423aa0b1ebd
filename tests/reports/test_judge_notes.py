"""What the terminal says of judges beside their verdicts."""

from __future__ import annotations

from skillup.reports.view_model import judge_lines, judging_cost
from skillup.schema.grade import CheckResult, Judging
from tests.reports.test_junit import make_grade


def check(**more: object) -> CheckResult:
    fields = {"name": "polite", "kind": "rubric", "passed": True, "score": 1.0, **more}
    return CheckResult.model_validate(fields)


def test_a_judge_of_several_minds_is_told_even_of_a_pass() -> None:
    split = check(votes=[1.0, 1.0, 0.0], agreement=0.6667)

    (line,) = judge_lines(make_grade(assertions=[split]))

    assert line == "polite: the judge was of several minds (1, 1, 0; agreement 0.67)"


def test_a_quotation_that_is_not_there_is_told() -> None:
    child = check(name="c1", notes=["this quotation is not in what was judged: x"])

    (line,) = judge_lines(make_grade(assertions=[check(children=[child])]))

    assert line == "c1: this quotation is not in what was judged: x"


def test_agreement_and_other_notes_are_not_worth_a_line() -> None:
    fine = check(votes=[1.0, 1.0], agreement=1.0, notes=["asked 2 times: 2 pass"])

    assert list(judge_lines(make_grade(assertions=[fine]))) == []


def test_the_cost_of_judges_is_told_apart() -> None:
    took = Judging(calls=12, cached_calls=3, cost_usd=0.0213)

    assert judging_cost(took) == "judges: 12 calls (3 from the cache), $0.0213"
    assert judging_cost(Judging(calls=1)) == "judges: 1 call"
    assert judging_cost(None) is None
