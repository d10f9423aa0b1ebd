"""Who plays the user of a case: the model or the engine that its suite names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from skillup.engines.base import Engine, SessionResumer, TrialContext
from skillup.engines.registry import get_engine
from skillup.errors import SkillupError
from skillup.judges.agent.session import NoAgentAnswerError, ThrottledSession
from skillup.judges.models.client import Models
from skillup.judges.models.question import CannotAskError, read_answer
from skillup.plan import Job
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.case import Case
from skillup.schema.judge import JudgeModel
from skillup.schema.profile import Profile
from skillup.schema.record import SimulatorInfo, TurnError, Usage, total_cost, total_usage
from skillup.schema.suite import UserSimulator, needs_simulator, playing_model
from skillup.simulator.prompt import ModelUser, as_message, form_of, form_text, next_text, part_text
from skillup.trial.request import THE_RUNS_END, SimulatedUserEngine, SimulatorMessage, SimulatorPart

USER = "user"
"""The folder of a trial's user, in its scratch and beside its raw streams; and their stem."""
NOBODY = (
    "the case needs a simulated user, and nobody plays it: "
    "set `user_simulator.model` (or `engine`) in eval.yaml"
)


@dataclass(frozen=True, slots=True)
class SimulatorPlace:
    """Where a trial's user may work; only engines need it."""

    scratch: Path  # A directory of this user's alone; not the trial's workspace
    raw_dir: Path
    attempt: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SimulatorFactory:
    """Finds who plays the users of one run."""

    models: Models
    profiles: Callable[[str, Path], Profile]  # By name, for a suite's root. Raises UsageError
    secrets: Secrets = NO_SECRETS  # What the raw streams of agents may not show
    _checked: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """What is known of engines, by the profile's name: its version, and what is wrong with it."""

    async def problem(
        self, case: Case, suite: UserSimulator | None, root: Path
    ) -> TurnError | None:
        """Why nobody can play the user of `case`, before its first turn; None: somebody can."""
        why = None
        try:
            profile = self._who(case, suite, root)
            if isinstance(profile, Profile):
                if profile.name not in self._checked:
                    found = await get_engine(profile.engine).check(profile, self.models.environment)
                    problem = found.problem.message if found.problem is not None else None
                    self._checked[profile.name] = (found.version, problem)
                if (unusable := self._checked[profile.name][1]) is not None:
                    why = f"`{profile.name}` cannot play the user: {unusable}"
        except CannotAskError as nobody:
            why = str(nobody)
        return None if why is None else TurnError(kind="judge", message=self.models.mask(why))

    def known_problem(self, case: Case, suite: UserSimulator | None, root: Path) -> str | None:
        """As :meth:`problem`, as far as that is known without starting a program."""
        try:
            self._who(case, suite, root)
        except CannotAskError as nobody:
            return str(nobody)
        return None

    def player(self, job: Job, place: SimulatorPlace) -> SimulatedUserEngine | None:
        """Who plays the user in a trial of `job`; None: nobody is needed, or there is nobody."""
        root, suite = job.suite.root, job.suite.suite.user_simulator
        try:
            who = self._who(job.loaded.case, suite, root)
        except CannotAskError:
            return None  # `problem` says why
        if isinstance(who, JudgeModel):
            return ModelUser(self.models.asker(root), who, job.trial - 1)
        if who is None or suite is None:
            return None
        seconds = suite.timeout_seconds or who.timeout_seconds
        context = partial(self.context, who, suite, place)
        return EngineUser(get_engine(who.engine), context, self.models.rate_limiter, seconds)

    def _who(
        self, case: Case, suite: UserSimulator | None, root: Path
    ) -> JudgeModel | Profile | None:
        """The model, or the engine's profile; None: nobody is needed. Raises CannotAskError."""
        if not needs_simulator(case):
            return None
        if suite is None or suite.engine is None:
            model = playing_model(suite, case)
            if model is None:
                raise CannotAskError(NOBODY)
            if (why := self.models.problem(model, root)) is not None:
                raise CannotAskError(f"the simulated user: {why}")
            return model
        why = None
        try:
            profile = self.profiles(suite.engine, root)
            if not isinstance(get_engine(profile.engine), SessionResumer):
                why = "it cannot resume a session"
            elif profile.engine == "scripted" and suite.scripted is None:
                why = (
                    "its engine is the scripted one: say in `user_simulator.scripted` what it says"
                )
        except SkillupError as problem:
            why = problem.message
        if why is not None:
            raise CannotAskError(f"`{suite.engine}` cannot play the user: {why}")
        return profile.model_copy(update={"permission": "read_only"})

    def context(
        self, profile: Profile, suite: UserSimulator, place: SimulatorPlace
    ) -> TrialContext:
        """What stays the same for every message; makes the directories in `place`."""
        places = {name: place.scratch / name for name in ("workspace", "home")}
        for directory in places.values():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return TrialContext(
            profile=profile,
            workspace=places["workspace"].resolve(),
            home=places["home"].resolve(),
            raw_dir=place.raw_dir,
            environment=self.models.environment,
            extra_env=profile.env,
            marker="",
            session_id="",
            version=self._checked.get(profile.name, (None, None))[0],
            script=suite.scripted,
            attempt=place.attempt,
            seed=place.seed,
            secrets=self.secrets,
        )


# The user, played by a CLI agent: a session of its own, resumed for each message.


class EngineUser:
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
