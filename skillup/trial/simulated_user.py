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
from skillup.schema.record import Record, TurnError, TurnRecord
from skillup.schema.suite import persona_of
from skillup.trial.message import internal_error, not_sent
from skillup.trial.request import (
    THE_RUNS_END,
    Deadline,
    SimulatorMessage,
    SimulatorPart,
    TrialEvent,
    TrialRequest,
)
from skillup.workspace.failures import refuse_full_disk

_RECITED = 3
"""Facts in one message from which on they are recited and not asked for."""
_COPIED = 30
"""Characters of an instruction that nobody says by chance."""
_WORD = re.compile(r"\w+")
_PLAYS = re.compile(r" (as an ai|language model|simulated user|my (role|objective) is) ")


class SimulatedUser:
    """The user of one trial, as the conversation asks it."""

    def __init__(self, request: TrialRequest, record: Record, deadline: Deadline) -> None:
        self._request = request
        self._case = request.job.loaded.case
        self._history = record.history
        self._deadline = deadline

    async def write(
        self,
        number: int,
        turns: Sequence[TurnRecord],
        variables: dict[str, str],
        *,
        instruction: str | None = None,
        messages_left: int | None = None,
        may_stop: bool = False,
    ) -> SimulatorMessage:
        """The message of turn `number`, after `turns`; every error says which turn it belongs to.

        `instruction` and the case's part are templates.
        """
        try:
            scenario = self._case.user_simulator
            part = SimulatorPart(
                persona=_rendered_persona(persona_of(self._case), variables),
                scenario=_rendered(scenario.scenario if scenario else None, variables),
                instruction=_rendered(instruction, variables),
                said=[(step.content, step.response) for turn in turns for step in turn.executed()],
                history=self._history,
                messages_left=messages_left,
                may_stop=may_stop,
            )
        except templates.UnresolvedNameError as missing:
            return _failed("template", f"turn {number}: {missing}; nobody was asked")
        self._request.notify(
            TrialEvent(self._request.job.id, "activity", text="the simulated user is writing")
        )
        return await self._ask(part, number)

    async def _ask(self, part: SimulatorPart, number: int) -> SimulatorMessage:
        simulator = self._request.simulator
        if simulator is None:
            return _failed("judge", f"turn {number}: there is nobody to play the user")
        seconds = None if self._deadline.at is None else self._deadline.limit(float("inf"))
        said: SimulatorMessage | None = None
        with anyio.move_on_after(seconds):
            try:
                said = await simulator.speak(part)
            except (RunDirectoryError, FullDiskError):
                raise
            except Exception as defect:  # noqa: BLE001 - a defect of ours must not end the run
                if isinstance(defect, OSError):
                    refuse_full_disk(defect)
                return SimulatorMessage(error=internal_error(defect))
        if said is None:
            limit = f"{self._case.timeout_seconds:g} s"
            what = f"turn {number}: the conversation's {limit} were used up while the simulated "
            return _failed("timeout", what + "user was writing; raise `timeout_seconds`")
        throttle = self._request.throttle
        if said.error is not None and said.error.kind in THE_RUNS_END and throttle is not None:
            throttle.left = True
        return _checked(said, part, number)


def unwritten(number: int, said: SimulatorMessage, content: str = "") -> TurnRecord:
    """The turn whose message was not written, because of the error in `said`.

    `content` is the case's instruction for it, if there is one.
    """
    error = said.error or TurnError(kind="judge", message="the simulated user wrote nothing")
    turn = not_sent(number, content, error.message, error=error)
    return turn.model_copy(update={"source": "simulator", "simulator": said.info})


def _checked(said: SimulatorMessage, part: SimulatorPart, number: int) -> SimulatorMessage:
    """`said`, or what is wrong with it."""
    why = None
    if said.error is not None:
        error = said.error
        error = error.model_copy(update={"message": f"turn {number}: {error.message}"})
        return SimulatorMessage(info=said.info, error=error)
    if said.stop is not None and not part.may_stop:
        why = f"wanted to end the conversation as {said.stop}, where it was to write a message"
    elif said.stop is None and not (said.text or "").strip():
        why = "wrote an empty message"
    if why is None:
        return replace(said, notes=tuple(_departures(said.text or "", part)))
    error = TurnError(kind="judge", message=f"turn {number}: the simulated user {why}")
    return SimulatorMessage(info=said.info, error=error)


def _departures(text: str, part: SimulatorPart) -> Iterator[str]:
    """What in a message is plainly not what the user was told to say, as far as its words tell."""
    said, persona = _folded(text), part.persona
    told: list[str] = [part.scenario or "", part.instruction or ""]
    if persona is not None:
        told += [persona.role or "", persona.objective, *persona.behavior]
        known = persona.knowledge
        facts = map(str, known.values()) if isinstance(known, dict) else known
        wanted = {fact for fact in map(_folded, facts) if len(fact) > 3}
        found = sum(fact in said for fact in wanted)
        if found >= _RECITED and found * 2 > len(wanted):
            yield f"the simulated user told {found} of the {len(wanted)} things it knows at once"
    if any(len(piece) >= _COPIED and piece in said for piece in map(_folded, told)):
        yield "the simulated user said its instructions word for word"
    if _PLAYS.search(said):
        yield "the simulated user spoke of playing a part"


def _folded(text: str) -> str:
    """Its words alone, with a space on either side."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _failed(kind: Any, message: str) -> SimulatorMessage:
    return SimulatorMessage(error=TurnError(kind=kind, message=message))


def _rendered(text: str | None, variables: dict[str, str]) -> str | None:
    return None if text is None else templates.render(text, variables)


def _rendered_persona(persona: Persona | None, variables: dict[str, str]) -> Persona | None:
    """The user's part with its templates filled in; raises UnresolvedNameError."""
    if persona is None:
        return None

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return templates.render(value, variables)
        if isinstance(value, list):
            return [filled(item) for item in value]
        if isinstance(value, dict):
            return {key: filled(item) for key, item in value.items()}
        return value

    update = {name: filled(getattr(persona, name)) for name in Persona.model_fields}
    return persona.model_copy(update=update)
