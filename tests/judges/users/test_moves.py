"""The form of what whoever plays the user answers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from skillup.judges.models.question import MalformedAnswerError, read_answer
from skillup.simulator.prompt import TranscriptLine, UserReply, as_message


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"message": " "},
        {"stop": "bored"},
        {"reason": "I do not know"},
    ],
)
def test_a_move_is_a_message_or_a_stop(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        UserReply.model_validate(given)


def test_a_stop_ends_the_conversation_and_a_message_beside_it_is_not_sent() -> None:
    """J15: it was an ERROR."""
    said = as_message(read_answer('{"message": "Thanks!", "stop": "completed"}', UserReply))
    assert (said.text, said.stop) == (None, "completed")


def test_a_stop_has_its_reason_on_one_line() -> None:
    said = as_message(UserReply(stop="impossible", reason="It was\nrefused."))
    assert (said.text, said.stop, said.reason) == (None, "impossible", "It was refused.")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Hello", "no JSON object"),
        ('{"text": "Hello"}', "message"),
        ('{"message": ""}', "message"),
        ('{"message": {"a": 1}', "not one JSON object"),
        ('{"message": ["', "not one JSON object"),
        ('{"message": "a", "message": "b"}', "twice"),
        ('{"message": "a"} {"message": "b"}', "not one JSON object"),
        ('They said {"message": "b"} to me.', "other text"),
        ('{"message": "a"}\n```json\n{"message": "b"}\n```', "not one JSON object"),
        ('x {"message": "a"}\n```json\n{"message": "b"}\n```', "other text"),
    ],
)
def test_what_has_not_the_form_is_refused_with_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(MalformedAnswerError, match=what):
        read_answer(text, TranscriptLine)
