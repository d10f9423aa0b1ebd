"""A conversation that a simulated user leads: it writes every message, and says when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillup.engines.base import SessionResumer
from skillup.schema.case import Case, Turn
from skillup.schema.record import SimulatedEnd, TurnError
from skillup.schema.suite import Lead, lead_of, needs_simulator
from skillup.trial.conversation import LiveConversation, Message
from skillup.trial.request import TrialRequest
from skillup.trial.simulated_user import unwritten


def simulation_problem(request: TrialRequest) -> TurnError | None:
    """Why the case's simulated user cannot play its part in this trial, known before turn 1."""
    case = request.job.loaded.case
    if not needs_simulator(case):
        return None
    if request.simulator is None:
        what = "the case needs a simulated user, and there is nobody to play it"
        return TurnError(kind="judge", message=f"{what}: set `user_simulator.model` in eval.yaml")
    if _most_messages(case) > 1 and not isinstance(request.engine, SessionResumer):
        return TurnError(
            kind="no_resume",
            message=f"{request.engine.name} cannot resume a session, and a simulated user answers "
            "what the agent said before; use another engine (single_shot is no way out here)",
        )
    return None


def _most_messages(case: Case) -> int:
    lead = lead_of(case)
    return lead.max_turns if lead is not None else len(case.input.all_turns())


async def run_simulated(
    conversation: LiveConversation, lead: Lead, opening: Sequence[Turn]
) -> None:
    """Hold the turns of a led conversation, until its user ends it or something else does.

    `opening` are messages that stand before the user's own. How the user ended it is in
    `conversation.simulated_end`; an error of theirs is a turn's.
    """
    turns = conversation.turns
    for turn in opening:
        if not conversation.ended:
            await conversation.run_next(turn, of=lead.max_turns)
    while not conversation.ended:
        left = lead.max_turns - len(turns)
        if left <= 0 and not lead.must_end:
            reason = f"{lead.max_turns} turns were held, the most that `max_turns` allows"
            conversation.simulated_end = SimulatedEnd(stop="limit", reason=reason)
            return
        number = len(turns) + 1
        said = await conversation.user.write(
            number, turns, conversation.variables, messages_left=max(left, 0), may_stop=bool(turns)
        )
        if said.error is not None or (said.stop is None and said.text is None):
            turns.append(unwritten(number, said))
            return
        if said.stop is not None:
            conversation.simulated_end = SimulatedEnd(
                stop=said.stop, reason=said.reason, info=said.info
            )
            return
        if left <= 0:
            why = f"turn {number}: the simulated user wanted to go on beyond {lead.max_turns} turns"
            error = TurnError(kind="max_turns", message=f"{why}; raise `turn_limit`")
            turns.append(unwritten(number, replace(said, error=error)))
            return
        text = said.text or ""
        message = Message(text, said.info, said.notes)
        await conversation.run_next(Turn(content=text), of=lead.max_turns, message=message)
