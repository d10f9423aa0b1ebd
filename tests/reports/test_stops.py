"""What is said of trials that were not held."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.reports.view_model import decided_words, not_run_words, stop_lines
from skillup.schema.analysis import CaseReliability, Decision, Rate
from skillup.schema.grade import RunResult, Stop
from tests.support.stored import a_result


def a_result_without(*jobs: str, **more: Any) -> RunResult:
    return a_result(finished=False).model_copy(update={"not_run": list(jobs), **more})


def test_it_says_why_what_and_how_to_go_on() -> None:
    stop = Stop(kind="max_tokens", message="the budget of 5 tokens is used up (7)")
    result = a_result_without(
        *(f"a/x/with_skill/{n}" for n in (2, 3)), "b/x/with_skill/1", stopped=stop,
        not_needed=["c/x/with_skill/9"],
    )  # fmt: skip
    assert list(stop_lines(result.model_copy(update={"cases": []}), "skillup …")) == [
        "stopped: the budget of 5 tokens is used up (7); 3 of 4 trials were not run: a ×2, b",
        "go on with: skillup …",
    ]


def test_a_run_that_held_all_says_nothing() -> None:
    assert list(stop_lines(a_result(), "skillup …")) == []


def test_one_trial_is_one_trial_and_without_a_reason_there_is_none() -> None:
    first, _ = stop_lines(a_result_without("a/scripted/with_skill/1"), "…")
    assert first == "1 of 2 trials was not run: a"


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        (["a/b/x/with_skill/1", "a/b/x/with_skill/2"], "a/b x ×2"),
        (["a/scripted/without_skill/1"], "a without"),
        (["a/x/without_skill/1", "a/x/with_skill/1"], "a x without, a x with"),
        ([f"c{n}/scripted/with_skill/1" for n in range(9)], "c0, c1, c2, c3, c4, c5 and 3 more"),
    ],
)
def test_engine_and_variant_are_named_where_there_are_several(jobs: list[str], words: str) -> None:
    assert not_run_words(a_result_without(*jobs)) == words


def a_case(decision: Decision | None, held: int) -> CaseReliability:
    rate = Rate(passed=held, held=held, rate=None, low=None, high=None)
    return CaseReliability(
        suite="s", case_id="c", engine="e", variant="with_skill", rate=rate, decision=decision
    )


def decided(side: Any, trials: int, saved: int) -> CaseReliability:
    about = Decision(verdict=side, threshold=0.8, error_rate=0.05, trials=trials, saved=saved)
    return a_case(about, trials)


def test_what_sequential_tests_saved() -> None:
    cases = [decided("above", 16, 4), decided("below", 3, 17), decided("undecided", 20, 0)]
    assert decided_words(cases) == (
        "decided after 3 to 16 trials; 21 of 60 trials were not needed; 1 case could not be decided"
    )
    assert decided_words([decided("below", 3, 2)]) == (
        "decided after 3 trials; 2 of 5 trials were not needed"
    )
    assert decided_words([a_case(None, 3)]) is None


def test_a_case_of_which_trials_are_to_come_is_not_called_undecidable() -> None:
    waits = decided("undecided", 5, 0).model_copy(update={"not_run": 15})
    assert decided_words([waits, decided("undecided", 20, 0), decided("below", 3, 17)]) == (
        "decided after 3 trials; 17 of 60 trials were not needed; 1 case is not decided yet; "
        "1 case could not be decided"
    )
