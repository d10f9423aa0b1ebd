"""Whether a turn just held meets its own assertions, for `on_turn_failure: stop`."""

from __future__ import annotations

from collections.abc import Callable

from skillup.checks import CheckContext, evaluate
from skillup.checks.scoring import weighted_mean
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
    context = CheckContext(record, held, read_file)
    results = [evaluate(check, context) for check in turn.assertions]
    unmet = next((result for result in results if not result.passed), None)
    if unmet is None or weighted_mean(results) >= threshold:
        return None
    return f"turn {held.turn_number} failed: {unmet.name}"
