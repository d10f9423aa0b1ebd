"""Captures: values that are taken out of a turn, or of a message, for later."""

from __future__ import annotations

from pydantic import Field, model_validator

from skillup.schema.base import Model, Text, VariableName, one_of
from skillup.schema.jsonpaths import JsonPath
from skillup.schema.patterns import CapturePattern


class Capture(Model):
    """A value taken out of a turn, for use as ``<<variable>>`` later."""

    variable: VariableName = Field(description="The name to keep it under.")
    pattern: CapturePattern | None = Field(
        None, description="A regex on the answer: its group `value`, else its only group."
    )
    jsonpath: JsonPath | None = Field(None, description="A JSONPath; the root is the turn.")
    default: Text | None = Field(None, description="Used if nothing is found, or it is empty.")

    @model_validator(mode="after")
    def _one(self) -> Capture:
        one_of(self, ("pattern", "jsonpath"), what="a capture")
        return self
