"""What is said in a case: turns, their gates and captures, history, the simulated user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from skillup.schema.base import (
    Bool,
    Int,
    Model,
    NonEmptyText,
    PositiveInt,
    Seconds,
    Text,
    Texts,
    VariableName,
    one_of,
)
from skillup.schema.check_specs import ToolKind
from skillup.schema.checks import Check, CheckSet
from skillup.schema.patterns import CapturePattern, JsonPath, Regex

# Captures: values that are taken out of a turn, or of a message, for later.


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


# Rules that rebuild, from a history, the variables a live conversation would have filled.


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


def _turns(value: Any) -> Any:
    """A bare string is a turn with that message."""
    if isinstance(value, list):
        return [{"content": item} if isinstance(item, str) else item for item in value]
    return value


class PostCondition(CheckSet):
    """A gate after a turn: if it does not hold, the conversation does not go on."""

    on_fail: Literal["fail", "skip_remaining", "judge"] = Field(
        "fail",
        description="fail: the case fails; skip_remaining: the case is skipped; judge: no more is "
        "sent, and the checks and judges of the conversation decide on what came before.",
    )

    @model_validator(mode="after")
    def _not_empty(self) -> PostCondition:
        if not any(True for _ in self.given()):
            raise ValueError("there is no condition || add one, such as `must_contain_any: [...]`")
        return self


class Turn(Model):
    """One user message and what must hold after the agent has answered it."""

    role: Literal["user"] = Field("user", description="Always `user`.")
    content: Text | None = Field(None, description="The message; `<<name>>` is filled in.")
    respond: NonEmptyText | None = Field(
        None, description="An instruction to the simulated user, who writes the message."
    )
    literal: Bool = Field(
        False, description="Its message and its `expected_output` are no templates."
    )
    slash_command: Bool = Field(
        False, description="The message is a command of the CLI, not text for the model."
    )
    timeout_seconds: Seconds | None = Field(None, description="How long the turn may take.")
    post_condition: PostCondition | None = Field(None, description="The gate after the turn.")
    capture: list[Capture] = Field(default_factory=list, description="Values for later turns.")
    expected_output: NonEmptyText | None = Field(
        None, description="What a good answer says; a model judge compares."
    )
    assertions: list[Check] = Field(default_factory=list, description="This turn's checks.")
    branches: list[Branch] = Field(
        default_factory=list, description="Other ways to go on from here, each from a fork."
    )

    @model_validator(mode="after")
    def _has_message(self) -> Turn:
        one_of(self, ("content", "respond"), what="a turn")
        if self.content is not None and not self.content.strip():
            raise ValueError("the message is empty || write what the user says")
        return self

    def checks(self) -> list[Check]:
        """Its assertions; `expected_output` is one more, after them: places stay as written."""
        if self.expected_output is None:
            return self.assertions
        literal = {"literal": True} if self.literal else {}
        return [*self.assertions, Check(expected_output=self.expected_output, **literal)]


class Branch(Model):
    """Another way in which a conversation goes on, from a fork of its session and workspace."""

    name: NonEmptyText = Field(description="A short name; the case's results are told apart by it.")
    turns: Annotated[
        list[Turn], BeforeValidator(_turns, json_schema_input_type=list[Turn | str])
    ] = Field(min_length=1, description="The turns after the fork, in order.")
    assertions: list[Check] = Field(
        default_factory=list, description="Checks of the whole conversation on this branch."
    )


class HistoryToolCall(Model):
    """A call of a tool that the assistant made earlier."""

    id: NonEmptyText | None = Field(None, description="Default: one is made up.")
    name: NonEmptyText | None = Field(None, description="The engine's own name of the tool.")
    kind: ToolKind | None = Field(None, description="A portable kind instead of a name.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="As the agent gave them.")

    @model_validator(mode="after")
    def _one(self) -> HistoryToolCall:
        one_of(self, ("name", "kind"), what="a tool call")
        return self


class HistoryMessage(Model):
    """One message of a conversation that took place earlier."""

    role: Literal["user", "assistant", "tool"] = Field(
        description="Who said it; `tool`: what a call gave back."
    )
    content: Text = Field("", description="What was said, or what the tool gave back.")
    literal: Bool = Field(False, description="What was said is no template.")
    tool_calls: list[HistoryToolCall] = Field(
        default_factory=list, description="assistant: the calls it made, after what it said."
    )
    call_id: NonEmptyText | None = Field(
        None, description="tool: the call it answers; default: the first that has no result yet."
    )
    status: Literal["success", "error"] = Field("success", description="tool: how it went.")
    message_index: Int | None = Field(None, description="Its place, where the list is unsorted.")
    capture: list[Capture] = Field(default_factory=list, description="Values for later turns.")


class Persona(Model):
    """The simulated user's part; `<<name>>` is filled in."""

    role: NonEmptyText | None = Field(None, description="Who the user is.")
    objective: NonEmptyText = Field(description="What the user wants to reach.")
    knowledge: Texts | dict[str, Any] = Field(
        default_factory=list, description="What the user knows and tells if asked."
    )
    behavior: Texts = Field(default_factory=list, description="How the user behaves.")


class Conversation(Model):
    """A conversation led by a simulated user."""

    mode: Literal["chatter_agent"] | None = Field(None, description="Read, without effect.")
    max_turns: PositiveInt = Field(description="The most turns it may take.")
    persona: Persona = Field(
        validation_alias=AliasChoices("persona", "chatter"),
        description="The user's part (`chatter` is read too).",
    )


class Input(Model):
    """What the agent is told: one of `prompt`, `turns`, `conversation`, `transcript`."""

    system: NonEmptyText | None = Field(None, description="Appended to the system prompt.")
    literal: Bool = Field(False, description="`system` and `prompt` are no templates.")
    history: list[HistoryMessage] = Field(
        default_factory=list, description="Put into the session before the first live turn."
    )
    reconstruct: list[Reconstruct] = Field(
        default_factory=list, description="Variables that are rebuilt from the history."
    )
    message_index: Int | None = Field(
        None, description="The place of the first live message; history from there on is left out."
    )
    prompt: Text | None = Field(None, description="One turn.")
    turns: (
        Annotated[list[Turn], BeforeValidator(_turns, json_schema_input_type=list[Turn | str])]
        | None
    ) = Field(None, min_length=1, description="Several turns, in order.")
    conversation: Conversation | None = Field(None, description="A simulated user leads.")
    transcript: list[HistoryMessage] | None = Field(
        None, min_length=1, description="A conversation that took place: judged, not held."
    )

    @model_validator(mode="after")
    def _one(self) -> Input:
        one_of(self, ("prompt", "turns", "conversation", "transcript"), what="`input`")
        if self.transcript is not None and self.history:
            fix = "put it at the transcript's beginning"
            raise ValueError(f"`history` beside `transcript` || {fix}")
        if self.prompt is not None and not self.prompt.strip():
            raise ValueError("the prompt is empty || write what the user says")
        return self

    def all_turns(self) -> list[Turn]:
        """The scripted turns; `prompt` is a conversation of one turn."""
        if self.turns is not None:
            return self.turns
        return [Turn(content=self.prompt, literal=self.literal)] if self.prompt is not None else []


Turn.model_rebuild()
