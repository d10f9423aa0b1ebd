"""Rules that rebuild, from a history, the variables a live conversation would have filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from skillup.schema.base import Model, Text, VariableName, one_of
from skillup.schema.captures import Capture
from skillup.schema.patterns import Regex


class Pairs(Model):
    """Questions that the assistant asked, in a known order, and what the user answered to each."""

    marker: Regex = Field(
        description="A regex; where an assistant's message matches, it asks: the group `question`, "
        "else the rest of the line."
    )
    fields: list[VariableName] = Field(
        min_length=1, description="The first question's answer becomes the first, and so on."
    )
    default: Text | None = Field(
        None, description="For what was not answered; without it, that is an error."
    )
    pending: VariableName | None = Field(
        None, description="Gets the question that is still open; empty if there is none."
    )
    pending_field: VariableName | None = Field(
        None, description="Gets the name of the field that the open question asks for."
    )

    @model_validator(mode="after")
    def _different(self) -> Pairs:
        names = [*self.fields, *(n for n in (self.pending, self.pending_field) if n is not None)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"`{twice}` is named twice || give each value a name of its own")
        return self


class Reconstruct(Model):
    """One rule: a capture over the whole history, or pairs of questions and answers."""

    capture: Capture | None = Field(None, description="A value from any of the messages.")
    role: Literal["user", "assistant", "any"] = Field(
        "any", description="capture: whose messages are looked at."
    )
    take: Literal["first", "last", "last_message"] = Field(
        "last",
        description="capture: of several messages that match, which counts; last_message: only the "
        "very last one is looked at.",
    )
    pairs: Pairs | None = Field(None, description="Questions and their answers, by a marker.")

    @model_validator(mode="after")
    def _one(self) -> Reconstruct:
        one_of(self, ("capture", "pairs"), what="a rule of `reconstruct`")
        if self.pairs is not None and {"role", "take"} & self.model_fields_set:
            raise ValueError("`role` and `take` belong to a `capture` || leave them out here")
        if self.capture is not None and self.capture.jsonpath is not None:
            raise ValueError("a `jsonpath` over a history || put it on a message of the history")
        return self

    def variables(self) -> Iterator[str]:
        """The names that the rule gives a value to."""
        if self.capture is not None:
            yield self.capture.variable
        if self.pairs is not None:
            yield from self.pairs.fields
            yield from (n for n in (self.pairs.pending, self.pairs.pending_field) if n is not None)
