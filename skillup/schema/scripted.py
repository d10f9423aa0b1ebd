"""Scripts: of the `scripted` engine, a small agent that really acts, and of a written-down judge.

Placeholders are filled by the agent in ``say``, ``run``, ``write``, ``read``, ``skill`` and
``remember``. One that has no value (no such turn, group or memory) is an error of the turn; other
text in double braces is left alone.

    {{user}}               the message            {{turn}}    its number within the session
    {{turns.N.user}}       an earlier message of this very session,
    {{turns.N.answer}}     and the answer to it: only a true resume can know them
    {{history.N.user}}     the n-th message of `input.history`, which no turn is counted for,
    {{history.N.answer}}   and the last answer to it
    {{remember.NAME}}      what a `remember` step of this session kept
    {{match.1}}            a group of `when`, by number or by name
    {{output}}             what the latest `run`, `read` or `skill` step gave
    {{system}}             the system prompt that was given; empty if none was
    {{skills}}             the installed skills' names, comma-separated; empty if there are none
"""

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from skillup.schema.base import (
    Bool,
    Fraction,
    Int,
    Model,
    NonEmptyText,
    NonNegativeInt,
    PositiveInt,
    Seconds,
    Short,
    Text,
    TurnNumber,
    VariableName,
    one_of,
    optional,
)
from skillup.schema.patterns import Regexes


class WriteFile(Model):
    """A file the agent writes."""

    path: NonEmptyText = Field(description="Relative to the workspace.")
    content: Text = Field(description="The whole content.")


class Step(Model):
    """One thing the agent does before it answers; it is really done, and seen as a tool call."""

    say: NonEmptyText | None = optional("A message on the way.")
    run: NonEmptyText | None = optional("A shell command; a tool call of kind `shell`.")
    write: WriteFile | None = optional("Writes a file; of kind `write`.")
    read: NonEmptyText | None = optional("A file; of kind `read`.")
    skill: NonEmptyText | None = optional("Loads an installed skill; of kind `skill`.")
    remember: dict[VariableName, Text] | None = optional("Values to keep.", min_length=1)
    delay: Seconds | None = optional("Seconds to wait.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        one_of(self, ("say", "run", "write", "read", "skill", "remember", "delay"), what="a step")
        return self


class ScriptedUsage(Model):
    """The token counts that the agent reports for a turn."""

    input_tokens: NonNegativeInt = Field(100, description="All input, cached tokens included.")
    cached_input_tokens: NonNegativeInt = Field(0, description="Of these, read from the cache.")
    output_tokens: NonNegativeInt = Field(20, description="All output.")


class Misbehave(Model):
    """Faults on request, so that error handling can be tested with a real process."""

    exit_code: Int | None = optional("End with this code; below 0: by that signal.")
    error: (
        Literal["auth", "rate_limit", "quota", "overloaded", "model_error", "max_turns"] | None
    ) = optional("Report this error.")
    message: Text | None = optional("What that error says, such as `try again in 5 s`.")
    garbage: Bool = Field(False, description="Print no whole line of JSON, nor a result.")
    no_result: Bool = Field(False, description="End with code 0 and no result event.")
    hang: Bool = Field(False, description="Never answer.")
    ignore_signals: Bool = Field(False, description="Ignore SIGINT and SIGTERM.")
    orphan: Bool = Field(False, description="Leave a child running in a session of its own.")
    forget: Bool = Field(False, description="Lose the session's earlier turns.")
    new_session: Bool = Field(False, description="Answer from a new session instead.")
    flood_bytes: NonNegativeInt = Field(0, description="Print so much first.")
    probability: Fraction = Field(1.0, description="How often it happens.")
    times: PositiveInt | None = optional("Only the first so many times.")


class Reply(Model):
    """One rule: to which messages it answers, and how. The first rule that applies is taken."""

    turn: TurnNumber | None = optional("Only as the session's n-th turn.")
    when: NonEmptyText | None = optional("Only if this regex matches; case is ignored.")
    needs_skill: NonEmptyText | None = optional("Only if this skill is installed.")
    probability: Fraction = Field(1.0, description="How often the rule applies.")
    steps: list[Step] = Field([], description="What is done before the answer.")
    say: Text = Field("", description="The answer.")
    usage: ScriptedUsage = Field(ScriptedUsage.model_construct(), description="Tokens reported.")
    misbehave: Misbehave | None = optional("A fault, for tests.")

    @field_validator("when")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error} || correct it") from error
        return value


def _replies(value: Any) -> Any:
    return {"replies": value} if isinstance(value, list) else value


class Script(Model):
    """All replies of one case (``scripted:`` takes a plain list of replies, too)."""

    replies: list[Reply] = Field(min_length=1, description="Rules, the first that applies wins.")

    @model_validator(mode="before")
    @classmethod
    def _widen(cls, value: Any) -> Any:
        return _replies(value)


ScriptOrReplies = Annotated[
    Script, BeforeValidator(_replies, json_schema_input_type=Script | list[Reply])
]


# A written-down judge, for `model: scripted:FILE`: it answers offline all that is asked of models,
# checks that read and the messages of a simulated user.


class JudgeWhen(Short):
    """Which questions a rule answers. A text alone is a regex for the `prompt`."""

    chief: ClassVar[str] = "prompt"

    system: Regexes = Field([], description="The same, for what the model is told of its task.")
    prompt: Regexes = Field([], description="Regexes that all match the question; case is ignored.")
    answer: Regexes = Field([], description="Regexes that all match the latest answer.")
    repetition: PositiveInt | None = optional("Only the n-th time of the same question.")


class JudgeRule(Model):
    """Which questions, and what is answered. The first rule that applies is taken."""

    when: JudgeWhen = Field(JudgeWhen.model_construct(), description="Default: every question.")
    answer: dict[str, Any] | None = optional("The answer; one of another form does not apply.")
    error: NonEmptyText | None = optional("In place of an answer: fail with this message.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        one_of(self, ("answer", "error"), what="a rule")
        return self


class JudgeCriterion(Model):
    """How criteria are decided, each by itself: by regexes on the answer that is judged."""

    when: Regexes = Field([], description="Regexes that all match the criterion.")
    found: Regexes = Field([], description="Met only if each of them matches the answer.")
    not_found: Regexes = Field([], description="Met only if none of them finds anything there.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if not self.found and not self.not_found:
            raise ValueError("it says nothing of the answer || add `found` or `not_found`")
        return self


class JudgeScript(Model):
    """The whole file of a written-down judge."""

    rules: list[JudgeRule] = Field([], min_length=1, description="The first that applies wins.")
    criteria: list[JudgeCriterion] = Field(
        [], min_length=1, description="For criteria that no rule answers; the first applies."
    )

    @model_validator(mode="after")
    def _any(self) -> Self:
        if not self.rules and not self.criteria:
            raise ValueError("it answers nothing || add `rules` or `criteria`")
        return self
