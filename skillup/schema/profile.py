"""A profile: which engine, command, model, permissions, limits, prices (`engines/*.yaml`)."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from skillup.adapters import ADAPTERS
from skillup.schema.base import (
    Model,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    PositiveInt,
    Seconds,
    Text,
    optional,
    text_list,
)

Permission = Literal["full", "edits", "read_only"]
Isolation = Literal["clean", "shared"]


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_NAME = 20


def _no_key(value: str) -> str:
    """Refuse what is a key and not the name of a variable; the message does not repeat it."""
    looks_like_a_key = (
        len(value) > _LONGEST_NAME
        and any(c.isdigit() for c in value)
        and any(c.islower() for c in value)
    )
    if _NAME.fullmatch(value) and not looks_like_a_key:
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
    engine: NonEmptyText = Field(description=f"The adapter: {', '.join(ADAPTERS)}.")
    command: (
        Annotated[
            list[NonEmptyText], BeforeValidator(text_list, json_schema_input_type=list[str] | str)
        ]
        | None
    ) = optional("A name on `PATH`, a path, or a list with arguments.", min_length=1)
    model: NonEmptyText | None = optional("As the CLI takes it.")
    base_url: Text | None = optional("The model's address, as the CLI takes it.")
    api_key_env: VariableOfKey | None = optional("The variable that holds the key.")
    permission: Permission = Field("full", description="The same on every turn.")
    isolation: Isolation = Field("clean", description="clean: a home of its own for each trial.")
    session: Literal["resume", "live"] = Field("resume", description="resume: a process a turn.")
    args: list[Text] = Field([], description="More arguments, as they are, on every turn.")
    env: dict[str, Text] = Field({}, description="More variables; ${VAR} is filled in.")
    timeout_seconds: Seconds = Field(300.0, description="A turn's.")
    max_turns: PositiveInt | None = optional("The agent's own steps within a turn.")
    retries: NonNegativeInt = Field(2, description="The CLI's own, within a turn.")
    prices: Annotated[
        dict[str, Price],
        BeforeValidator(_by_model, json_schema_input_type=dict[str, Price] | Price),
    ] = Field({}, description="For every model, or by model name.")
