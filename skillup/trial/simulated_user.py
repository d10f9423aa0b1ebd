"""Asking the simulated user for a message, with what a user may know and within the time limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import anyio

from skillup.errors import FullDiskError, RunDirectoryError
from skillup.schema import templates
from skillup.schema.case import Persona
from skillup.schema.record import HistoryItem, TurnError, TurnRecord
from skillup.trial.request import SimulatorMessage, SimulatorPart, TrialEvent, TrialRequest
from skillup.trial.session import internal_error, not_sent
from skillup.workspace.disk import refuse_full_disk

_RECITED = 3
"""Facts in one message from which on they are recited and not asked for."""
_COPIED = 30
"""Characters of an instruction that nobody says by chance."""
_WORD = re.compile(r"\w+")
_PLAYS = re.compile(r" (as an ai|language model|simulated user|my (role|objective) is) ")


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
        if persona is not None:
            given = ((name, getattr(persona, name)) for name in Persona.model_fields)
            filled_in = {name: _rendered(value, variables) for name, value in given}
            persona = persona.model_copy(update=filled_in)
        part = SimulatorPart(
            persona=persona,
            scenario=_rendered(scenario.scenario if scenario else None, variables),
            instruction=_rendered(instruction, variables),
            said=[(step.content, step.response) for turn in turns for step in turn.executed()],
            history=history,
            messages_left=messages_left,
            may_stop=may_stop,
        )
    except templates.UnresolvedNameError as missing:
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
    return replace(message, notes=tuple(_departures(message.text or "", part)))


def unwritten(number: int, message: SimulatorMessage, content: str = "") -> TurnRecord:
    """The turn whose message was not written; `content`: the case's instruction for it, if any."""
    error = message.error or TurnError(kind="judge", message="the simulated user wrote nothing")
    turn = not_sent(number, content, error.message, error=error)
    return turn.model_copy(update={"source": "simulator", "simulator": message.info})


def _departures(text: str, part: SimulatorPart) -> Iterator[str]:
    """Where a message is plainly not what the user was to write, as far as its words show."""
    message, persona = _folded(text), part.persona
    instructions: list[str] = [part.scenario or "", part.instruction or ""]
    if persona is not None:
        instructions += [persona.role or "", persona.objective, *persona.behavior]
        facts = (fact.rpartition(": ")[2] for fact in persona.knowledge)
        folded = {fact for fact in map(_folded, facts) if len(fact) > 3}
        found = sum(fact in message for fact in folded)
        if found >= _RECITED and found * 2 > len(folded):
            yield f"the simulated user told {found} of the {len(folded)} things it knows at once"
    if any(len(piece) >= _COPIED and piece in message for piece in map(_folded, instructions)):
        yield "the simulated user said its instructions word for word"
    if _PLAYS.search(message):
        yield "the simulated user spoke of playing a part"


def _folded(text: str) -> str:
    """Its words alone, with a space on either side."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _rendered(value: Any, variables: dict[str, str]) -> Any:
    """The value with all templates in it filled in; raises UnresolvedNameError."""
    if isinstance(value, str):
        return templates.render(value, variables)
    if isinstance(value, list):
        return [_rendered(item, variables) for item in value]
    return value
