"""What an engine must do, and what it may be able to do: that is asked with ``isinstance``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from skillup.dataclass import frozen
from skillup.gateway.meter import Route
from skillup.process.live import LiveSlot
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.sandbox.base import NO_BOX, Box
from skillup.schema.case import UserAnswer
from skillup.schema.profile import Profile, Script
from skillup.schema.record import (
    HistoryItem,
    ProcessInfo,
    SessionFingerprint,
    Traffic,
    TranscriptItem,
    TurnError,
    Usage,
)

Progress = Callable[[str], None]
"""Called with a few words on what the agent is doing right now; its method `item`, if it has one,
with each item of the transcript."""


class RawStream(Protocol):
    """Gets what a process writes, as it comes."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class RawStreams(Protocol):
    """Where the raw streams of a trial go, by name: ``turn-NN.stdout.jsonl``."""

    def open(self, name: str) -> RawStream:
        """A new stream, in place of one of this name."""

    def set_aside(self, stem: str, as_what: str) -> None:
        """Keeps the streams of a message that does not count under other names."""

    def remove_from(self, turn: int) -> None:
        """Removes those of `turn` and later ones."""

    def copy_from(self, other: Any) -> None:
        """Has those of `other`, which are of the same kind, too."""

    def below(self, folder: str) -> RawStreams:
        """Those in a folder of it."""


class NoStreams:
    """Raw streams that nobody wants."""

    def open(self, _: str) -> NoStreams:
        return self

    def below(self, _: str) -> NoStreams:
        return self

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def set_aside(self, stem: str, as_what: str) -> None: ...
    def remove_from(self, turn: int) -> None: ...
    def copy_from(self, other: Any) -> None: ...


@frozen
class TurnRequest:
    """One user message to deliver."""

    number: int  # From 1; the number of this turn within its session
    prompt: str
    stem: str = ""  # What the names of its raw files begin with; default: ``turn-NN``
    slash_command: bool = False
    system: str | None = None  # Added to the agent's system prompt; the same on every turn
    answers: Sequence[UserAnswer] = ()  # To what the agent asks; the same on every turn
    timeout_seconds: float = 300.0
    limit: str = ""  # How messages name a limit that is not this turn's own; default: the seconds
    max_steps: int | None = None  # The most within the turn; None: the engine's own limit
    previous: SessionFingerprint | None = None  # As the turn before left it; None on the first
    sending: int = 1  # Above 1: sent again, as the provider refused it; from 1 in each attempt


@frozen
class TrialContext:
    """What stays the same for every turn of a trial."""

    profile: Profile
    workspace: Path  # The agent's working directory, real path
    home: Path  # The trial's own, for HOME and the engine's home (`isolation: clean`)
    streams: RawStreams
    environment: Mapping[str, str]  # The user's, to pick from: never passed on whole under `clean`
    extra_env: Mapping[str, str]  # Variables that suite and profile add, already filled in
    marker: str  # Identifies this trial's processes
    session_id: str  # A fresh UUID, for engines whose session id can be chosen
    skills: Mapping[str, Path] = field(default_factory=dict)  # Installed: name → directory
    version: str | None = None  # The CLI's version, as `check` found it
    script: Script | None = None  # For the `scripted` engine
    attempt: int = 1
    seed: int = 0  # For engines with chance; differs from trial to trial
    secrets: Secrets = NO_SECRETS  # Must not be shown anywhere in the run, raw streams included
    progress: Progress = lambda _: None
    gateway: Route | None = None  # Where the CLI is told that its model is; None: as ever
    live: LiveSlot | None = None  # `session: live`: where the process stays; None: one a turn
    box: Box = NO_BOX  # Where its processes run
    case_id: str = ""  # For custom engines, which are told of it
    variant: str = ""

    @property
    def temporary(self) -> Path:
        """TMPDIR. Not in the home: what is /tmp in a box must not be replaced from inside."""
        return self.home.with_name("tmp")


