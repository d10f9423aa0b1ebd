"""The user, played by a CLI agent: a session of its own, resumed for each message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import anyio.to_thread

from skillup.engines.base import Engine, TrialContext
from skillup.judges.agent.session import NoAgentAnswerError, ThrottledSession
from skillup.judges.models.question import read_answer
from skillup.ratelimit import RateLimiter
from skillup.schema.record import SimulatorInfo, TurnError, Usage, total_cost, total_usage
from skillup.simulator.prompt import as_message, form_of, form_text, next_text, part_text
from skillup.trial.request import THE_RUNS_END, SimulatorMessage, SimulatorPart

USER = "user"
"""The folder of a trial's user, in its scratch and beside its raw streams; and their stem."""


class EngineUser:
    """:class:`~skillup.trial.request.SimulatedUserEngine`."""

    def __init__(
        self,
        engine: Engine,
        context: Callable[[], TrialContext],
        rate_limiter: RateLimiter,
        timeout_seconds: float,
    ) -> None:
        """`context` makes the directories that the user works in, once they are needed."""
        self._engine = engine
        self._context = context
        self._rate_limiter = rate_limiter
        self._timeout_seconds = timeout_seconds
        self._session: ThrottledSession | None = None
        self._seen = 0
        """Live exchanges that the session knows of."""

    async def speak(self, part: SimulatorPart) -> SimulatorMessage:
        """The user's next message; asked once more if the answer has not the form."""
        session = self._session
        if session is None:
            trial = await anyio.to_thread.run_sync(self._context)
            session = self._session = ThrottledSession(
                self._engine, trial, self._rate_limiter, self._timeout_seconds, USER
            )
        form, session.turns = form_of(part), []
        how = form_text(form.model_json_schema())

        def prompt(first: bool, problem: str) -> str:
            if first:
                return "\n\n".join([part_text(part), next_text(part), how])
            if problem:
                return f"Your answer cannot be read: {problem}.\n\n{how}"
            return "\n\n".join([next_text(part, since=self._seen, resumed=True), how])

        try:
            reply = await session.ask(prompt, lambda response: read_answer(response, form))
        except NoAgentAnswerError as failed:
            error = failed.error
            ends = error is not None and error.kind in THE_RUNS_END
            failure = TurnError(
                kind=error.kind if error is not None and ends else "judge",
                message=f"the simulated user ({session.trial.profile.name}): {failed}",
                evidence=error.evidence if error is not None else "",
            )
            return SimulatorMessage(info=_info(session), error=failure)
        self._seen = len(part.said)
        return replace(as_message(reply), info=_info(session))


def _info(session: ThrottledSession) -> SimulatorInfo:
    usage, profile = total_usage(turn.usage for turn in session.turns), session.trial.profile
    named = session.turns[-1].model if session.turns else None
    return SimulatorInfo(
        usage=Usage(**usage) if usage is not None else None,
        cost_usd=total_cost(turn.cost_usd for turn in session.turns),
        model=named or profile.model or profile.name,
    )
