"""One question to the agent, in a session of its own; asked once more if the form is wrong.

What its provider refuses is waited out; then the question is asked in another session.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from skillup.engines.base import Engine, SessionResumer, TrialContext, TurnOutcome, TurnRequest
from skillup.judges.agents.answer import CriterionVerdict, MalformedAnswerError, read_answer
from skillup.judges.agents.criteria import Asked
from skillup.judges.agents.question import asked_again, question
from skillup.judges.agents.room import Room
from skillup.judges.ledger import Ledger
from skillup.judges.paced import send_paced
from skillup.process import new_marker
from skillup.process.secrets import Secrets
from skillup.schema.profile import Profile
from skillup.schema.scripted import Script
from skillup.trial.pacing import Pacing, Passage
from skillup.trial.raw_files import set_aside

_FIRST, _SECOND = 1, 2
"""The messages of a session."""


class NoAnswerError(Exception):
    """The agent did not judge; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Sitter:
    """The agent that judges, and how it is run."""

    engine: Engine
    profile: Profile
    script: Script | None
    timeout_seconds: float
    """For the question and, if need be, its repetition; what was refused does not count."""
    pacing: Pacing
    secrets: Secrets
    """What its raw streams may not show."""


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
    # That of the repetition stays: else one that is refused each time would be asked for ever.
    passages = {number: sitter.pacing.of_agent(sitter.profile) for number in (_FIRST, _SECOND)}
    refusals = 0
    while True:
        session = _Session(sitter, room, asked, environment, ledger, sample, refusals + 1)
        try:
            return await session.ask(passages)
        except _RefusedError:
            refusals += 1
            for number in passages:
                stem = f"turn-{number:02d}"
                await anyio.to_thread.run_sync(set_aside, room.root / "raw", stem, "refused")


class _RefusedError(Exception):
    """A message of the session was refused, and may be sent again."""


class _Session:
    """The question and its repetition, in a session that nothing else is asked in."""

    def __init__(
        self,
        sitter: Sitter,
        room: Room,
        asked: Sequence[Asked],
        environment: Mapping[str, str],
        ledger: Ledger,
        sample: int,
        sending: int,
    ) -> None:
        """`sending`: which session it is for this question, from 1."""
        self._sitter = sitter
        self._asked = asked
        self._question = question(asked, room.materials)
        self._ledger = ledger
        self._sending = sending
        self._left = sitter.timeout_seconds
        self._trial = TrialContext(
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
            secrets=sitter.secrets,
        )

    async def ask(self, passages: Mapping[int, Passage]) -> dict[str, CriterionVerdict]:
        """The verdicts. Raises NoAnswerError, and _RefusedError."""
        engine, asked, trial = self._sitter.engine, self._asked, self._trial
        first = TurnRequest(
            _FIRST, self._question, timeout_seconds=self._left, sending=self._sending
        )
        outcome = await self._send(passages[_FIRST], lambda: engine.start(first, trial))
        try:
            return read_answer(outcome.response, asked)
        except MalformedAnswerError as malformed:
            problem = str(malformed)
        session = outcome.session
        if not isinstance(engine, SessionResumer) or session is None or self._left <= 0:
            raise NoAnswerError(f"the judge's answer cannot be read: {problem}")
        resume = engine.resume
        again = TurnRequest(
            _SECOND,
            asked_again(problem, asked),
            timeout_seconds=self._left,
            previous=outcome.fingerprint,
            sending=self._sending,
        )
        resumed = await self._send(passages[_SECOND], lambda: resume(session, again, trial))
        try:
            return read_answer(resumed.response, asked)
        except MalformedAnswerError as malformed:
            why = f"the judge's answer cannot be read, not when asked again either: {malformed}"
            raise NoAnswerError(why) from malformed

    async def _send(
        self, passage: Passage, message: Callable[[], Awaitable[TurnOutcome]]
    ) -> TurnOutcome:
        """What came of a message that was answered."""

        async def send() -> TurnOutcome:
            began = time.monotonic()
            outcome = await message()
            self._left -= time.monotonic() - began
            return outcome

        outcome, again = await send_paced(passage, send)
        if again:
            self._ledger.add_refused(outcome.usage, outcome.cost_usd)
            raise _RefusedError
        profile = self._sitter.profile
        model = outcome.model or profile.model or profile.engine
        self._ledger.add(model, outcome.usage, outcome.cost_usd, cached=False)
        if outcome.error is not None:
            raise NoAnswerError(f"the judge ended in an error: {outcome.error.message}")
        return outcome
