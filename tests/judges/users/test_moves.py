"""The form of what whoever plays the user answers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from skillup.judges.users.moves import (
    Line,
    MalformedMoveError,
    Move,
    as_message,
    form_of,
    read_move,
)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"message": " "},
        {"message": "Hello", "stop": "completed"},
        {"stop": "bored"},
        {"reason": "I do not know"},
    ],
)
def test_a_move_is_a_message_or_a_stop_and_never_both(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Move.model_validate(given)


def test_only_where_it_may_stop_the_form_has_a_stop() -> None:
    assert "stop" in form_of(True).model_fields
    assert "stop" not in form_of(False).model_fields


def test_a_stop_has_its_reason_on_one_line() -> None:
    said = as_message(Move(stop="impossible", reason="It was\nrefused."))
    assert (said.text, said.stop, said.reason) == (None, "impossible", "It was refused.")


@pytest.mark.parametrize(
    "text",
    [
        '{"message": "Hello"}',
        'Here it is:\n```json\n{"message": "Hello"}\n```',
        'Not {this}, but {"message": "Hello"}',
    ],
)
def test_the_last_object_of_an_agents_answer_is_its_move(text: str) -> None:
    assert as_message(read_move(text, Line)).text == "Hello"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Hello", "no JSON object"),
        ('{"text": "Hello"}', "message"),
        ('{"message": ""}', "message"),
        ('{"message": {"a": 1}', "message"),
        ('{"message": ["', "no JSON object"),
    ],
)
def test_what_has_not_the_form_is_refused_with_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(MalformedMoveError, match=what):
        read_move(text, Line)
