"""Which turns a case is judged by: those of a record beyond them are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skillup.schema.case import Case
from skillup.schema.conversation import PostCondition
from skillup.schema.record import Record, TurnRecord
from skillup.schema.simulation import lead_of


def written_turns(case: Case) -> int | None:
    """How many turns `case` writes down; None where what took place decides how many there are.

    That is so where a simulated user leads, and for a conversation that is only judged.
    """
    if case.input.turns is not None:
        return len(case.input.turns)
    return 1 if case.input.prompt is not None and lead_of(case) is None else None


def up_to_the_gate(
    case: Case, record: Record, fails: Callable[[TurnRecord, PostCondition], bool]
) -> Case:
    """`case` without what came of a gate that `fails` and leaves the verdict to the judges.

    The answers before it count; of a conversation whose first gate did not hold, its only answer.
    """
    turns = case.input.turns or []
    for number, (held, turn) in enumerate(zip(record.turns, turns, strict=False), start=1):
        gate = turn.post_condition
        if gate is None or gate.on_fail != "judge" or not fails(held, gate):
            continue
        first = [turn.model_copy(update={"post_condition": None, "capture": []})]
        kept = case.input.model_copy(update={"turns": turns[: number - 1] or first})
        return case.model_copy(update={"input": kept})
    return case


def as_written(record: Record, case: Case) -> Record:
    """`record` as `case` has it, which was edited since, or is another's.

    Without the turns that the case does not have, and with the values of `vars` that the case gives
    anew.
    """
    update: dict[str, Any] = {}
    wanted, held = written_turns(case), record.case.get("vars") or {}
    if wanted is not None and len(record.turns) > wanted:
        update["turns"] = record.turns[:wanted]
    known = record.initial_variables
    anew = {k: v for k, v in case.vars.items() if k not in known or held.get(k) != v}
    if anew:
        update["initial_variables"] = {**known, **anew}
    return record.model_copy(update=update) if update else record
