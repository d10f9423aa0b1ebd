"""Who plays the user of a case, a model or an engine; what was said is data, and fenced."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
from pydantic import Field, model_validator

from skillup.dataclass import frozen, mutable
from skillup.engines.base import SessionResumer
from skillup.engines.registry import engine_of
from skillup.errors import SkillupError
from skillup.judges.evaluate import described
from skillup.judges.material import fenced, harmless
from skillup.judges.models import Models
from skillup.judges.question import PROMPTS, AnswerForm, AskModel, ModelQuestion, read_answer
from skillup.judges.question import Reason as NotBlank
from skillup.judges.session import NoAgentAnswerError, ThrottledSession, context_in
from skillup.plan import Job
from skillup.ratelimit import THE_RUNS_END
from skillup.schema.case import Case
from skillup.schema.judge_model import JudgeModel
from skillup.schema.profile import Profile
from skillup.schema.record import SimulatorInfo, TurnError
from skillup.schema.suite import UserSimulator, needs_simulator, playing_model
from skillup.trial.request import SimulatedUser, SimulatorMessage, SimulatorPart

_TEMPERATURE = 1.0  # Trials of one case are to differ, as people do
USER = "user"
"""The folder of a trial's user, in its scratch and beside its raw streams; and their stem."""
_NOBODY = (
    "the case needs a simulated user, and nobody plays it: "
    "set `user_simulator.model` (or `engine`) in eval.yaml"
)


@frozen
class SimulatorFactory:
    """Finds who plays the users of one run."""

    models: Models
    profiles: Callable[[str, Path], Profile]  # By name, for a suite's root. Raises UsageError

    async def problem(
        self, case: Case, suite: UserSimulator | None, root: Path
    ) -> TurnError | None:
        """Why nobody can play the user of `case`, before its first turn; None: somebody can."""
        who = self.who_plays(case, suite, root)
        why = who if isinstance(who, str) else None
        if isinstance(who, Profile):
            unusable = (await self.models.availability(who)).problem
            why = f"`{who.name}` cannot play the user: {unusable.message}" if unusable else None
        return None if why is None else TurnError(kind="judge", message=self.models.mask(why))

    def player(self, job: Job, run_seed: int, scratch: Path, **trial: Any) -> SimulatedUser | None:
        """Who plays the user in a trial of `job`; None: nobody is needed, or there is nobody.

        An engine works in `scratch`, a directory of its own; `trial`: its streams, attempt, seed.
        """
        root, suite = job.suite.root, job.suite.suite.user_simulator
        who = self.who_plays(job.loaded.case, suite, root)
        if isinstance(who, JudgeModel):
            asker = self.models.asker(root)
            return partial(speak_by_model, asker, who, job.trial - 1, run_seed)
        if not isinstance(who, Profile) or suite is None:
            return None  # nobody is needed; or `problem` says why there is nobody
        seconds, profile = suite.timeout_seconds or who.timeout_seconds, who
        checked, engine = self.models.available.get(who.model_dump_json()), engine_of(who)
        trial["version"] = checked.version if checked is not None else None
        trial |= {"script": suite.scripted, "secrets": self.models.secrets}

        def session() -> ThrottledSession:
            context = context_in(scratch, profile, self.models.environment, **trial)
            return ThrottledSession(engine, context, self.models.rate_limiter, seconds, USER)

        return EngineUser(session).speak

    def who_plays(
        self, case: Case, suite: UserSimulator | None, root: Path
    ) -> JudgeModel | Profile | str | None:
        """The model, or the engine's profile; None: nobody is needed; a text: why nobody can, as
        far as that is known without starting a program.
        """
        if not needs_simulator(case):
            return None
        if suite is None or suite.engine is None:
            model = playing_model(suite, case)
            if model is None:
                return _NOBODY
            if (why := self.models.problem(model, root)) is not None:
                return f"the simulated user: {why}"
            return model
        why = None
        try:
            profile = self.profiles(suite.engine, root)
            if not isinstance(engine_of(profile), SessionResumer):
                why = "it cannot resume a session"
            elif profile.engine == "scripted" and suite.scripted is None:
                what = "say in `user_simulator.scripted` what it says"
                why = f"its engine is the scripted one: {what}"
        except SkillupError as problem:
            why = problem.message
        if why is not None:
            return f"`{suite.engine}` cannot play the user: {why}"
        return profile.model_copy(update={"permission": "read_only"})


