"""Follow-ups: messages that are sent within a turn because a check of its answer failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from skillup.checks.levels import follow_ups, passes
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from skillup.schema.record import TurnError, TurnRecord

Look = Callable[[Sequence[Check], TurnRecord], Awaitable[Sequence[CheckResult]]]
"""Evaluates a level of checks (:func:`skillup.checks.levels.evaluate_level`) on an answer."""
Send = Callable[[Check, list[int]], Awaitable[TurnRecord]]
"""Sends the check's `prompt` in the turn's session; also told its place."""


async def hold_follow_ups(
    checks: Sequence[Check],
    answer: TurnRecord,
    look: Look,
    send: Send,
) -> TurnRecord:
    """`answer` with the follow-ups that its failing checks ask for, held one after the other.

    The first whose own checks pass ends it; so does an error, which becomes the turn's.
    """
    if not any(check.prompt is not None for check in checks):
        return answer  # nothing hangs on what the checks say
    results = await look(checks, answer)
    undecided = _undecided(results)
    if undecided is not None:
        return answer.model_copy(update=undecided)
    held: list[TurnRecord] = []
    for place, check in follow_ups(checks, results):
        followed = await send(check, [*answer.asked_by, place])
        if followed.status == "completed":
            nested = check.assertions or []
            followed = await hold_follow_ups(nested, followed, look, send)
        held.append(followed)
        if followed.error is not None:
            update = {"status": "error", "reason": followed.reason, "error": followed.error}
            return answer.model_copy(update={**update, "follow_ups": held})
        passed = await _passes(check.assertions or [], followed, look)
        if isinstance(passed, dict):
            return answer.model_copy(update={**passed, "follow_ups": held})
        if passed:
            break
    return answer.model_copy(update={"follow_ups": held}) if held else answer


def _undecided(results: Sequence[CheckResult]) -> dict[str, Any] | None:
    """Where a check could not be evaluated, nobody knows whether to follow up: an error.

    To go on as if it had passed, or failed, would make a verdict of a judge's trouble.
    """
    broken = next((result for result in results if result.error is not None), None)
    if broken is None:
        return None
    text = f"the check `{broken.name}`, on which a follow-up hangs, could not be evaluated"
    error = TurnError(kind=broken.error_kind or "judge", message=f"{text}: {broken.error}")
    return {"status": "error", "reason": error.message, "error": error}


async def _passes(checks: Sequence[Check], answer: TurnRecord, look: Look) -> bool | dict[str, Any]:
    """Whether the answer's checks pass, or those of one of its follow-ups.

    Or what :func:`_undecided` says.
    """
    results = await look(checks, answer)
    undecided = _undecided(results)
    if undecided is not None:
        return undecided
    if passes(results):
        return True
    last = answer.follow_ups[-1] if answer.follow_ups else None
    if last is None:
        return False
    asking = checks[last.asked_by[-1]]
    return await _passes(asking.assertions or [], last, look)
