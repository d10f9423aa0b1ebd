"""Grading turn by turn: the gate, the assertions, the follow-ups, and the score they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillup.checks import CheckContext, evaluate_set
from skillup.checks.outcome import Level, judge_turn
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
    executed = list(turn.executed()) if turn.follow_ups else [turn]
    return TurnGrade(
        turn_number=turn.turn_number,
        status=turn.status,
        reason=turn.reason,
        source=turn.source,
        content=turn.content,
        response=turn.response,
        score=_score(turn, [*gate, *_deciding(outcome, passed_on)]),
        post_condition_passed=all(result.passed for result in gate) if gate else None,
        session_verified=turn.session_verified,
        captures=turn.captures,
        held_by=turn.held_by,
        checks=[*gate, *outcome.results],
        follow_ups=[_follow_up(level, outcome.levels) for level in outcome.levels],
        passed_on=passed_on,
        usage=total_usage([step.usage for step in executed]),
        cost_usd=total_cost([step.cost_usd for step in executed]),
        duration_ms=sum([step.duration_ms for step in executed]),
        error=turn.error.model_dump() if turn.error else None,
    )