@mutable
class EngineUser:
    """An agent that plays, in a session of its own, which is resumed for each message."""

    new_session: Callable[[], ThrottledSession]  # Makes the directories that the user works in
    _session: ThrottledSession | None = None
    _seen: int = 0  # Live exchanges that the session knows of

    async def speak(self, part: SimulatorPart) -> SimulatorMessage:
        """The user's next message; asked once more if the answer has not the form."""
        session = self._session
        if session is None:
            session = self._session = await anyio.to_thread.run_sync(self.new_session)
        form, session.turns = form_of(part), []
        # Models are held to the form of their answer in other ways.
        schema = json.dumps(form.model_json_schema(), ensure_ascii=False)
        how = f"{PROMPTS['user how agents answer']}\n{schema}"

        def prompt(first: bool, problem: str) -> str:
            if first:
                return "\n\n".join([part_text(part), next_text(part), how])
            if problem:
                return f"Your answer cannot be read: {problem}.\n\n{how}"
            return "\n\n".join([next_text(part, since=self._seen), how])

        def info() -> SimulatorInfo:
            usage, cost, model = session.took()
            return SimulatorInfo(usage=usage, cost_usd=cost, model=model)

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
            return SimulatorMessage(info=info(), error=failure)
        self._seen = len(part.said)
        return replace(as_message(reply), info=info())


async def speak_by_model(
    asker: AskModel, model: JudgeModel, sample: int, seed: int, part: SimulatorPart
) -> SimulatorMessage:
    """A model that plays: each message is a question of its own, with all that was said.

    `sample`, from 0, tells trials of the same case apart: each has a user of its own.
    """
    latest = part.said[-1][1] if part.said else ""
    form, prompt = form_of(part), next_text(part)
    question = ModelQuestion(
        model, part_text(part), prompt, form, sample,
        latest=latest, temperature=_TEMPERATURE, seed=seed,
    )  # fmt: skip
    answer = await asker(question)
    info = SimulatorInfo(
        usage=None if answer.cached else answer.usage,
        cost_usd=0.0 if answer.cached else answer.cost_usd,
        model=answer.model,
        cached=answer.cached,
        sampling=dict(answer.sampling),
    )
    if answer.error is not None:
        message = f"the simulated user: {answer.error}"
        return SimulatorMessage(info=info, error=TurnError(kind="judge", message=message))
    return replace(as_message(answer.value), info=info)


# What it is told: its part, what was said, and what to write now.

_SPEAKERS = {"user": "YOU SAID", "assistant": "THE ASSISTANT SAID"}


def part_text(part: SimulatorPart) -> str:
    sections = [] if part.persona is None else [described(part.persona)]
    if part.scenario is not None:
        sections.append(f"Who you are, what you want and know:\n{part.scenario.strip()}")
    return "\n\n".join([PROMPTS["user task"], *sections, PROMPTS["user keep"]])


def next_text(part: SimulatorPart, *, since: int | None = None) -> str:
    """What was said, in a session that goes on from live exchange `since` (from 0), and what to
    write now.
    """
    sections = []
    history = part.history if since is None else ()
    talk = [(str(item.role), item.content) for item in history if item.content.strip()]
    for message, answer in part.said[since:]:
        talk += [("user", message), ("assistant", answer)]
    said = [(_SPEAKERS[role], harmless(text)) for role, text in talk if role in _SPEAKERS]
    if said:
        sections.append(fenced(said, "THE CONVERSATION SO FAR"))
    elif not part.said:
        sections.append("Nothing was said yet: you begin.")
    if part.instruction is not None:
        sections.append(f"In this message, do this:\n{part.instruction.strip()}")
    if part.may_stop:
        sections.append(PROMPTS["user stopping"])
    number = len(part.said) + 1
    left = part.messages_left
    limit = f" At most {left} more, this one included." if left is not None else ""
    sections.append(f"Now it is your turn: message {number}.{limit}")
    return "\n\n".join(sections)


# What whoever plays the user answers: a message, or that the conversation is over.


class TranscriptLine(AnswerForm):
    """The user's next message."""

    message: NotBlank = Field(description="What the user says next, word for word.")


class UserReply(AnswerForm):
    """The user's next message, the end of the conversation, or their last words before it."""

    reason: str = Field("", description="In one sentence: why it is over. Empty with a message.")
    stop: Literal["completed", "impossible"] | None = Field(
        None,
        description="completed: the user has got what they wanted; impossible: they cannot get it. "
        "Null if the conversation goes on.",
    )
    message: str | None = Field(
        None,
        description="What the user says next, word for word. With `stop`: null, or last words.",
    )

    @model_validator(mode="after")
    def _one(self) -> UserReply:
        if self.stop is None and not (self.message or "").strip():
            raise ValueError("give a `message` that is not empty, or a `stop`")
        return self


def form_of(part: SimulatorPart) -> type[UserReply | TranscriptLine]:
    return UserReply if part.may_stop else TranscriptLine


def as_message(move: UserReply | TranscriptLine) -> SimulatorMessage:
    if isinstance(move, UserReply) and move.stop is not None:
        text = move.message if (move.message or "").strip() else None
        return SimulatorMessage(text, move.stop, " ".join(move.reason.split()))
    return SimulatorMessage(text=move.message)
