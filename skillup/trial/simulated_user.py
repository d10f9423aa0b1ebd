"""Asking the simulated user for a message, with what a user may know and within the time limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio

from skillup.errors import FullDiskError, RunDirectoryError
from skillup.schema.record import HistoryItem, TurnError, TurnRecord
from skillup.schema.templates import UnresolvedNameError, fill
from skillup.trial.request import SimulatorMessage, SimulatorPart, TrialEvent, TrialRequest
from skillup.trial.session import internal_error, not_sent
from skillup.workspace.disk import refuse_full_disk


async def next_message(
    request: TrialRequest,
    history: Sequence[HistoryItem],
    turns: Sequence[TurnRecord],
    variables: dict[str, str],
    seconds: float | None,
    *,
    instruction: str | None = None,
    messages_left: int | None = None,
    may_stop: bool = False,
) -> SimulatorMessage:
    """The user's message after `turns`, written within `seconds`; every error names its turn."""
    case, number = request.job.loaded.case, len(turns) + 1

    def failed(kind: Any, message: str) -> SimulatorMessage:
        return SimulatorMessage(error=TurnError(kind=kind, message=f"turn {number}: {message}"))

    try:
        led, scenario = case.input.conversation, case.user_simulator
        persona = led.persona if led is not None else None
        part = SimulatorPart(
            persona=fill("persona", persona, variables),
            scenario=fill("scenario", scenario and scenario.scenario, variables),
            instruction=fill("instruction", instruction, variables),
            said=[(step.content, step.response) for turn in turns for step in turn.executed()],
            history=history,
            messages_left=messages_left,
            may_stop=may_stop,
        )
    except UnresolvedNameError as missing:
        return failed("template", f"{missing}; nobody was asked")
    if request.simulator is None:
        return failed("judge", "there is nobody to play the user")
    request.notify(TrialEvent(request.job.id, "activity", text="the simulated user is writing"))
    message: SimulatorMessage | None = None
    with anyio.move_on_after(seconds):
        try:
            message = await request.simulator(part)
        except (RunDirectoryError, FullDiskError):
            raise
        except Exception as defect:  # noqa: BLE001 - a defect of ours must not end the run
            if isinstance(defect, OSError):
                refuse_full_disk(defect)
            return SimulatorMessage(error=internal_error(defect))
    if message is None:
        limit = f"the conversation's {case.timeout_seconds:g} s were used up while"
        return failed("timeout", f"{limit} the simulated user was writing; raise `timeout_seconds`")
    if message.error is not None:
        text = f"turn {number}: {message.error.message}"
        error = message.error.model_copy(update={"message": text})
        return SimulatorMessage(info=message.info, error=error)
    return message


def unwritten(number: int, message: SimulatorMessage, content: str = "") -> TurnRecord:
    """The turn whose message was not written; `content`: the case's instruction for it, if any."""
    error = message.error or TurnError(kind="judge", message="the simulated user wrote nothing")
    turn = not_sent(number, content, error.message, error=error)
    return turn.model_copy(update={"source": "simulator", "simulator": message.info})
