"""What a trial is given, what it reports while it goes on, and what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from skillup.checks.context import Ask
from skillup.dataclass import frozen
from skillup.engines.base import Engine, RawStreams
from skillup.plan import Job
from skillup.ratelimit import Throttle
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.case import Persona
from skillup.schema.grade import Judging
from skillup.schema.record import (
    Checkpoint,
    HistoryItem,
    Record,
    SimulatorInfo,
    TranscriptItem,
    TurnError,
)
from skillup.workspace.snapshot import BlobStore

if TYPE_CHECKING:  # It brings an HTTP library
    from skillup.gateway.server import Gateway

T = TypeVar("T")

# The seam between a conversation and whoever plays its user.


@frozen
class SimulatorPart:
    """All that the simulated user is given for its next message; nothing of how it is judged."""

    persona: Persona | None = None
    scenario: str | None = None
    instruction: str | None = None  # What this message is to do; None: it leads the conversation
    said: Sequence[tuple[str, str]] = ()
    """The live conversation so far: each user message, and the agent's answer to it."""
    history: Sequence[HistoryItem] = ()
    messages_left: int | None = None
    """How many it may still write, this one included; None: the case says when it writes."""
    may_stop: bool = False


@frozen
class SimulatorMessage:
    """What came of it: an error, or a message, a stop, or both: the user's last words."""

    text: str | None = None
    stop: Literal["completed", "impossible"] | None = None
    reason: str = ""
    info: SimulatorInfo = field(default_factory=SimulatorInfo)
    error: TurnError | None = None


SimulatedUser = Callable[[SimulatorPart], Awaitable[SimulatorMessage]]
"""Says the user's next message, or an error: of kind `judge`, or one of `THE_RUNS_END`."""


class LiveJudge(Protocol):
    """Answers, while the conversation goes on, the checks that only a judge can evaluate."""

    async def evaluate(self, work: Callable[[Ask], T]) -> T:
        """The value of `work`, a pure function, once what it asks has been answered."""

    def judging(self) -> Judging | None:
        """What that has used so far; None: nobody was asked."""


@frozen
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
    tokens: int | None = None
    """Of `turn_ended`: input and output of all its messages; None: not reported."""
    cost_usd: float | None = None


@frozen
class TrialRequest:
    """One job and the places and circumstances it runs in."""

    run_id: str
    job: Job
    engine: Engine
    streams: RawStreams  # Where the raw streams of the trial's processes go
    keep_artifact: Callable[[str, bytes], None]  # Keeps a file that `collect_artifacts` names
    blobs: BlobStore
    scratch: Path
    """The trial's own directory for workspace and home; the caller makes and removes it."""
    environment: Mapping[str, str]
    secrets: Secrets = NO_SECRETS  # What nothing of the run may show; the engine may know more
    variables: Mapping[str, str] = field(default_factory=dict)  # From `--var`; outrank `vars`
    attempt: int = 1
    seed: int = 0
    engine_version: str | None = None
    judge: LiveJudge | None = None  # None: a check that needs a judge cannot be evaluated
    simulator: SimulatedUser | None = None  # None: nobody can play the user
    throttle: Throttle | None = None  # None: a refusal is an error at once
    checkpoint: Callable[[Checkpoint], None] | None = None
    """Keeps what a later start of the run needs to go on after the latest turn; None: nobody."""
    notify: Callable[[TrialEvent], None] = lambda _: None
    gateway: Gateway | None = None  # Of the run; None: it has none
    command: Sequence[str] = ()  # How the CLI is started on this machine


@frozen
class Interruption:
    """Why what came of a conversation is not the trial's result."""

    kind: Literal["run_ended", "restart"]
    """`run_ended`: the trial goes on with a later start of the run. `restart`: a message was
    refused, and can only be sent again in a new attempt."""
    reason: str = ""


@frozen
class TrialResult:
    """What came of a trial."""

    record: Record
    interruption: Interruption | None = None
