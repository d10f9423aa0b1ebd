"""What those who watch a trial are told."""

from __future__ import annotations

from skillup.engines.base import ItemWatcher
from skillup.engines.events import Transcript
from skillup.schema.record import Usage
from skillup.trial import TrialEvent
from skillup.trial.request import AgentWatcher, spent_in
from tests.support.records import make_turn


def test_every_item_of_a_transcript_is_told_as_it_comes() -> None:
    told: list[TrialEvent] = []
    watcher = AgentWatcher("job", told.append)
    transcript = Transcript(watcher)
    transcript.message("Hi")
    transcript.call("1", "shell", "shell", {"command": "ls"})
    transcript.result("1", "success", "a")
    transcript.notice("slow")

    assert isinstance(watcher, ItemWatcher)
    assert [event.item for event in told if event.item is not None] == transcript.items
    assert [event.text for event in told if event.kind == "activity"] == ["writes", "shell ls"]


def test_long_texts_are_cut_for_the_eye_and_not_in_the_record() -> None:
    told: list[TrialEvent] = []
    transcript = Transcript(AgentWatcher("job", told.append))
    transcript.call("1", "write", "write", {"content": "x" * 100_000, "mode": 7})
    transcript.result("1", "success", "y" * 100_000)

    for event in told:
        assert len(str(event)) < 20_000
    assert transcript.items[1].tool_result is not None
    assert len(transcript.items[1].tool_result.content) == 100_000


def test_what_a_turn_took_is_that_of_all_its_messages() -> None:
    usage = Usage(input_tokens=10, output_tokens=5)
    turn = make_turn(output_tokens=7, cost_usd=0.5)
    follow_up = make_turn(cost_usd=0.25).model_copy(update={"usage": usage})

    assert spent_in(turn.model_copy(update={"follow_ups": [follow_up]})) == (22, 0.75)


def test_what_was_not_told_is_not_zero() -> None:
    assert spent_in(make_turn()) == (None, None)
