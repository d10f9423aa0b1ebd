"""When it is enough, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.executors.budgets import RunLimits, StopPolicy
from skillup.schema.grade import Stop
from skillup.schema.record import Record, TurnRecord, Usage
from tests.support.stored import a_grade, a_record


class Trials:
    """Makes trials that took something."""

    def __init__(self) -> None:
        self.number = 0

    def one(self, usd: float | None, tokens: int | None = None) -> Record:
        self.number += 1
        told: dict[str, Any] = {
            "cost_usd": usd,
            "usage": Usage(input_tokens=tokens) if tokens is not None else None,
            "session_id": str(self.number),
            "started_at": "2026-01-01T00:00:00.000Z",
        }
        record = a_record()
        turn: TurnRecord = record.turns[0].model_copy(update=told)
        return record.model_copy(update={"turns": [turn]})


def is_enough(stopping: StopPolicy) -> bool:
    return stopping.reason is not None


def stopping_after(costs: list[float], **limits: Any) -> StopPolicy:
    stopping, trials = StopPolicy(RunLimits(**limits)), Trials()
    for usd in costs:
        stopping.count(trials.one(usd), a_grade())
    return stopping


def test_without_limits_it_is_never_enough() -> None:
    stopping = stopping_after([1000.0] * 50)
    assert stopping.reason is None
    assert stopping.leaves_room(1000)


def test_a_budget_that_is_reached_stops_it_and_the_message_has_what_was_spent_at_the_end() -> None:
    trials = Trials()
    stopping = StopPolicy(RunLimits(max_cost_usd=2.0))
    stopping.count(trials.one(1.5), a_grade())
    assert not is_enough(stopping)
    stopping.count(trials.one(0.53), a_grade())
    text = "the budget of 2.00 USD is spent (2.03 USD)"
    assert stopping.reason == Stop(kind="max_cost_usd", message=text)
    stopping.count(trials.one(1.0), a_grade())  # it was running
    assert stopping.reason is not None
    assert stopping.reason.message == "the budget of 2.00 USD is spent (3.03 USD)"
    assert stopping.spent()[0] == pytest.approx(3.03)


def test_tokens_have_a_budget_of_their_own() -> None:
    stopping, trials = StopPolicy(RunLimits(max_tokens=250)), Trials()
    for _ in range(3):
        assert not is_enough(stopping)
        stopping.count(trials.one(None, 100), a_grade())
    text = "the budget of 250 tokens is used up (300)"
    assert stopping.reason == Stop(kind="max_tokens", message=text)


def test_attempts_that_are_tried_again_are_spent_too() -> None:
    stopping = StopPolicy(RunLimits(max_cost_usd=1.0))
    stopping.count_attempt(Trials().one(1.0))
    assert stopping.reason is not None


def test_a_budget_of_nothing_lets_nothing_begin() -> None:
    assert StopPolicy(RunLimits(max_cost_usd=0.0)).reason is not None


def test_what_running_trials_will_probably_take_is_left_for_them() -> None:
    stopping = stopping_after([0.5, 0.3], max_cost_usd=2.0)  # 0.8 spent, 0.4 each
    assert stopping.leaves_room(0)
    assert stopping.leaves_room(2)  # 1.6
    assert not stopping.leaves_room(3)  # 2.0: then nothing would be left
    assert stopping.reason is None


def test_before_anything_has_finished_nothing_is_known_of_what_trials_take() -> None:
    assert StopPolicy(RunLimits(max_cost_usd=0.01)).leaves_room(50)


def test_when_it_is_enough_nobody_waits_for_room() -> None:
    stopping = stopping_after([5.0], max_cost_usd=2.0)
    assert stopping.leaves_room(7)


def test_of_several_reasons_the_first_one_stands() -> None:
    stopping = StopPolicy(RunLimits(max_fail=1, max_cost_usd=1.0))
    failed = a_grade().model_copy(update={"status": "FAIL"})
    stopping.count(Trials().one(5.0), failed)
    assert stopping.reason == Stop(kind="max_fail", message="1 trial failed or met an error")
    stopping.stop(Stop(kind="quota", message="no more"))
    assert stopping.reason.kind == "max_fail"


def test_a_budget_that_cannot_be_counted_is_said_once() -> None:
    told: list[str] = []
    stopping, trials = StopPolicy(RunLimits(max_cost_usd=1.0), told.append), Trials()
    for _ in range(3):
        stopping.count(trials.one(None, 100), a_grade())
    text = "the engine scripted tells no cost, so --max-cost-usd cannot count what it takes"
    assert told == stopping.warnings == [text]


def test_nothing_is_said_of_what_nobody_limits() -> None:
    told: list[str] = []
    stopping = StopPolicy(RunLimits(max_tokens=1000), told.append)
    stopping.count(Trials().one(None, 100), a_grade())
    assert told == []
