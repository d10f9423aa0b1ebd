"""The user, played by a CLI agent: a session of its own, resumed for each message."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import (
    Engine,
    SessionRef,
    SessionResumer,
    TrialContext,
    TurnOutcome,
    TurnRequest,
)
from skillup.judges.usage import total_cost, total_usage
from skillup.judges.users.moves import Form, MalformedMoveError, as_message, form_of, read_move
from skillup.judges.users.prompt import form_text, next_text, part_text
from skillup.process import new_marker
from skillup.schema.profile import Profile
from skillup.schema.record import SessionFingerprint, SimulatorInfo, TurnError, Usage
from skillup.schema.scripted import Script
from skillup.trial.simulator import SimulatorMessage, SimulatorPart

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the user is played, and with what."""

    engine: Engine
    profile: Profile
    """As it is named; played read-only whatever it says."""
    scratch: Path
    """A directory of this user's alone, made when it is needed; not the trial's workspace."""
    raw_dir: Path
    """Where the raw streams go, as ``user-NN.stdout.jsonl``."""
    environment: Mapping[str, str]
    """The user's own environment."""
    timeout_seconds: float
    """For each message."""
    script: Script | None = None
    seed: int = 0
    attempt: int = 1
    version: str | None = None


class EngineUser:
    """:class:`~skillup.trial.simulator.UserSimulator`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._trial: TrialContext | None = None
        self._session: SessionRef | None = None
        self._fingerprint: SessionFingerprint | None = None
        self._sent = 0
        self._told = 0
        """Live exchanges that the session knows of."""

    async def speak(self, part: SimulatorPart) -> SimulatorMessage:
        """The user's next message; asked once more if the answer has not the form."""
        form = form_of(part.may_stop)
        prompt = self._prompt(part, form)
        outcomes: list[TurnOutcome] = []
        problem = ""
        for _ in range(_ATTEMPTS):
            outcome = await self._ask(prompt)
            outcomes.append(outcome)
            if outcome.error is not None:
                return self._failed(f"{outcome.error.kind}: {outcome.error.message}", outcomes)
            self._told = len(part.said)
            try:
                said = as_message(read_move(outcome.response, form))
            except MalformedMoveError as malformed:
                problem = str(malformed)
                prompt = f"Your answer cannot be read: {problem}.\n\n{_form(form)}"
                continue
            return SimulatorMessage(said.text, said.stop, said.reason, self._info(outcomes))
        return self._failed(f"its answer cannot be read: {problem}", outcomes)

    def _prompt(self, part: SimulatorPart, form: Form) -> str:
        if self._session is None:
            return "\n\n".join([part_text(part), next_text(part), _form(form)])
        return "\n\n".join([next_text(part, since=self._told, resumed=True), _form(form)])

    async def _ask(self, prompt: str) -> TurnOutcome:
        trial = await anyio.to_thread.run_sync(self._context)
        self._sent += 1
        request = TurnRequest(
            number=self._sent,
            prompt=prompt,
            stem=f"user-{self._sent:02d}",
            timeout_seconds=self._stage.timeout_seconds,
            previous=self._fingerprint,
        )
        engine = self._stage.engine
        if self._session is None:
            outcome = await engine.start(request, trial)
            self._session = outcome.session
        elif isinstance(engine, SessionResumer):
            outcome = await engine.resume(self._session, request, trial)
        else:
            what = f"{engine.name} cannot resume a session"
            return TurnOutcome(self._session, error=TurnError(kind="no_resume", message=what))
        self._fingerprint = outcome.fingerprint
        return outcome

    def _context(self) -> TrialContext:
        stage = self._stage
        if self._trial is None:
            places = {name: stage.scratch / name for name in ("workspace", "home")}
            for place in places.values():
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._trial = TrialContext(
                profile=stage.profile,
                workspace=places["workspace"].resolve(),
                home=places["home"].resolve(),
                raw_dir=stage.raw_dir,
                environment=stage.environment,
                extra_env=stage.profile.env,
                marker=new_marker(),
                session_id=str(uuid.uuid4()),
                version=stage.version,
                script=stage.script,
                attempt=stage.attempt,
                seed=stage.seed,
            )
        return self._trial

    def _info(self, outcomes: list[TurnOutcome]) -> SimulatorInfo:
        usage = total_usage(outcome.usage for outcome in outcomes)
        profile = self._stage.profile
        return SimulatorInfo(
            usage=Usage(**usage) if usage is not None else None,
            cost_usd=total_cost(outcome.cost_usd for outcome in outcomes),
            model=outcomes[-1].model or profile.model or profile.name,
        )

    def _failed(self, why: str, outcomes: list[TurnOutcome]) -> SimulatorMessage:
        name = self._stage.profile.name
        evidence = next((o.error.evidence for o in outcomes if o.error is not None), "")
        error = TurnError(
            kind="judge", message=f"the simulated user ({name}): {why}", evidence=evidence
        )
        return SimulatorMessage(info=self._info(outcomes), error=error)


def _form(form: Form) -> str:
    return form_text(form.model_json_schema())
