"""One question to the agent, in a session of its own; asked once more if the form is wrong."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillup.engines.base import Engine, SessionResumer, TrialContext, TurnOutcome, TurnRequest
from skillup.judges.agents.answer import CriterionVerdict, MalformedAnswerError, read_answer
from skillup.judges.agents.criteria import Asked
from skillup.judges.agents.question import asked_again, question
from skillup.judges.agents.room import Room
from skillup.judges.ledger import Ledger
from skillup.process import new_marker
from skillup.schema.profile import Profile
from skillup.schema.scripted import Script


class NoAnswerError(Exception):
    """The agent did not judge; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Sitter:
    """The agent that judges, and how it is run."""

    engine: Engine
    profile: Profile
    script: Script | None
    timeout_seconds: float
    """For the question and, if need be, its repetition."""


async def ask(
    sitter: Sitter,
    room: Room,
    asked: Sequence[Asked],
    environment: Mapping[str, str],
    ledger: Ledger,
    sample: int,
) -> dict[str, CriterionVerdict]:
    """The agent's verdicts by criterion id; what it took is in the `ledger`.

    Raises NoAnswerError. `sample` counts the repetitions of the same question from 0.
    """
    until = time.monotonic() + sitter.timeout_seconds
    trial = TrialContext(
        profile=sitter.profile,
        workspace=room.desk,
        home=room.root / "home",
        raw_dir=room.root / "raw",
        environment=environment,
        extra_env=sitter.profile.env,
        marker=new_marker(),
        session_id=str(uuid.uuid4()),
        skills=room.skills,
        script=sitter.script,
        seed=sample,
    )
    first = TurnRequest(1, question(asked, room.materials), timeout_seconds=sitter.timeout_seconds)
    outcome = _counted(await sitter.engine.start(first, trial), sitter, ledger)
    try:
        return read_answer(outcome.response, asked)
    except MalformedAnswerError as malformed:
        problem = str(malformed)
    left = until - time.monotonic()
    if not isinstance(sitter.engine, SessionResumer) or outcome.session is None or left <= 0:
        raise NoAnswerError(f"the judge's answer cannot be read: {problem}")
    again = TurnRequest(
        2, asked_again(problem, asked), timeout_seconds=left, previous=outcome.fingerprint
    )
    resumed = await sitter.engine.resume(outcome.session, again, trial)
    try:
        return read_answer(_counted(resumed, sitter, ledger).response, asked)
    except MalformedAnswerError as malformed:
        why = f"the judge's answer cannot be read, not when asked again either: {malformed}"
        raise NoAnswerError(why) from malformed


def _counted(outcome: TurnOutcome, sitter: Sitter, ledger: Ledger) -> TurnOutcome:
    profile = sitter.profile
    model = outcome.model or profile.model or profile.engine
    ledger.add(model, outcome.usage, outcome.cost_usd, cached=False)
    if outcome.error is not None:
        raise NoAnswerError(f"the judge ended in an error: {outcome.error.message}")
    return outcome
