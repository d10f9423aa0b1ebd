"""Whether a turn just held meets its own assertions, for `on_turn_failure: stop`."""

from __future__ import annotations

from skillup.checks import CheckContext
from skillup.checks.levels import judge_turn
from skillup.checks.scoring import reaches, unmet, weighted_mean
from skillup.schema.conversation import Turn
from skillup.schema.record import TurnError, TurnRecord


def turn_failure(
    held: TurnRecord, turn: Turn, context: CheckContext, threshold: float | None
) -> str | TurnError | None:
    """Why the turn's assertions are not met; None if they are (or there are none).

    A TurnError if that cannot be told, since one of them could not be evaluated.

    `context` is the conversation's so far. Without a `threshold` every check must pass.
    """
    outcome = judge_turn(turn.checks(), held, context)
    asked = [*outcome.results, *(r for level in outcome.levels for r in level.results)]
    broken = next((result for result in asked if result.error is not None), None)
    if broken is not None:
        text = f"the check `{broken.name}` could not be evaluated (on_turn_failure: stop)"
        return TurnError(kind=broken.error_kind or "judge", message=f"{text}: {broken.error}")
    failed = unmet(outcome.deciding)
    required = any(result.required for result in failed)
    if not failed or (
        threshold is not None
        and not required
        and reaches(weighted_mean(outcome.deciding), threshold)
    ):
        return None
    return f"turn {held.turn_number} failed: {failed[0].name}"
