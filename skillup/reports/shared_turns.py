"""What a reader of the table should know of turns that several trials share."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.schema.grade import Grade


def shared_note(grades: Sequence[Grade]) -> str | None:
    """One line on the turns that were held once for several trials; None if there are none."""
    sharing = sum(any(turn.held_by is not None for turn in grade.turns) for grade in grades)
    if not sharing:
        return None
    took = f"{sharing} trials took" if sharing != 1 else "1 trial took"
    return f"{took} over turns that were held once for several: tokens and cost count them once"
