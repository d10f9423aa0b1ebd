"""The seam between a conversation and whoever plays its user: what is asked, what is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from skillup.schema.conversation import Chatter
from skillup.schema.record import ErrorKind, HistoryItem, SimulatorInfo, TurnError

THE_RUNS_END: frozenset[ErrorKind] = frozenset({"cancelled", "quota"})
"""Errors of a user's that say so: the trial is left where it is, as if its own message met them."""


@dataclass(frozen=True, slots=True)
class SimulatorPart:
    """All that the simulated user is given for its next message; nothing of how it is judged."""

    chatter: Chatter | None = None
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


class UserSimulator(Protocol):
    """Plays the user of one trial."""

    async def speak(self, part: SimulatorPart) -> SimulatorMessage:
        """The user's next message. What goes wrong is in the answer, never raised.

        It is an error of the kind `judge`, or one of `THE_RUNS_END`.
        """
        ...
