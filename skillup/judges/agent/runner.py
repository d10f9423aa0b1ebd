"""One question to an agent, in a session of its own; asked once more if the form is wrong.

What its provider refuses is waited out; then the question is asked in another session.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import anyio.to_thread
from pydantic import Field

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
from skillup.judges.artifacts import JudgePlace
from skillup.judges.models.question import (
    AnswerForm,
    MalformedAnswerError,
    Reason,
    read_answer,
    schema_of,
)
from skillup.judges.usage import UsageTracker
from skillup.judges.voting import Vote
from skillup.load.trust import address_problem
from skillup.process import new_marker
from skillup.ratelimit import ANSWERED, REFUSALS, Throttle
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.trial.artifacts import set_aside

_PROVIDERS = ("anthropic", "openai")


def profile_of(judge: JudgeConfig, place: JudgePlace) -> Profile:
    """The profile that is named, read-only, with the judge's model.

    Raises UsageError if there is no such profile, InvalidFilesError if its file is wrong.
    """
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


class AgentVerdict(AnswerForm):
    """The verdict on one criterion."""

    id: str
    reason: Reason
    evidence: list[str] = Field(default_factory=list)
    passed: bool = Field(alias="pass", strict=True)


class AgentAnswer(AnswerForm):
    """One verdict for each criterion."""

    criteria: list[AgentVerdict]

    def vote_on(self, name: str) -> Vote:
        """What it says of the criterion with this id."""
        verdict = next(v for v in self.criteria if v.id.strip().casefold() == name.casefold())
        quotes = tuple(quote for quote in verdict.evidence if quote.strip())
        return Vote(float(verdict.passed), verdict.passed, verdict.reason.strip(), quotes)


def answer_schema(ids: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of an answer; every key is required, as strict modes of models want it."""
    schema = schema_of(AgentAnswer, ids)
    for bound in ("minItems", "maxItems"):
        del schema["properties"]["criteria"][bound]
    verdict = schema["$defs"]["AgentVerdict"]
    verdict["required"] = list(verdict["properties"])
    return schema


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


@dataclass(slots=True)
class AgentRunner:
    """The agent that judges, and what it is asked."""

    engine: Engine
    trial: TrialContext
    question: str
    form: str
    """How to answer, for an answer of another form."""
    ids: Sequence[str]
    """Of the criteria."""
    timeout_seconds: float
    """For the question and, if need be, its repetition; what was refused does not count."""
    spent: float = 0.0

    async def ask(self, place: JudgePlace, usage: UsageTracker) -> AgentAnswer:
        """The agent's answer; what it took goes into `usage`. Raises NoAnswerError."""
        # The repetition's throttle stays: else one that is refused each time is asked for ever.
        throttles = [place.rate_limiter.of_agent(self.trial.profile) for _ in range(2)]
        for sending in count(1):
            answer = await self._session(throttles, usage, sending)
            if answer is not None:
                return answer
            for stem in ("turn-01", "turn-02"):
                await anyio.to_thread.run_sync(set_aside, self.trial.raw_dir, stem, "refused")
        raise AssertionError

    async def _session(
        self, throttles: Sequence[Throttle], usage: UsageTracker, sending: int
    ) -> AgentAnswer | None:
        """None: a message was refused, and may be sent again."""
        trial = replace(self.trial, marker=new_marker(), session_id=str(uuid.uuid4()))
        self.spent = 0.0
        prompt, problem = self.question, ""
        last: EngineTurn | None = None
        for number, throttle in enumerate(throttles, start=1):
            request = TurnRequest(
                number,
                prompt,
                timeout_seconds=self.timeout_seconds - self.spent,
                previous=last.fingerprint if last is not None else None,
                sending=sending,
            )
            session = last.session if last is not None else None
            send = partial(self._send, request, session, trial)
            last, refused = await send_throttled(throttle, send)
            if refused:
                usage.add_refused(last.usage, last.cost_usd)
                return None
            model = last.model or trial.profile.model or trial.profile.engine
            usage.add(model, last.usage, last.cost_usd, cached=False)
            if last.error is not None:
                raise NoAnswerError(f"the judge ended in an error: {last.error.message}")
            try:
                return read_answer(last.response, AgentAnswer, self.ids)
            except MalformedAnswerError as malformed:
                problem = str(malformed)
            prompt = f"That cannot be read: {problem}. Judge as before. {self.form}"
            resumable = isinstance(self.engine, SessionResumer) and last.session is not None
            if not resumable or self.spent >= self.timeout_seconds:
                raise NoAnswerError(f"the judge's answer cannot be read: {problem}")
        why = f"the judge's answer cannot be read, not when asked again either: {problem}"
        raise NoAnswerError(why)

    async def _send(
        self, request: TurnRequest, session: SessionRef | None, trial: TrialContext
    ) -> EngineTurn:
        began = time.monotonic()  # waiting for the provider takes none of its time
        try:
            if session is None or not isinstance(self.engine, SessionResumer):
                return await self.engine.start(request, trial)
            return await self.engine.resume(session, request, trial)
        finally:
            self.spent += time.monotonic() - began
