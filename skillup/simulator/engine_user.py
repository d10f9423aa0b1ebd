"""The user, played by a CLI agent: a session of its own, resumed for each message."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import (
    Engine,
    EngineTurn,
    SessionRef,
    SessionResumer,
    TrialContext,
    TurnRequest,
)
from skillup.judges.agent.runner import send_throttled
from skillup.judges.models.question import MalformedAnswerError, read_answer
from skillup.process import new_marker
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.profile import Profile
from skillup.schema.record import (
    SessionFingerprint,
    SimulatorInfo,
    TurnError,
    Usage,
    total_cost,
    total_usage,
)
from skillup.schema.scripted import Script
from skillup.simulator.prompt import as_message, form_of, form_text, next_text, part_text
from skillup.trial.artifacts import set_aside
from skillup.trial.request import THE_RUNS_END, SimulatorMessage, SimulatorPart


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """Where the user is played, and with what."""

    engine: Engine
    profile: Profile
    """Read-only, whatever its file says."""
    scratch: Path
    """A directory of this user's alone, made when it is needed; not the trial's workspace."""
    raw_dir: Path
    """Where the raw streams go, as ``user-NN.stdout.jsonl``."""
    environment: Mapping[str, str]
    """The user's own environment."""
    timeout_seconds: float
    """For each message; what was refused does not count."""
    rate_limiter: RateLimiter
    secrets: Secrets = NO_SECRETS
    """What the raw streams may not show."""
    script: Script | None = None
    seed: int = 0
    attempt: int = 1
    version: str | None = None


class EngineUser:
    """:class:`~skillup.trial.request.SimulatedUserEngine`."""

    def __init__(self, config: SimulatorConfig) -> None:
        self._config = config
        self._trial: TrialContext | None = None
        self._session: SessionRef | None = None
        self._fingerprint: SessionFingerprint | None = None
        self._sent = 0
        self._in_session = 0
        """So many of those that were sent are in the session."""
        self._seen = 0
        """Live exchanges that the session knows of."""

    async def speak(self, part: SimulatorPart) -> SimulatorMessage:
        """The user's next message; asked once more if the answer has not the form."""
        outcomes: list[EngineTurn] = []
        problem = ""
        for _ in range(2):
            outcome = await self._ask(part, problem, outcomes)
            if outcome.error is not None:
                return self._failed(f"{outcome.error.kind}: {outcome.error.message}", outcomes)
            self._seen = len(part.said)
            try:
                message = as_message(read_answer(outcome.response, form_of(part)))
                return replace(message, info=self._info(outcomes))
            except MalformedAnswerError as malformed:
                problem = str(malformed)
        return self._failed(f"its answer cannot be read: {problem}", outcomes)

    async def _ask(
        self, part: SimulatorPart, problem: str, outcomes: list[EngineTurn]
    ) -> EngineTurn:
        """What came of one message, sent until it is not refused; all that came is in `outcomes`.

        `problem`: why the answer before cannot be read. After a refusal it goes on in another
        session, which is shown all that was said.
        """
        config = self._config
        throttle = config.rate_limiter.of_agent(config.profile)
        self._sent += 1
        stem, sending, again = f"user-{self._sent:02d}", 0, True
        while again:
            sending += 1
            if self._trial is None:
                self._trial = await anyio.to_thread.run_sync(self._context)
            trial = self._trial
            session = self._session
            form = form_text(form_of(part).model_json_schema())
            if session is None:
                prompt = "\n\n".join([part_text(part), next_text(part), form])
            elif problem:
                prompt = f"Your answer cannot be read: {problem}.\n\n{form}"
            else:
                prompt = "\n\n".join([next_text(part, since=self._seen, resumed=True), form])
            request = TurnRequest(
                number=self._in_session + 1,
                prompt=prompt,
                stem=stem,
                timeout_seconds=config.timeout_seconds,
                previous=self._fingerprint,
                sending=sending,
            )
            send = partial(_send, config.engine, session, request, trial)
            outcome, again = await send_throttled(throttle, send)
            outcomes.append(outcome)
            self._session, self._fingerprint = outcome.session or session, outcome.fingerprint
            self._in_session += 1
            if again:
                await anyio.to_thread.run_sync(set_aside, config.raw_dir, stem, "refused")
                self._session = self._fingerprint = None
                self._in_session = 0
                self._trial = replace(trial, session_id=str(uuid.uuid4()))
        return outcomes[-1]

    def _context(self) -> TrialContext:
        config = self._config
        places = {name: config.scratch / name for name in ("workspace", "home")}
        for place in places.values():
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return TrialContext(
            profile=config.profile,
            workspace=places["workspace"].resolve(),
            home=places["home"].resolve(),
            raw_dir=config.raw_dir,
            environment=config.environment,
            extra_env=config.profile.env,
            marker=new_marker(),
            session_id=str(uuid.uuid4()),
            version=config.version,
            script=config.script,
            attempt=config.attempt,
            seed=config.seed,
            secrets=config.secrets,
        )

    def _info(self, outcomes: list[EngineTurn]) -> SimulatorInfo:
        usage = total_usage(outcome.usage for outcome in outcomes)
        profile = self._config.profile
        return SimulatorInfo(
            usage=Usage(**usage) if usage is not None else None,
            cost_usd=total_cost(outcome.cost_usd for outcome in outcomes),
            model=outcomes[-1].model or profile.model or profile.name,
        )

    def _failed(self, why: str, outcomes: list[EngineTurn]) -> SimulatorMessage:
        error = outcomes[-1].error
        failure = TurnError(
            kind=error.kind if error is not None and error.kind in THE_RUNS_END else "judge",
            message=f"the simulated user ({self._config.profile.name}): {why}",
            evidence=error.evidence if error is not None else "",
        )
        return SimulatorMessage(info=self._info(outcomes), error=failure)


async def _send(
    engine: Engine, session: SessionRef | None, request: TurnRequest, trial: TrialContext
) -> EngineTurn:
    if session is None:
        return await engine.start(request, trial)
    assert isinstance(engine, SessionResumer)  # no other can play
    return await engine.resume(session, request, trial)
