"""All that is asked about a subject: order, concurrency, edited cases, defects."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from skillup.judges import grade
from skillup.judges.evaluate import Judgement
from skillup.judges.llm import read_checks
from skillup.judges.models.question import ModelAnswer, ModelQuestion
from skillup.judges.usage import UsageTracker
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from skillup.schema.record import TurnError
from tests.support.records import make_record, read_file
from tests.support.scripted_asker import ScriptedAsker, checks, read, verdicts

ONE = make_record("Hello.")


def test_results_come_in_the_order_of_the_checks() -> None:
    written = [
        {"similar": "Hi"}, "A", {"relevance": {}}, {"answer_quality": 0.5}, "B",
        {"expected_output": "C"},
    ]  # fmt: skip
    asker, ledger = ScriptedAsker("down"), UsageTracker()
    results = read(asker, checks(*written), ONE, turn=1, ledger=ledger)
    assert [result.kind for result in results] == [
        "similar", "rubric", "relevance", "answer_quality", "rubric", "expected_output"
    ]  # fmt: skip
    assert [result.error for result in results] == ["down"] * 6
    assert len(asker.questions) == ledger.calls == 4


def test_questions_are_asked_at_the_same_time() -> None:
    class Rendezvous(ScriptedAsker):
        async def ask(self, question: ModelQuestion) -> ModelAnswer:
            answer = await super().ask(question)
            with anyio.fail_after(20):
                while len(self.questions) < 9:  # each waits for all the others
                    await anyio.lowlevel.checkpoint()
            return answer

    model = {"model": "test:judge", "repeat": 3}
    asked = checks({"similar": "Hi"}, "A", {"relevance": {}})
    asker = Rendezvous("down")
    read(asker, asked, ONE, turn=1, judge_model=model)
    assert len(asker.questions) == 9


def test_a_defect_of_the_asker_is_an_error_of_the_check() -> None:
    def fails(question: ModelQuestion) -> str:
        raise RuntimeError("oh\nno")

    (result,) = read(ScriptedAsker(fails), checks("A"), ONE, turn=1)
    assert result.error == "skillup itself failed: RuntimeError: oh no; please report it"


class Reading:
    """The least reader: everything is read by one asker."""

    def __init__(self, asker: ScriptedAsker) -> None:
        self.asker = asker

    def problem(self, case: Case) -> TurnError | None:
        return None

    async def read(self, inquiry: Judgement, ledger: UsageTracker) -> Sequence[CheckResult]:
        return await read_checks(inquiry, self.asker, ledger)


def case(**more: object) -> Case:
    return Case.model_validate({"id": "case", "input": {"turns": ["a", "b"]}, **more})


def test_an_edited_case_is_judged_as_it_says_now() -> None:
    old = case(assertions=["Old"], judge_model="test:old", window_size=2)
    recorded = make_record("One.", "Two.", case=old.model_dump(mode="json", by_alias=True))
    turns = [{"content": "a"}, {"content": "b", "assertions": ["New"]}]
    new = case(input={"turns": turns}, judge_model="test:new", window_size=1)
    asker = ScriptedAsker(verdicts(c1="pass"))

    async def run() -> None:
        graded = await grade(recorded.record, read_file, Reading(asker), case=new)
        assert graded.status == "PASS"
        assert graded.judging is not None
        assert graded.judging.calls == 1

    anyio.run(run)
    (question,) = asker.questions
    assert question.model.model == "test:new"
    assert "c1: New" in question.prompt
    assert "One." not in question.prompt


def test_a_judge_that_does_not_answer_makes_the_case_an_error() -> None:
    written = case(assertions=["Is polite"], judge_model="test:judge")
    recorded = make_record("One.", "Two.", case=written.model_dump(mode="json", by_alias=True))

    async def run() -> None:
        graded = await grade(recorded.record, read_file, Reading(ScriptedAsker("overloaded")))
        assert graded.status == "ERROR"
        assert graded.error is not None
        assert graded.error["kind"] == "judge"
        assert "overloaded" in graded.reason

    anyio.run(run)
