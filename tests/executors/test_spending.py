"""What trials took, counted once, and who did not tell."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.executors.budgets import Spent, UsageBudget
from skillup.judges import grade_record
from skillup.schema.grade import Grade, Judging
from skillup.schema.record import (
    EngineInfo,
    Record,
    SimulatorInfo,
    TurnError,
    TurnRecord,
    Usage,
)

TOLD: dict[str, Any] = {"cost_usd": 0.5, "usage": Usage(input_tokens=100, output_tokens=20)}


def a_turn(number: int = 1, *, session: str | None = "s", **told: Any) -> TurnRecord:
    fields: dict[str, Any] = {
        "turn_number": number,
        "status": "completed",
        "content": "go on",
        "session_id": session,
        "started_at": "2026-01-01T00:00:00.000Z",
        **told,
    }
    return TurnRecord(**fields)


def a_trial(*turns: TurnRecord, **more: Any) -> Record:
    fields: dict[str, Any] = {
        "run_id": "r",
        "suite": "s",
        "case_id": "c",
        "case": {"id": "c", "input": {"turns": ["go on"] * len(turns)}},
        "engine": EngineInfo(profile="nightly", adapter="scripted"),
        "started_at": "2026-01-01T00:00:00.000Z",
        "duration_ms": 1,
        "turns": list(turns),
        **more,
    }
    return Record(**fields)


def graded(record: Record, judging: Judging | None = None) -> Grade:
    return grade_record(record, lambda _: None).model_copy(update={"judging": judging})


def test_agents_judges_and_users_count_together() -> None:
    written = SimulatorInfo(cost_usd=0.25, usage=Usage(input_tokens=7, output_tokens=3))
    follow_up = a_turn(2, source="follow_up", asked_by=[0], **TOLD)
    record = a_trial(
        a_turn(1, **TOLD),
        a_turn(2, source="simulator", simulator=written, follow_ups=[follow_up], **TOLD),
    )
    usage = Usage(input_tokens=1000, output_tokens=None).model_dump()
    judging = Judging(calls=3, cached_calls=1, models=["m"], usage=usage, cost_usd=1.0)
    spent = UsageBudget()
    spent.add(record, graded(record, judging))
    assert spent.cost_usd.total == pytest.approx(3 * 0.5 + 0.25 + 1.0)
    assert spent.tokens.total == 3 * 120 + 10 + 1000
    assert spent.cost_usd.average() == spent.cost_usd.total
    assert not spent.cost_usd.untold
    assert not spent.tokens.untold


def test_shared_turns_count_once_whichever_record_comes_first() -> None:
    own, other = a_turn(1, **TOLD), a_turn(1, held_by="c/nightly/with_skill/1", **TOLD)
    for records in (
        [a_trial(own, a_turn(2, session="x", **TOLD)), a_trial(other)],
        [a_trial(other), a_trial(own, a_turn(2, session="x", **TOLD))],
        [a_trial(own), a_trial(own, a_turn(2, session="x", **TOLD))],  # attempts say nothing of it
    ):
        spent = UsageBudget()
        for record in records:
            spent.add(record, None)
        assert spent.cost_usd.total == 1.0


def test_turns_of_sessions_without_a_name_are_not_taken_for_each_other() -> None:
    spent = UsageBudget()
    for _ in range(2):
        spent.add(a_trial(a_turn(1, session=None, **TOLD)), None)
    assert spent.cost_usd.total == 1.0


def test_an_attempt_is_spent_and_is_no_part_of_an_average_trial() -> None:
    spent = UsageBudget()
    spent.add(a_trial(a_turn(1, session="first", **TOLD)), None)
    record = a_trial(a_turn(1, session="second", **TOLD))
    spent.add(record, graded(record))
    assert (spent.cost_usd.total, spent.cost_usd.average()) == (1.0, 0.5)


def test_who_does_not_tell_is_named_once() -> None:
    written = SimulatorInfo(model="u")
    judging = Judging(calls=1, models=["m", "n"])
    spent = UsageBudget()
    for session in ("a", "b"):
        turn = a_turn(1, session=session, source="simulator", simulator=written)
        record = a_trial(turn)
        spent.add(record, graded(record, judging))
    names = ["the engine nightly", "the judge m and n", "the simulated user u"]
    assert sorted(spent.cost_usd.untold) == names
    assert sorted(spent.tokens.untold) == names
    assert spent.cost_usd.average() == 0.0


def test_what_took_nothing_tells_nothing_and_is_not_blamed() -> None:
    broken = TurnError(kind="crash", message="it broke")
    judging = Judging(calls=2, cached_calls=2, models=["m"])
    free = SimulatorInfo(model="u", cached=True)
    spent = UsageBudget()
    for record in (
        a_trial(a_turn(1, status="error", error=broken)),
        a_trial(a_turn(1, status="skipped", started_at=None)),
        a_trial(a_turn(1, session="x", source="simulator", simulator=free, **TOLD)),
    ):
        spent.add(record, graded(record, judging))
    assert not spent.cost_usd.untold
    assert spent.cost_usd.trials == 1


def test_a_limit_is_reached_although_sums_of_fractions_fall_a_hair_short() -> None:
    account = Spent()
    for _ in range(10):
        assert not account.has_reached(1.0)
        account.add(iter([("the engine", 0.1)]), finished=True)
    assert account.total < 1.0
    assert account.has_reached(1.0)
    assert not account.has_reached(1.001)
    assert account.has_reached(1.1, more=account.average())
    assert Spent().has_reached(0.0)
    assert not Spent().has_reached(1e-12)
