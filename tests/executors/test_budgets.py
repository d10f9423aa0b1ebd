"""What a run uses, counted once; when it is enough, and what is said of it."""

from __future__ import annotations

from typing import Any

from skillup.executors.stopping import Budget, StopPolicy
from skillup.judges import grade_record
from skillup.schema.grade import Grade, Judging, Stop
from skillup.schema.record import EngineInfo, Record, SimulatorInfo, TurnRecord, Usage
from tests.support.records import make_record, make_turn

USED: dict[str, Any] = {"cost_usd": 0.5, "usage": Usage(input_tokens=100, output_tokens=20)}


def a_trial(*turns: TurnRecord) -> Record:
    case = {"id": "c", "input": {"turns": ["go on"] * len(turns)}}
    engine = EngineInfo(profile="nightly", adapter="scripted")
    return make_record(*turns, case=case, engine=engine).record


def graded(record: Record, judging: Judging | None = None) -> Grade:
    return grade_record(record, lambda _: None).model_copy(update={"judging": judging})


def policy(*costs: float | None, tokens: int | None = None, **limits: Any) -> StopPolicy:
    """After trials that cost so much."""
    stopping = StopPolicy(**limits)
    for usd in costs:
        usage = None if tokens is None else Usage(input_tokens=tokens)
        record = a_trial(make_turn(cost_usd=usd, usage=usage))
        stopping.count(record, graded(record))
    return stopping


def test_agents_judges_and_users_count_together() -> None:
    written = SimulatorInfo(cost_usd=0.25, usage=Usage(input_tokens=7, output_tokens=3))
    follow_up = make_turn(source="follow_up", asked_by=[0], **USED)
    second = make_turn(source="simulator", simulator=written, follow_ups=[follow_up], **USED)
    elsewhere = make_turn(counted_by="c/nightly/with_skill/1", **USED)  # which counts it
    record = a_trial(elsewhere, make_turn(**USED), second)
    usage = Usage(input_tokens=1000, output_tokens=None).model_dump()
    judging = Judging(calls=3, cached_calls=1, models=["m"], usage=usage, cost_usd=1.0)
    stopping = StopPolicy()
    stopping.count(record, graded(record, judging))
    assert stopping.cost.total == 3 * 0.5 + 0.25 + 1.0
    assert stopping.tokens.total == 3 * 120 + 10 + 1000


def test_an_attempt_is_spent_and_is_no_part_of_an_average_trial() -> None:
    stopping = StopPolicy(max_cost_usd=2.0)
    stopping.count(a_trial(make_turn(cost_usd=1.0)), None)
    record = a_trial(make_turn(cost_usd=0.25))
    stopping.count(record, graded(record))
    assert stopping.has_room(2)  # 1.25 + 2 × 0.25
    assert not stopping.has_room(3)
    assert policy(max_cost_usd=0.01).has_room(50)  # nothing is known of what trials use


def test_who_reports_nothing_is_named_once_if_that_is_limited() -> None:
    shown: list[str] = []
    stopping = StopPolicy(shown.append, max_cost_usd=1.0)
    record = a_trial(make_turn(source="simulator", simulator=SimulatorInfo(model="u")))
    for _ in range(2):
        stopping.count(record, graded(record, Judging(calls=1, models=["m", "n"])))
    names = ["the engine nightly", "the judge m and n", "the simulated user u"]
    text = "reports no cost, so --max-cost-usd cannot count what it uses"
    assert sorted(shown) == sorted(stopping.warnings) == [f"{name} {text}" for name in names]


def test_what_used_nothing_reports_nothing_and_is_not_blamed() -> None:
    free = SimulatorInfo(model="u", cached=True)
    judging = Judging(calls=2, cached_calls=2, models=["m"])
    stopping = StopPolicy(max_cost_usd=9.0, max_tokens=9000)
    for record in (
        a_trial(make_turn(status="error")),
        a_trial(make_turn(status="skipped")),
        a_trial(make_turn(source="simulator", simulator=free, **USED)),
    ):
        stopping.count(record, graded(record, judging))
    assert (stopping.warnings, stopping.cost.total, stopping.tokens.total) == ([], 0.5, 120)


def test_a_limit_is_reached_although_sums_of_fractions_fall_a_hair_short() -> None:
    budget = Budget("--max-cost-usd", "cost", 1.0)
    for _ in range(10):
        assert not budget.is_reached()
        budget.add([("the engine", 0.1)], finished=True)
    assert budget.total < 1.0
    assert budget.is_reached()
    assert Budget("", "", 0.0).is_reached()
    assert not Budget("", "", None, total=1e9).is_reached()


def test_a_budget_that_is_reached_stops_it_and_the_message_has_what_was_spent_at_the_end() -> None:
    assert policy(1.5, max_cost_usd=2.0).reason is None
    text = "the budget of 2.00 USD is spent ({} USD)"
    for costs, spent in (((1.5, 0.53), "2.03"), ((1.5, 0.53, 1.0), "3.03")):
        stop = Stop(kind="max_cost_usd", message=text.format(spent))
        assert policy(*costs, max_cost_usd=2.0).reason == stop
    assert policy(*[1000.0] * 5).reason is None
    assert policy(max_cost_usd=0.0).reason is not None
    tokens = policy(None, None, None, tokens=100, max_tokens=250).reason
    text = "the budget of 250 tokens is spent (300 tokens)"
    assert tokens == Stop(kind="max_tokens", message=text)


def test_what_running_trials_will_probably_use_is_left_for_them() -> None:
    stopping = policy(0.5, 0.3, max_cost_usd=2.0)  # 0.8 spent, 0.4 each
    assert [stopping.has_room(n) for n in (0, 2, 3)] == [True, True, False]
    assert stopping.reason is None
    assert policy(5.0, max_cost_usd=2.0).has_room(7)  # it is enough: nobody waits