@frozen
class EngineTurn:
    """The result of a turn, a response or an error; or a session made without asking a model."""

    session: str | None = None  # The id of the session that it belongs to, as the agent said
    response: str = ""
    items: Sequence[TranscriptItem] = ()
    usage: Usage | None = None
    cost_usd: float | None = None
    model: str | None = None
    version: str | None = None
    fingerprint: SessionFingerprint | None = None  # The next turn is compared with this
    session_verified: bool | None = None  # Its file held the earlier turns; None: a first turn
    process: ProcessInfo | None = None
    unknown_events: int = 0
    unread_lines: int = 0  # Lines of the stream that are no JSON and may have been events
    notices: Sequence[str] = ()  # Warnings of the engine that are not failures
    traffic: Traffic | None = None  # What passed the gateway
    error: TurnError | None = None


def cost_usd(profile: Profile, model: str | None, usage: Usage | None) -> float | None:
    """By the profile's `prices`; None without a price for this model or token counts.

    By the model's name as the engine reports it, then that in the profile, then under no name.
    """
    names = (model or "", profile.model or "", "")
    price = next((profile.prices[name] for name in names if name in profile.prices), None)
    if price is None or usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
    total = max(0, usage.input_tokens - cached - written) * price.input
    total += usage.output_tokens * price.output
    total += cached * (price.input if price.cached_input is None else price.cached_input)
    total += written * (price.input if price.cache_write is None else price.cache_write)
    return total / 1_000_000


@frozen
class Availability:
    """Whether an engine can be run here; `doctor` shows it, a run asks before its first turn."""

    found: bool
    command: tuple[str, ...]
    version: str | None = None
    login: str | None = None  # How it would log in, such as `login file`; None: it would not
    problem: TurnError | None = None
    notes: tuple[str, ...] = ()
    can_fork: bool | None = None  # As its agent told; None: nobody was asked


class Engine(Protocol):
    """Speaks one CLI agent's protocol."""

    name: str

    async def start(self, turn: TurnRequest, trial: TrialContext) -> EngineTurn:
        """Run the first turn of a new session."""

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        """Whether the engine could be run, without asking a model anything."""

    def skill_directories(self) -> Sequence[str]:
        """Where, relative to the workspace, this engine looks for skills."""


@runtime_checkable
class AddressedEngine(Protocol):
    """An engine whose CLI can be told to ask its model at `TrialContext.gateway`."""

    def model_address(self, trial: TrialContext) -> tuple[str, Collection[str | None]] | None:
        """Where it asks else, and in which variables a key for that may be; None: only there."""


@runtime_checkable
class SlashCommands(Protocol):
    """An engine whose CLI has commands of its own, such as ``/compact``."""

    def is_slash_command(self, prompt: str) -> bool: ...


@runtime_checkable
class SessionResumer(Protocol):
    """An engine that can go on with a session."""

    async def resume(self, session: str, turn: TurnRequest, trial: TrialContext) -> EngineTurn: ...


@runtime_checkable
class HistorySeeder(Protocol):
    """An engine that can make a session which holds a conversation that never ran."""

    def seeding_problem(self, version: str | None) -> str | None:
        """Why sessions of the CLI's `version` cannot be written; None: their format is known."""

    async def seed(self, history: Sequence[HistoryItem], trial: TrialContext) -> EngineTurn:
        """The session `trial.session_id` that holds `history`, in order; no model is asked.

        Every tool call has an id, and a result that follows it; one whose `name` is empty is of
        the portable `kind`, for the engine's own tool of that kind.
        """


@runtime_checkable
class SessionForker(Protocol):
    """An engine that can copy a session under a new id; the parent's stays as it is."""

    async def fork(self, session: str, parent: TrialContext, child: TrialContext) -> EngineTurn:
        """A copy under the id `child.session_id`; in it the parent's paths are the child's."""


@runtime_checkable
class SchemaAnswers(Protocol):
    """An engine whose answers can be held to a JSON Schema."""

    def answering(
        self, profile: Profile, schema: dict[str, Any], directory: Path, *, own_skills: bool
    ) -> Profile:
        """`profile` with that added; its files go to `directory`.

        With `own_skills` the agent has skills that it may use; else it needs none.
        """
