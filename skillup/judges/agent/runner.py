"""One question to the agent, in a session of its own; asked once more if the form is wrong.

What its provider refuses is waited out; then the question is asked in another session.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup.engines.base import Engine, EngineTurn, SessionResumer, TrialContext, TurnRequest
from skillup.errors import UsageError
from skillup.judges.agent.answer import (
    AgentCriterionVerdict,
    AskedCriteria,
    MalformedAnswerError,
    read_answer,
)
from skillup.judges.agent.question import asked_again, question
from skillup.judges.agent.sandbox import JudgeSandbox
from skillup.judges.scratch import JudgePlace
from skillup.judges.usage import UsageTracker
from skillup.load.trust import address_problem
from skillup.process import new_marker
from skillup.ratelimit.slow_down import Pacing, Passage
from skillup.redaction.secrets import Secrets
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.schema.scripted import Script
from skillup.trial.artifacts import set_aside
from skillup.trial.message_retry import ANSWERED, REFUSALS

# The profile of the agent that judges: the one that is named, read-only, with the judge's model.

Schema = dict[str, Any]
_PROVIDERS = ("anthropic", "openai")


def profile_of(judge: JudgeConfig, place: JudgePlace) -> Profile:
    """Raises UsageError if there is no such profile, InvalidFilesError if its file is wrong."""
    profile = place.profiles(judge.engine)
    updates: dict[str, Any] = {"permission": "read_only"}
    if judge.model is not None:
        updates["model"] = _model(judge)
    if judge.base_url is not None:
        why = address_problem("judge.base_url", judge.base_url, place.environment, profile.base_url)
        if why is not None and profile.engine in _WAYS:
            raise UsageError(why)
        updates["base_url"] = judge.base_url
    if judge.api_key_env is not None:
        updates["api_key_env"] = judge.api_key_env
    return profile.model_copy(update=updates)


def answering(
    profile: Profile, schema: Schema, directory: Path, *, own_skills: bool = False
) -> Profile:
    """The profile whose agent is held to `schema`; files that this needs go to `directory`.

    `own_skills`: the judge has skills of its own, and so may not be kept from using any.
    """
    add = _WAYS.get(profile.engine)
    if add is None:
        return profile
    way = add(schema, directory)
    args, env = [*profile.args, *way.args], {**profile.env, **way.env}
    if not own_skills:
        args.extend(way.without_skills)
    return profile.model_copy(update={"args": args, "env": env})


def _model(judge: JudgeConfig) -> str | None:
    """As the CLI takes it: without the provider that skill-up and model judges put before it.

    With an address of its own the name is left as it is: there it may be the whole name.
    """
    name = judge.model
    if name is None or judge.base_url is not None:
        return name
    for provider in _PROVIDERS:
        for separator in (":", "/"):
            name = name.removeprefix(f"{provider}{separator}")
    return name


@dataclass(frozen=True, slots=True)
class _Way:
    """What a CLI is given so that it judges."""

    args: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    without_skills: Sequence[str] = ()
    """Keeps it from finding the skills of the agent that is judged, where it needs none."""


def _of_claude(schema: Schema, _directory: Path) -> _Way:
    """The answer comes as the final message; claude itself asks again if it has not the form.

    It reads the CLAUDE.md of every directory that it opens a file in, and those are the work of the
    agent that is judged; and so, at times, it finds skills there.
    """
    return _Way(
        ["--json-schema", json.dumps(schema)],
        {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"},
        ["--disable-slash-commands"],
    )


def _of_codex(schema: Schema, directory: Path) -> _Way:
    """The answer is the final message, held to the schema by the model's provider."""
    file = directory / "answer-schema.json"
    file.write_text(json.dumps(schema), "utf-8")
    return _Way(["--output-schema", str(file)])


_WAYS: dict[str, Callable[[Schema, Path], _Way]] = {
    "claude_code": _of_claude,
    "codex": _of_codex,
}


# A message to an agent that judges or plays the user, at the pace of all who ask its provider.


async def send_paced(
    passage: Passage, send: Callable[[], Awaitable[EngineTurn]]
) -> tuple[EngineTurn, bool]:
    """What came of a message, and whether it is to be sent again, because it was refused.

    `send` is called once its provider may be asked. A refused message that is not to be sent again
    has an error that says why.
    """
    if not await passage.ready():
        what = "nothing more is asked of its provider: the run ends"
        return EngineTurn(None, error=TurnError(kind="cancelled", message=what)), False
    outcome = await send()
    error = outcome.error
    if error is None or error.kind not in REFUSALS:
        if error is None or error.kind in ANSWERED:
            await passage.accepted()
        return outcome, False
    why = await passage.refused(error)
    if why is None:
        return outcome, True
    told = error.model_copy(update={"message": f"{error.message} ({why})"})
    return replace(outcome, error=told), False


_FIRST, _SECOND = 1, 2
"""The messages of a session."""


class NoAnswerError(Exception):
    """The agent did not judge; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class AgentRunner:
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
    sitter: AgentRunner,
    room: JudgeSandbox,
    asked: Sequence[AskedCriteria],
    environment: Mapping[str, str],
    ledger: UsageTracker,
    sample: int,
) -> dict[str, AgentCriterionVerdict]:
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
        sitter: AgentRunner,
        room: JudgeSandbox,
        asked: Sequence[AskedCriteria],
        environment: Mapping[str, str],
        ledger: UsageTracker,
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

    async def ask(self, passages: Mapping[int, Passage]) -> dict[str, AgentCriterionVerdict]:
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
        self, passage: Passage, message: Callable[[], Awaitable[EngineTurn]]
    ) -> EngineTurn:
        """What came of a message that was answered."""

        async def send() -> EngineTurn:
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
