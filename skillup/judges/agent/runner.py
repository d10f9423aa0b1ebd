"""One question to an agent, in a session of its own; asked once more if the form is wrong.

What its provider refuses is waited out; then the question is asked in another session.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.engines.base import (
    Engine,
    EngineTurn,
    SchemaAnswers,
    SessionRef,
    SessionResumer,
    TrialContext,
    TurnRequest,
)
from skillup.engines.registry import get_engine
from skillup.errors import UsageError
from skillup.judges.agent.answer import AgentAnswer, AskedCriteria
from skillup.judges.agent.question import asked_again
from skillup.judges.models.question import MalformedAnswerError, read_answer
from skillup.judges.scratch import JudgePlace
from skillup.judges.usage import UsageTracker
from skillup.load.trust import address_problem
from skillup.process import new_marker
from skillup.ratelimit import Throttle
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.trial.artifacts import set_aside
from skillup.trial.message_retry import ANSWERED, REFUSALS

# The profile of the agent that judges: the one that is named, read-only, with the judge's model.

_PROVIDERS = ("anthropic", "openai")


def profile_of(judge: JudgeConfig, place: JudgePlace) -> Profile:
    """Raises UsageError if there is no such profile, InvalidFilesError if its file is wrong."""
    profile = place.profiles(judge.engine)
    updates: dict[str, Any] = {"permission": "read_only"}
    if judge.base_url is not None:
        why = address_problem("judge.base_url", judge.base_url, place.environment, profile.base_url)
        if why is not None and isinstance(get_engine(profile.engine), SchemaAnswers):
            raise UsageError(why)
        updates["base_url"] = judge.base_url
    if judge.model is not None:
        name = judge.model
        if judge.base_url is None:  # else it may be the whole name there
            for provider in _PROVIDERS:
                name = name.removeprefix(f"{provider}:").removeprefix(f"{provider}/")
        updates["model"] = name
    if judge.api_key_env is not None:
        updates["api_key_env"] = judge.api_key_env
    return profile.model_copy(update=updates)


def answering(
    profile: Profile, schema: dict[str, Any], directory: Path, *, own_skills: bool = False
) -> Profile:
    """The profile whose agent is held to `schema`; files that this needs go to `directory`.

    `own_skills`: the judge has skills of its own, and so may not be kept from using any.
    """
    engine = get_engine(profile.engine)
    if isinstance(engine, SchemaAnswers):
        return engine.answering(profile, schema, directory, own_skills=own_skills)
    return profile


# A message to an agent that judges or plays the user, at the pace of all who ask its provider.


async def send_throttled(
    throttle: Throttle, send: Callable[[], Awaitable[EngineTurn]]
) -> tuple[EngineTurn, bool]:
    """What came of a message, and whether it is to be sent again, because it was refused.

    `send` is called once its provider may be asked. A refused message that is not to be sent again
    has an error that says why.
    """
    if await throttle.ready() is None:
        what = "nothing more is asked of its provider: the run ends"
        return EngineTurn(None, error=TurnError(kind="cancelled", message=what)), False
    outcome = await send()
    error = outcome.error
    if error is None or error.kind not in REFUSALS:
        if error is None or error.kind in ANSWERED:
            throttle.accepted()
        return outcome, False
    why = throttle.refused(error)
    if why is None:
        return outcome, True
    error = error.model_copy(update={"message": f"{error.message} ({why})"})
    return replace(outcome, error=error), False


class NoAnswerError(Exception):
    """The agent did not judge; the message says why and what to do."""


class _RefusedError(Exception):
    """A message of the session was refused, and may be sent again."""


@dataclass(frozen=True, slots=True)
class AgentRunner:
    """The agent that judges, and what it is asked."""

    engine: Engine
    trial: TrialContext
    question: str
    asked: Sequence[AskedCriteria]
    timeout_seconds: float
    """For the question and, if need be, its repetition; what was refused does not count."""

    async def ask(self, place: JudgePlace, usage: UsageTracker) -> AgentAnswer:
        """The agent's answer; what it took goes into `usage`. Raises NoAnswerError."""
        # The repetition's throttle stays: else one that is refused each time is asked for ever.
        throttles = [place.rate_limiter.of_agent(self.trial.profile) for _ in range(2)]
        sending = 1
        while True:
            try:
                return await self._session(throttles, usage, sending)
            except _RefusedError:
                sending += 1
                for stem in ("turn-01", "turn-02"):
                    await anyio.to_thread.run_sync(set_aside, self.trial.raw_dir, stem, "refused")

    async def _session(
        self, throttles: Sequence[Throttle], usage: UsageTracker, sending: int
    ) -> AgentAnswer:
        trial = replace(self.trial, marker=new_marker(), session_id=str(uuid.uuid4()))
        ids = [item.id for item in self.asked]
        spent: list[float] = []
        prompt, problem = self.question, ""
        last: EngineTurn | None = None
        for number, throttle in enumerate(throttles, start=1):
            request = TurnRequest(
                number,
                prompt,
                timeout_seconds=self.timeout_seconds - sum(spent),
                previous=last.fingerprint if last is not None else None,
                sending=sending,
            )
            session = last.session if last is not None else None
            send = partial(self._send, request, session, trial, spent)
            last, refused = await send_throttled(throttle, send)
            if refused:
                usage.add_refused(last.usage, last.cost_usd)
                raise _RefusedError
            model = last.model or trial.profile.model or trial.profile.engine
            usage.add(model, last.usage, last.cost_usd, cached=False)
            if last.error is not None:
                raise NoAnswerError(f"the judge ended in an error: {last.error.message}")
            try:
                return read_answer(last.response, AgentAnswer, ids)
            except MalformedAnswerError as malformed:
                problem = str(malformed)
            prompt = asked_again(problem, self.asked)
            resumable = isinstance(self.engine, SessionResumer) and last.session is not None
            if not resumable or sum(spent) >= self.timeout_seconds:
                raise NoAnswerError(f"the judge's answer cannot be read: {problem}")
        why = f"the judge's answer cannot be read, not when asked again either: {problem}"
        raise NoAnswerError(why)

    async def _send(
        self,
        request: TurnRequest,
        session: SessionRef | None,
        trial: TrialContext,
        spent: list[float],
    ) -> EngineTurn:
        """`spent` gets the seconds that it took; waiting for the provider takes none."""
        began = time.monotonic()
        try:
            if session is None or not isinstance(self.engine, SessionResumer):
                return await self.engine.start(request, trial)
            return await self.engine.resume(session, request, trial)
        finally:
            spent.append(time.monotonic() - began)
