"""What a reader of the table should know of turns that several trials share."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.schema.grade import Grade


def shared_note(grades: Sequence[Grade]) -> str | None:
    """One line on the turns that were held once for several trials; None if there are none."""
    sharing = sum(any(turn.held_by is not None for turn in grade.turns) for grade in grades)
    if not sharing:
        return None
    share = f"{sharing} trials share" if sharing != 1 else "1 trial shares"
    return f"{share} turns with another trial: they were held once, and tokens and cost count once"
