"""Which turns a check is asked of, and whether they can be asked at all.

Only completed turns can: what a turn would have said, had it been held to its end, nobody knows.
So a check of a missing, skipped, failed or errored turn fails, and so does its negation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from skillup.checks.context import CheckContext
from skillup.schema.record import Record, TurnRecord

CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a check looks."""

    label: str
    """``turn 2`` or ``conversation``."""
    turns: tuple[TurnRecord, ...]
    turn: TurnRecord | None
    """The one turn; None: the conversation."""
    problem: str | None
    """Why it cannot be asked; None: it can."""


def resolve(context: CheckContext, number: int | Literal["last"] | None) -> Scope:
    """The turn called `number`; without one, the context's turn; without that, all turns."""
    if number == "last":
        return _last(context.record)
    if number is None or (context.turn is not None and context.turn.turn_number == number):
        # The context's own object wins: while its gate is asked, a turn is not in the record yet.
        if context.turn is None:
            return _conversation(context.record)
        return _one_turn(context.record, context.turn)
    turn = _by_number(context.record, number)
    if turn is None:
        why = f"there is no turn {number}; turns held: {len(context.record.turns)}"
        return Scope(f"turn {number}", (), None, why)
    return _every_answer(turn, _one_turn(context.record, turn).problem)


def _last(record: Record) -> Scope:
    if not record.turns:
        return Scope("last turn", (), None, "no turn was held")
    return _every_answer(record.turns[-1], None)


def _every_answer(turn: TurnRecord, problem: str | None) -> Scope:
    """A turn that is named from outside: with its follow-ups."""
    steps = tuple(turn.executed())
    return Scope(f"turn {turn.turn_number}", steps, turn, problem or _first_problem(steps))


def _by_number(record: Record, number: int) -> TurnRecord | None:
    return next((turn for turn in record.turns if turn.turn_number == number), None)


def _one_turn(record: Record, turn: TurnRecord) -> Scope:
    problem = None if turn.status == "completed" else _problem(turn)
    if problem is None and record.execution_mode == "single_shot":
        problem = "the conversation was held as one message (single_shot): it has no turns"
    return Scope(f"turn {turn.turn_number}", (turn,), turn, problem)


def _conversation(record: Record) -> Scope:
    turns: list[TurnRecord] = []
    for turn in record.turns:
        turns.extend(turn.executed() if turn.follow_ups else (turn,))
    if record.skipped is not None:
        problem: str | None = f"the case was skipped: {record.skipped}"
    elif record.error is not None:
        problem = f"the case ended in an error ({record.error.kind}): {record.error.message}"
    elif not turns:
        problem = "no turn was held"
    else:
        problem = _first_problem(turns)
    return Scope(CONVERSATION, tuple(turns), None, problem)


def _first_problem(turns: Iterable[TurnRecord]) -> str | None:
    return next((_problem(turn) for turn in turns if turn.status != "completed"), None)


def _problem(turn: TurnRecord) -> str | None:
    """Why a turn that was not held to its end cannot be asked."""
    number = turn.turn_number
    if turn.status == "error":
        kind = f" ({turn.error.kind})" if turn.error is not None else ""
        return f"turn {number} ended in an error{kind}"
    said = "was skipped" if turn.status == "skipped" else "failed"
    return f"turn {number} {said}" + (f": {turn.reason}" if turn.reason else "")
