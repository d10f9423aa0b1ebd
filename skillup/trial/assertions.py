"""Whether a turn just held meets its own assertions, for `on_turn_failure: stop`."""

from __future__ import annotations

from collections.abc import Callable

from skillup.checks.outcome import judge_turn
from skillup.schema.conversation import Turn
from skillup.schema.record import FileState, Record, TurnRecord


def turn_failure(
    held: TurnRecord,
    turn: Turn,
    record: Record,
    read_file: Callable[[FileState], bytes | None],
    threshold: float,
) -> str | None:
    """Why the turn's assertions are not met; None if they are (or there are none)."""
    outcome = judge_turn(turn.assertions, held, record, read_file)
    if outcome.passed_on is not None or outcome.score >= threshold:
        return None
    unmet = next((result for result in outcome.results if not result.passed), None)
    return f"turn {held.turn_number} failed" + (f": {unmet.name}" if unmet else "")
