"""A message to an agent that judges or plays the user, at the pace of all who ask its provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from skillup.engines.base import TurnOutcome
from skillup.schema.record import TurnError
from skillup.trial.pacing import Passage
from skillup.trial.sending import ANSWERED, REFUSALS


async def send_paced(
    passage: Passage, send: Callable[[], Awaitable[TurnOutcome]]
) -> tuple[TurnOutcome, bool]:
    """What came of a message, and whether it is to be sent again, because it was refused.

    `send` is called once its provider may be asked. A refused message that is not to be sent again
    has an error that says why.
    """
    if not await passage.ready():
        what = "nothing more is asked of its provider: the run ends"
        return TurnOutcome(None, error=TurnError(kind="cancelled", message=what)), False
    outcome = await send()
    error = outcome.error
    if error is None or error.kind not in REFUSALS:
        if error is None or error.kind in ANSWERED:
            await passage.accepted()
        return outcome, False
    why = await passage.refused(error)
    if why is None:
        return outcome, True
    told = error.model_copy(update={"message": f"{error.message} ({why})"})
    return replace(outcome, error=told), False
