"""What whoever plays the user answers: a message, or that the conversation is over."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from skillup.judges.reading.answer_fields import AnswerForm
from skillup.judges.strict_json import DoubtfulJsonError, only_object
from skillup.trial.simulator import SimulatorMessage


class Line(AnswerForm):
    """The user's next message."""

    message: str = Field(min_length=1, description="What the user says next, word for word.")


class Move(AnswerForm):
    """The user's next message, or the end of the conversation: with a `stop`, nothing is sent."""

    reason: str = Field("", description="In one sentence: why it is over. Empty with a message.")
    stop: Literal["completed", "impossible"] | None = Field(
        None,
        description="completed: the user has got what they wanted; impossible: they cannot get it. "
        "Null if the user says something.",
    )
    message: str | None = Field(
        None, description="What the user says next, word for word. Null with `stop`."
    )

    @model_validator(mode="after")
    def _one(self) -> Move:
        if self.stop is None and not (self.message or "").strip():
            raise ValueError("give a `message` that is not empty, or a `stop`")
        return self


Form = type[Line] | type[Move]


def form_of(may_stop: bool) -> Form:
    """The form of the answer that is asked for."""
    return Move if may_stop else Line


def as_message(move: BaseModel) -> SimulatorMessage:
    """The answer as the trial knows it."""
    if isinstance(move, Move) and move.stop is not None:
        return SimulatorMessage(stop=move.stop, reason=" ".join(move.reason.split()))
    text = move.message if isinstance(move, Line | Move) else None
    return SimulatorMessage(text=text)


class MalformedMoveError(Exception):
    """An agent's answer has not the form that was asked for; the message says what is wrong."""


def read_move(text: str, form: Form) -> BaseModel:
    """The one JSON object that is an agent's message. Raises MalformedMoveError."""
    try:
        found = only_object(text)
    except DoubtfulJsonError as doubt:
        raise MalformedMoveError(str(doubt)) from None
    try:
        return form.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise MalformedMoveError(f"{where}: {first['msg']}" if where else first["msg"]) from error
