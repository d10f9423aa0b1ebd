"""What is told of turns that several trials share."""

from __future__ import annotations

from skillup.judges import grade_record
from skillup.reports.phrases import shared_note
from skillup.schema.grade import Grade
from tests.support.records import make_record, make_turn, read_file


def grade(*held_by: str | None) -> Grade:
    turns = [make_turn("x").model_copy(update={"held_by": job}) for job in held_by]
    case = {"id": "c", "input": {"turns": ["x", "y"]}}
    record = make_record(*turns).record.model_copy(update={"case": case})
    return grade_record(record, read_file)


def test_nothing_is_told_where_nothing_is_shared() -> None:
    assert shared_note([grade(None, None)]) is None
    assert shared_note([]) is None


def test_the_trials_that_took_turns_over_are_counted() -> None:
    own, other = grade(None, None), grade("a/p/with_skill/1", None)
    assert (shared_note([own, other]) or "").startswith("1 trial shares turns with another")
    assert (shared_note([own, other, other]) or "").startswith("2 trials share turns with another")
