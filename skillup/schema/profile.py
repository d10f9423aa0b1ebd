"""A profile (`engines/*.yaml`): how an engine is run; and the scripts of the `scripted` engine."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from skillup.adapters import ADAPTERS
from skillup.schema.base import (
    Bool,
    Choice,
    Fraction,
    Int,
    Model,
    Names,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    PositiveInt,
    Seconds,
    Text,
    VariableName,
    optional,
)
from skillup.schema.engine import AgentDescription, CustomEngine

DESCRIBED = "command"
"""The engine of a profile that describes its agent itself."""
Permission = Literal["full", "edits", "read_only"]
Isolation = Literal["clean", "shared"]


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"(?=.*[0-9])(?=.*[a-z]).{21,}")


def _no_key(value: str) -> str:
    """Refuse what is a key and not the name of a variable; the message does not repeat it."""
    if _NAME.fullmatch(value) and not _KEY.fullmatch(value):
        return value
    raise ValueError(
        "this is not the name of a variable || write the name of the variable that holds the key, "
        "such as ANTHROPIC_API_KEY; a key itself has no place in a file"
    )


VariableOfKey = Annotated[NonEmptyText, AfterValidator(_no_key)]


class Price(Model):
    """USD per million tokens."""

    input: NonNegative = Field(description="Input tokens that were not cached.")
    cached_input: NonNegative | None = optional("Default: as `input`.")
    cache_write: NonNegative | None = optional("Default: as `input`.")
    output: NonNegative = Field(description="Output tokens, reasoning included.")


def _by_model(value: Any) -> Any:
    """Prices without a model's name are those of every model."""
    if isinstance(value, dict) and not all(isinstance(one, dict | Price) for one in value.values()):
        return {"": value}
    return value


class Profile(Model):
    """How one engine is run. Every key has a default that the adapter supplies."""

    name: NonEmptyText = Field("", description="How it is called in results.")
    engine: NonEmptyText = Field(
        description=f"The adapter: {', '.join(ADAPTERS)}, command; or the file of a description."
    )
    agent: AgentDescription | None = optional("With `engine: command`: what its CLI speaks.")
    custom: CustomEngine | None = optional("With `engine: command`: a custom engine of skill-up's.")
    command: Names | None = optional(
        "A name on `PATH`, a path, or a list with arguments.", min_length=1
    )
    model: NonEmptyText | None = optional("As the CLI takes it.")
    base_url: Text | None = optional("The model's address, as the CLI takes it.")
    api_key_env: VariableOfKey | None = optional("The variable that holds the key.")
    gateway: Literal["on", "off"] = Field("on", description="on: skillup has the key, and counts.")
    permission: Permission = Field("full", description="The same on every turn.")
    isolation: Isolation = Field("clean", description="clean: a home of its own for each trial.")
    session: Literal["resume", "live"] = Field(
        "resume", description="resume: a process a turn; live: one for the conversation."
    )
    args: list[Text] = Field([], description="More arguments, as they are, on every turn.")
    env: dict[str, Text] = Field({}, description="More variables; ${VAR} is filled in.")
    timeout_seconds: Seconds = Field(300.0, description="A turn's.")
    max_turns: PositiveInt | None = optional("The agent's own steps within a turn.")
    retries: NonNegativeInt = Field(2, description="The CLI's own, within a turn.")
    prices: Annotated[
        dict[str, Price],
        BeforeValidator(_by_model, json_schema_input_type=dict[str, Price] | Price),
    ] = Field({}, description="For every model, or by model name.")


# What the `scripted` engine does. The agent fills in the placeholders of `docs/case-language.md` in
# ``say``, ``run``, ``write``, ``read``, ``skill`` and ``remember``. One that has no value (no such
# turn, group or memory) is an error of the turn; other text in double braces is left alone.


class WriteFile(Model):
    """A file the agent writes."""

    path: NonEmptyText = Field(description="Relative to the workspace.")
    content: Text = Field(description="The whole content.")


class Step(Choice):
    """One thing the agent does before it answers; it is really done, and seen as a tool call."""

    what = "a step"
    choices = ("say", "run", "write", "read", "skill", "remember", "delay")

    say: NonEmptyText | None = optional("A message on the way.")
    run: NonEmptyText | None = optional("A shell command; a tool call of kind `shell`.")
    write: WriteFile | None = optional("Writes a file; of kind `write`.")
    read: NonEmptyText | None = optional("A file; of kind `read`.")
    skill: NonEmptyText | None = optional("Loads an installed skill; of kind `skill`.")
    remember: dict[VariableName, Text] | None = optional("Values to keep.", min_length=1)
    delay: Seconds | None = optional("Seconds to wait.")


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

    turn: PositiveInt | None = optional("Only as the session's n-th turn.")
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


ScriptOrReplies = Annotated[
    Script, BeforeValidator(_replies, json_schema_input_type=Script | list[Reply])
]
