"""Grading turn by turn: the gate, the assertions, the follow-ups, and the score they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillup.checks import CheckContext, evaluate_set
from skillup.checks.outcome import Level, TurnOutcome, judge_turn
from skillup.checks.scoring import weighted_mean
from skillup.judges.usage import total_cost, total_usage
from skillup.schema.conversation import PostCondition, Turn
from skillup.schema.grade import CheckResult, FollowUpGrade, TurnGrade
from skillup.schema.record import TurnRecord


def grade_turn(turn: TurnRecord, wanted: Turn | None, context: CheckContext) -> TurnGrade:
    """`turn` as it was held, judged by what the case wants of it (None: the case has no such turn).

    `context` is the conversation's.
    """
    assertions = wanted.checks() if wanted is not None else []
    gate = _gate_results(turn, wanted.post_condition if wanted is not None else None, context)
    outcome = judge_turn(assertions, turn, context)
    passed_on = outcome.passed_on
    executed = list(turn.executed()) if turn.follow_ups else (turn,)
    checks = [*gate, *outcome.results]
    return TurnGrade(
        turn_number=turn.turn_number,
        status=turn.status,
        reason=turn.reason,
        source=turn.source,
        content=turn.content,
        response=turn.response,
        score=_score(turn, checks if passed_on is None else [*gate, *_of(outcome, passed_on)]),
        post_condition_passed=all(result.passed for result in gate) if gate else None,
        session_verified=turn.session_verified,
        captures=turn.captures,
        held_by=turn.held_by,
        checks=checks,
        follow_ups=[_follow_up(level, outcome.levels) for level in outcome.levels],
        passed_on=passed_on,
        usage=total_usage([step.usage for step in executed]),
        cost_usd=total_cost([step.cost_usd for step in executed]),
        duration_ms=sum([step.duration_ms for step in executed]),
        error=turn.error.model_dump() if turn.error else None,
    )


def _score(turn: TurnRecord, deciding: Sequence[CheckResult]) -> float:
    """Design §4: the weighted mean for a turn that was held to its end, else 0."""
    return weighted_mean(deciding) if turn.status == "completed" else 0.0


def _of(outcome: TurnOutcome, passed_on: str) -> Sequence[CheckResult]:
    """The results of the follow-up that the turn passed on."""
    return next(level.results for level in outcome.levels if level.label == passed_on)


def _gate_results(
    turn: TurnRecord, gate: PostCondition | None, context: CheckContext
) -> list[CheckResult]:
    if gate is None:
        return []
    # The gate was asked while the turn stood as completed; that it did not hold is what made the
    # turn `failed`.
    gated = turn.model_copy(update={"status": "completed"}) if turn.status == "failed" else turn
    return evaluate_set(gate, context.about(gated), role="post_condition", required=True)


def _follow_up(level: Level, levels: Sequence[Level]) -> FollowUpGrade:
    answer = level.answer
    usage: dict[str, Any] | None = answer.usage.model_dump() if answer.usage else None
    return FollowUpGrade(
        label=level.label,
        asked_by=answer.asked_by,
        content=answer.content,
        response=answer.response,
        passed=level.passed or any(_is_within(other, level) and other.passed for other in levels),
        score=level.score,
        checks=list(level.results),
        usage=usage,
        cost_usd=answer.cost_usd,
        duration_ms=answer.duration_ms,
    )


def _is_within(inner: Level, outer: Level) -> bool:
    place = outer.answer.asked_by
    return inner is not outer and inner.answer.asked_by[: len(place)] == place
