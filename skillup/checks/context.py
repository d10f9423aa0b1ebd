"""What a check is asked of: the context handed in from above, and the subject it comes down to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole
from skillup.schema.record import FileState, Record, ToolCall, TurnRecord

ReadFile = Callable[[FileState], bytes | None]
"""The bytes of a stored file, found by its hash; None if they were not kept."""


Ask = Callable[[Check, "CheckContext", CheckRole], CheckResult]
"""Evaluates a check that only a judge can evaluate; also told what the check is part of."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The record, and the turn in question (None: the whole conversation)."""

    record: Record
    turn: TurnRecord | None
    read_file: ReadFile
    ask: Ask | None = None
    """For the checks that need a judge (rubric, relevance, …); None: they cannot be evaluated."""
    withheld: str | None = None
    """Why no judge is asked, as what it says would change nothing; None: they are asked."""

    def about(self, turn: TurnRecord | None) -> CheckContext:
        """The same, with another turn in question."""
        return CheckContext(self.record, turn, self.read_file, self.ask, self.withheld)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a check may look at, once it is known that it may look: completed turns, at least one.

    One turn for a check of a turn, all of them for a check of the conversation. The workspace is
    then that of the last.
    """

    record: Record
    turns: tuple[TurnRecord, ...]
    read_file: ReadFile
    case_sensitive: bool
    answered: TurnRecord | None = None
    """The turn whose answer is read; None: the last."""

    @property
    def last(self) -> TurnRecord:
        """The turn whose workspace and process count."""
        return self.turns[-1]

    @property
    def answer(self) -> str:
        """What the agent said: its last message, or that of the turn in question."""
        return (self.answered or self.turns[-1]).response

    @property
    def calls(self) -> list[ToolCall]:
        """Every tool call, in order."""
        if len(self.turns) == 1:
            return self.turns[0].tool_calls
        return [call for turn in self.turns for call in turn.tool_calls]
