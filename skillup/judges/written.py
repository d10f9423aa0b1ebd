"""Which turns a case writes down: those of a record beyond them are not judged by it."""

from __future__ import annotations

from skillup.schema.case import Case
from skillup.schema.record import Record
from skillup.schema.simulation import lead_of


def written_turns(case: Case) -> int | None:
    """How many turns `case` writes down; None where what took place decides how many there are.

    That is so where a simulated user leads, and for a conversation that is only judged.
    """
    if case.input.turns is not None:
        return len(case.input.turns)
    return 1 if case.input.prompt is not None and lead_of(case) is None else None


def as_written(record: Record, case: Case) -> Record:
    """`record` without the turns that `case`, edited since or another's, does not have."""
    wanted = written_turns(case)
    if wanted is None or len(record.turns) <= wanted:
        return record
    return record.model_copy(update={"turns": record.turns[:wanted]})
