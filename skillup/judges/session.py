"""A session with an agent that judges, or plays a user: asked, and once more if need be.

What its provider refuses is waited out; then the message is sent in another session.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from skillup.dataclass import mutable
from skillup.engines.base import Engine, EngineTurn, SessionResumer, TrialContext, TurnRequest
from skillup.judges.question import MalformedAnswerError
from skillup.process.tree import new_marker
from skillup.ratelimit import ANSWERED, REFUSALS, RateLimiter
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError, Usage, total_cost, total_usage

T = TypeVar("T")
Prompt = Callable[[bool, str], str]
"""The message, by whether it is the first of a session, and what is wrong with the last answer."""


class NoAgentAnswerError(Exception):
    def __init__(self, why: str, error: TurnError | None = None) -> None:
        super().__init__(why)
        self.error = error


def context_in(
    root: Path, profile: Profile, environment: Mapping[str, str], **more: Any
) -> TrialContext:
    """For an agent in `root`, where its directories are made, `work` and `home`."""
    for name in ("work", "home"):
        (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    return TrialContext(
        profile=profile,
        workspace=(root / "work").resolve(),
        home=(root / "home").resolve(),
        environment=environment,
        extra_env=profile.env,
        **{"marker": "", "session_id": "", **more},  # Each session has its own
    )


@mutable
class ThrottledSession:
    """An agent, and what it has said so far."""

    engine: Engine
    trial: TrialContext
    rate_limiter: RateLimiter
    timeout_seconds: float  # For each message; what was refused does not count
    stem: str  # What the names of its raw files begin with
    turns: list[EngineTurn] = field(default_factory=list)  # Refused ones too
    _in_session: list[EngineTurn] = field(default_factory=list)  # In the present session
    _messages: int = 0

    async def ask(self, prompt: Prompt, read: Callable[[str], T]) -> T:
        """What `read` makes of the answer, or of a second one. Raises NoAgentAnswerError."""
        problem = ""
        for _ in range(2):
            turn = await self._send(prompt, problem)
            if turn.error is not None:
                raise NoAgentAnswerError(f"{turn.error.kind}: {turn.error.message}", turn.error)
            try:
                return read(turn.response)
            except MalformedAnswerError as malformed:
                problem = str(malformed)
            if turn.session is None or not isinstance(self.engine, SessionResumer):
                break
        raise NoAgentAnswerError(f"its answer cannot be read: {problem}")

    def took(self) -> tuple[Usage | None, float | None, str]:
        """Tokens and cost of `turns`, and the model's name."""
        usage, profile = total_usage(turn.usage for turn in self.turns), self.trial.profile
        named = self.turns[-1].model if self.turns else None
        cost = total_cost(turn.cost_usd for turn in self.turns)
        return Usage(**usage) if usage else None, cost, named or profile.model or profile.name

    async def _send(self, prompt: Prompt, problem: str) -> EngineTurn:
        """What came of a message, sent until it is not refused."""
        throttle = self.rate_limiter.of_agent(self.trial.profile)
        self._messages += 1
        stem, sending = f"{self.stem}-{self._messages:02d}", 0
        while await throttle.ready() is not None:
            sending += 1
            last = self._in_session[-1] if self._in_session else None
            if last is None:
                self.trial = replace(self.trial, session_id=str(uuid.uuid4()), marker=new_marker())
            request = TurnRequest(
                number=len(self._in_session) + 1,
                prompt=prompt(last is None, problem),
                stem=stem,
                timeout_seconds=self.timeout_seconds,
                previous=last.fingerprint if last is not None else None,
                sending=sending,
            )
            session = last.session if last is not None else None
            if session is None or not isinstance(self.engine, SessionResumer):
                turn = await self.engine.start(request, self.trial)
            else:
                turn = await self.engine.resume(session, request, self.trial)
            self._in_session.append(replace(turn, session=turn.session or session))
            self.turns.append(turn)
            error = turn.error
            if error is None or error.kind not in REFUSALS:
                if error is None or error.kind in ANSWERED:
                    throttle.accepted()
                return turn
            if (why := throttle.refused(error)) is not None:
                refused = error.model_copy(update={"message": f"{error.message} ({why})"})
                return replace(turn, error=refused)
            self.trial.streams.set_aside(stem, "refused")
            self._in_session.clear()
        why = "nothing more is asked of its provider: the run ends"
        return EngineTurn(None, error=TurnError(kind="cancelled", message=why))
