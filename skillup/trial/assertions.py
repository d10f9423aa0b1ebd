"""Whether a turn just held meets its own assertions, for `on_turn_failure: stop`."""

from __future__ import annotations

from skillup.checks import CheckContext
from skillup.checks.outcome import judge_turn
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
    if outcome.passed_on is not None:
        return None
    all_passed = all(result.passed for result in outcome.results)
    if all_passed if threshold is None else outcome.score >= threshold:
        return None
    unmet = next((result for result in outcome.results if not result.passed), None)
    return f"turn {held.turn_number} failed" + (f": {unmet.name}" if unmet else "")
