"""What a trial is given, and what it tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from skillup.checks.context import Ask
from skillup.engines.base import Engine
from skillup.plan import Job
from skillup.process.secrets import NO_SECRETS, Secrets
from skillup.schema.checkpoint import Checkpoint
from skillup.schema.grade import Judging
from skillup.schema.record import TranscriptItem, TurnError
from skillup.trial.simulator import UserSimulator
from skillup.workspace import BlobStore


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


class Patience(Protocol):
    """What a trial does about a provider that wants fewer requests; all trials share its state."""

    left: bool
    """The trial was left in the midst of its conversation: what came of it is no record."""
    anew: str | None
    """Why the message that was refused can only be sent in a new attempt; None: no need."""

    async def ready(self) -> float | None:
        """Waits until a message may be sent; how long that was, in seconds. None: leave."""
        ...

    async def refused(self, error: TurnError, times: int) -> Literal["again", "error", "leave"]:
        """The provider refused a message for the `times`-th time in a row.

        `again`: once it is `ready`, the message is sent once more. `error`: the turn ends with
        `error`. `leave`: the run ends; the trial is left as it is, for a later `--resume`.
        """
        ...

    def not_again(self, why: str) -> None:
        """It cannot be sent once more, because of what the agent has done: see `anew`."""
        ...

    def accepted(self) -> None:
        """A message was answered."""
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
    simulator: UserSimulator | None = None
    """None: nobody can play the user."""
    patience: Patience | None = None
    """None: a refusal is an error at once."""
    note_down: Callable[[Checkpoint], None] | None = None
    """Keeps what a later start of the run needs to go on after the latest turn; None: nobody."""
    notify: Callable[[TrialEvent], None] = lambda _: None
