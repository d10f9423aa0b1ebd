"""Grading turn by turn: post-conditions and assertions of each turn, and its score."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.checks import CheckContext, evaluate, evaluate_set
from skillup.checks.scoring import weighted_mean
from skillup.schema.conversation import Turn
from skillup.schema.grade import CheckResult, TurnGrade
from skillup.schema.record import TurnRecord


def grade_turn(turn: TurnRecord, wanted: Turn | None, context: CheckContext) -> TurnGrade:
    """`turn` as it was held, judged by what the case wants of it (None: the case has no such turn).

    `context` is the conversation's; its turn is replaced.
    """
    checks = turn_checks(turn, wanted, context)
    return TurnGrade(
        turn_number=turn.turn_number,
        status=turn.status,
        reason=turn.reason,
        source=turn.source,
        content=turn.content,
        response=turn.response,
        score=turn_score(turn, checks),
        post_condition_passed=turn.post_condition_passed,
        session_verified=turn.session_verified,
        captures=turn.captures,
        checks=checks,
        usage=turn.usage.model_dump() if turn.usage else None,
        cost_usd=turn.cost_usd,
        duration_ms=turn.duration_ms,
        error=turn.error.model_dump() if turn.error else None,
    )


def turn_checks(turn: TurnRecord, wanted: Turn | None, context: CheckContext) -> list[CheckResult]:
    """The turn's post-condition and assertions, evaluated; in that order."""
    if wanted is None:
        return []
    results: list[CheckResult] = []
    if wanted.post_condition is not None:
        # The gate was asked while the turn stood as completed; whether it then let the
        # conversation go on is what made the turn `failed`.
        gated = turn
        if turn.status == "failed":
            gated = turn.model_copy(update={"status": "completed"})
        scope = CheckContext(context.record, gated, context.read_file, context.ask)
        gate = evaluate_set(wanted.post_condition, scope, role="post_condition")
        results.extend(result.model_copy(update={"required": True}) for result in gate)
    scope = CheckContext(context.record, turn, context.read_file, context.ask)
    results.extend(evaluate(check, scope) for check in wanted.assertions)
    return results


def turn_score(turn: TurnRecord, checks: Sequence[CheckResult]) -> float:
    """Design §4: the weighted mean for a turn that was held to its end, else 0."""
    return weighted_mean(checks) if turn.status == "completed" else 0.0
