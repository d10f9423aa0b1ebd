"""Rubrics: criteria in one question, verdicts by id, weights, evidence, and what goes wrong."""

from __future__ import annotations

import pytest

from skillup.judges.evaluate import UsageTracker
from tests.support.records import make_record, make_turn
from tests.support.scripted_asker import ScriptedAsker, checks, read, verdicts

ONE = make_record(make_turn("I deleted 3 files, as you asked.", content="Delete the logs."))
TWO_CRITERIA = {"rubric": {"criteria": [{"id": "tone", "outcome": "Is friendly"}, "Is short"]}}


def test_a_bare_text_passes_with_the_judges_reason_and_quotation() -> None:
    asker = ScriptedAsker(verdicts(c1=("pass", "deleted 3 files")))
    (result,) = read(asker, checks("Says how many"), ONE, turn=1)
    assert (result.passed, result.score, result.kind) == (True, 1.0, "rubric")
    assert result.name == 'rubric "Says how many"'
    assert result.found == "c1 it is"
    assert result.excerpt == "turn 1 · answer: I deleted 3 files, as you asked."
    assert (result.children, result.notes, result.error) == ([], [], None)
    assert (result.votes, result.agreement, result.scope) == (None, None, "turn 1")
    (span,) = result.spans
    assert (span.turn, span.part, span.start, span.end) == (1, "response", 2, 17)


def test_all_criteria_of_a_turn_are_one_question() -> None:
    asker = ScriptedAsker(verdicts(c1="pass", c2="fail", c3="pass", c4="pass"))
    asked = checks("A", TWO_CRITERIA, {"expected_output": "3 files are gone"})
    usage = UsageTracker()
    results = read(asker, asked, ONE, turn=1, usage=usage)
    assert [result.passed for result in results] == [True, False, True]
    assert len(asker.questions) == usage.calls == 1
    assert "c1: A\nc2: Is friendly\nc3: Is short\nc4: The answer of turn 1 says" in asker.prompt
    assert "   | 3 files are gone" in asker.prompt
    assert "exactly one verdict for each of c1, c2, c3, c4," in asker.prompt
    judging = usage.judging()
    assert judging is not None
    assert (judging.models, judging.cost_usd) == (["test:judge"], 0.5)


@pytest.mark.parametrize(
    ("rows", "threshold", "said", "passed", "score"),
    [
        ([(3, False), (1, False)], 0.75, "pf", True, 0.75),
        ([(3, False), (1, False)], 0.76, "pf", False, 0.75),
        ([(3, False), (1, True)], 0.5, "pf", False, 0.0),
        ([(3, True), (1, False)], 0.5, "pf", True, 0.75),
        ([(0, False), (0, False)], 1.0, "ff", True, 1.0),
        ([(0.1, False), (0.2, False), (0.7, False)], 0.3, "ppf", True, 0.3),
    ],
)  # fmt: skip
def test_a_rubric_passes_by_its_weighted_share_and_its_required_criteria(
    rows: list[tuple[float, bool]], threshold: float, said: str, passed: bool, score: float
) -> None:
    criteria = [
        {"id": f"n{place}", "outcome": "x", "weight": weight, "required": required}
        for place, (weight, required) in enumerate(rows)
    ]
    words = {"p": "pass", "f": "fail"}
    asker = ScriptedAsker(verdicts(**{f"c{n}": words[w] for n, w in enumerate(said, start=1)}))
    rubric = {"rubric": {"criteria": criteria, "threshold": threshold}}
    (result,) = read(asker, checks(rubric), ONE, turn=1)
    assert (result.passed, result.score) == (passed, score)


@pytest.mark.parametrize("given", [["c1"], ["c1", "c9"], ["c1", "c2", "c2"]])
def test_not_one_verdict_on_each_criterion_is_an_error(given: list[str]) -> None:
    said = {"verdicts": [verdicts(**{name: "pass"})["verdicts"][0] for name in given]}
    results = read(ScriptedAsker(said), checks("A", "B"), ONE, turn=1)
    assert [(result.passed, result.error is None) for result in results] == [(False, False)] * 2
    assert "each `id` of c1, c2 once, and no other" in (results[0].error or "")


@pytest.mark.parametrize("said", ["overloaded;\ntry later", {"verdicts": [{"id": "c1"}]}])
def test_a_judge_that_does_not_answer_is_an_error_and_no_verdict(said: object) -> None:
    asker = ScriptedAsker(said)  # type: ignore[arg-type]
    results = read(asker, checks("A", TWO_CRITERIA, {"expected_output": "x"}), ONE, turn=1)
    assert [result.passed for result in results] == [False] * 3
    assert all(result.error and "\n" not in result.error for result in results)
    assert all(result.found == "" for result in results)
