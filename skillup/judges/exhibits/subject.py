"""Which part of the record a judge is asked about, and whether it can be asked at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillup.checks import CheckContext
from skillup.checks.files import NO_SNAPSHOT
from skillup.checks.scope import resolve
from skillup.schema.record import FileState, Record, TurnRecord


@dataclass(frozen=True, slots=True)
class Exhibited:
    """What a judge is asked about: one turn, or the conversation."""

    record: Record
    label: str
    """``turn 2`` or ``conversation``."""
    number: int | None
    """The turn's; None: the conversation."""
    turns: tuple[TurnRecord, ...]
    """Everything that was held up to the point in question, follow-ups too, in order."""
    files: Mapping[str, FileState]
    """The workspace at that point."""
    notes: tuple[str, ...] = ()

    @property
    def last(self) -> TurnRecord:
        """The turn whose answer and workspace count."""
        return self.turns[-1]


@dataclass(frozen=True, slots=True)
class NothingToJudge:
    """There is nothing to look at."""

    label: str
    why: str
    broken: bool = False
    """True: that is a fault of the record, not of the agent."""


def exhibited(context: CheckContext) -> Exhibited | NothingToJudge:
    """The subject of `context`: its turn with all that came before it, or the conversation."""
    scope = resolve(context, None)
    if scope.problem is not None:
        return NothingToJudge(scope.label, scope.problem)
    record, turn = context.record, context.turn
    turns = scope.turns if turn is None else (*_before(record, turn), turn)
    number = None if turn is None else turn.turn_number
    files = turns[-1].files
    if files is not None:
        return Exhibited(record, scope.label, number, turns, files)
    if all(step.source == "history" for step in turns):
        note = "the conversation took place elsewhere: it has no workspace, an empty one was shown"
        return Exhibited(record, scope.label, number, turns, {}, (note,))
    return NothingToJudge(scope.label, NO_SNAPSHOT, broken=True)


def _before(record: Record, turn: TurnRecord) -> list[TurnRecord]:
    """What was held before `turn`, which may be a follow-up, or not be in the record yet."""
    before: list[TurnRecord] = []
    for held in record.turns:
        for step in held.executed():
            place = (step.turn_number, step.asked_by)
            if place == (turn.turn_number, turn.asked_by) or place[0] > turn.turn_number:
                return before
            before.append(step)
    return before
