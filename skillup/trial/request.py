"""What a trial is given, and what it tells while it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from skillup.checks.context import Ask
from skillup.engines.base import Engine
from skillup.plan import Job
from skillup.ratelimit import Throttle
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.case import Persona
from skillup.schema.grade import Judging
from skillup.schema.record import (
    Checkpoint,
    ErrorKind,
    HistoryItem,
    SimulatorInfo,
    TranscriptItem,
    TurnError,
    TurnRecord,
    total_cost,
)
from skillup.workspace import BlobStore

# Time left: a turn's own limit within the whole conversation's.


@dataclass(slots=True)
class Deadline:
    """The moment (of the monotonic clock) at which a conversation must end; None: never."""

    at: float | None
    postponed: float = 0.0
    """By so many seconds, so far."""

    @classmethod
    def after(cls, seconds: float | None, *, used: float = 0.0) -> Deadline:
        """`seconds` from now, less those that are `used` up already."""
        return cls(None if seconds is None else time.monotonic() + seconds - used)

    def limit(self, seconds: float) -> float:
        """`seconds`, or what is left if that is less; never below 0."""
        if self.at is None:
            return seconds
        return max(0.0, min(seconds, self.at - time.monotonic()))

    def postpone(self, seconds: float) -> None:
        """What took so long does not count."""
        self.postponed += seconds
        if self.at is not None:
            self.at += seconds


# The seam between a conversation and whoever plays its user: what is asked, what is answered.

THE_RUNS_END: frozenset[ErrorKind] = frozenset({"cancelled", "quota"})
"""Errors of a user's that say so: the trial is left where it is, as if its own message met them."""


@dataclass(frozen=True, slots=True)
class SimulatorPart:
    """All that the simulated user is given for its next message; nothing of how it is judged."""

    persona: Persona | None = None
    """Who the user is, wants and knows; templates are filled in."""
    scenario: str | None = None
    """The same as a free text, skill-up's."""
    instruction: str | None = None
    """What this one message is to do; None: it leads the conversation."""
    said: Sequence[tuple[str, str]] = ()
    """The live conversation so far: each user message, and the agent's answer to it."""
    history: Sequence[HistoryItem] = ()
    """What was said before the live conversation."""
    messages_left: int | None = None
    """How many it may still write, this one included; None: the case says when it writes."""
    may_stop: bool = False
    """Whether it may end the conversation instead of writing."""


@dataclass(frozen=True, slots=True)
class SimulatorMessage:
    """What came of it: a message, a stop or an error; exactly one of the three."""

    text: str | None = None
    stop: Literal["completed", "impossible"] | None = None
    reason: str = ""
    """Why it stopped."""
    info: SimulatorInfo = field(default_factory=SimulatorInfo)
    error: TurnError | None = None
    notes: tuple[str, ...] = ()
    """Where the message does not keep to the part."""


class SimulatedUserEngine(Protocol):
    """Plays the user of one trial."""

    async def speak(self, part: SimulatorPart) -> SimulatorMessage:
        """The user's next message. What goes wrong is in the answer, never raised.

        It is an error of the kind `judge`, or one of `THE_RUNS_END`.
        """
        ...


@dataclass(frozen=True, slots=True)
class TrialEvent:
    """Something that happened in a trial, for the live display."""

    job: str
    kind: Literal["preparing", "turn_started", "message_sent", "activity", "item", "turn_ended"]
    turn: int = 0
    turns: int = 0
    text: str = ""
    source: str = "case"
    """Of `message_sent`, whose `text` is the message: `case`, `simulator`, `follow_up`, or `again`
    if it was refused before."""
    item: TranscriptItem | None = None
    """Of `item`: what the agent said, called or was given; long texts are cut."""
    tokens: int | None = None
    """Of `turn_ended`: input and output of all its messages; None: not told."""
    cost_usd: float | None = None
    """Of `turn_ended`, in the same way."""
    shared_by: int = 1
    """How many trials it happens in: above 1, in a turn that is held once for all of them."""


T = TypeVar("T")


class LiveJudge(Protocol):
    """Answers, while the conversation goes on, the checks that only a judge can evaluate."""

    async def settle(self, evaluate: Callable[[Ask], T]) -> T:
        """The value of `evaluate`, a pure function, once what it asks has been answered."""
        ...

    def judging(self) -> Judging | None:
        """What that has taken so far; None: nobody was asked."""
        ...


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """One job and the places and circumstances it is held in."""

    run_id: str
    job: Job
    engine: Engine
    raw_dir: Path
    """Where the raw streams go; kept with the record."""
    artifacts_dir: Path
    """Where the files that `collect_artifacts` names are copied to."""
    blobs: BlobStore
    """Where the contents of workspace files go; kept with the record."""
    scratch: Path
    """The trial's own directory for workspace and home; the caller makes and removes it."""
    environment: Mapping[str, str]
    """The user's own environment."""
    secrets: Secrets = NO_SECRETS
    """What nothing of the run may show, beside what the engine knows of."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """From `--var`; they outrank the case's `vars`."""
    attempt: int = 1
    seed: int = 0
    engine_version: str | None = None
    judge: LiveJudge | None = None
    """None: a check that needs a judge cannot be evaluated."""
    simulator: SimulatedUserEngine | None = None
    """None: nobody can play the user."""
    throttle: Throttle | None = None
    """None: a refusal is an error at once."""
    note_down: Callable[[Checkpoint], None] | None = None
    """Keeps what a later start of the run needs to go on after the latest turn; None: nobody."""
    notify: Callable[[TrialEvent], None] = lambda _: None


# What those who watch a trial are told: what its agent does, and what a turn took.

# For the eye: whoever wants all of it reads the record. An event may travel between machines.
_CHARACTERS = 8000


class AgentWatcher:
    """The `Progress` and `ItemWatcher` of a trial: passes on what its agent does."""

    def __init__(self, job: str, notify: Callable[[TrialEvent], None]) -> None:
        self._job = job
        self._notify = notify

    def __call__(self, text: str) -> None:
        """The agent is doing something."""
        self._notify(TrialEvent(self._job, "activity", text=text))

    def item(self, item: TranscriptItem) -> None:
        """The transcript has one item more."""
        self._notify(TrialEvent(self._job, "item", item=shortened(item)))


def shortened(item: TranscriptItem) -> TranscriptItem:
    """`item` with its long texts cut."""
    update: dict[str, Any] = {}
    if item.text is not None:
        update["text"] = _cut(item.text)
    if item.tool_result is not None:
        content = _cut(item.tool_result.content)
        update["tool_result"] = item.tool_result.model_copy(update={"content": content})
    if item.tool_call is not None:
        arguments = {
            name: _cut(value) if isinstance(value, str) else value
            for name, value in item.tool_call.arguments.items()
        }
        update["tool_call"] = item.tool_call.model_copy(update={"arguments": arguments})
    return item.model_copy(update=update)


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}\n…"


def spent_in(turn: TurnRecord) -> tuple[int | None, float | None]:
    """Tokens (input and output) and cost of a turn's messages; None where none of them told."""
    messages = [turn, *turn.follow_ups]
    tokens = total_cost(message.usage.tokens() for message in messages if message.usage)
    cost = total_cost(message.cost_usd for message in messages)
    return tokens, cost
