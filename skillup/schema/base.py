"""What every model shares: frozen, no unknown keys, and the few scalar types YAML needs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict


class Model(BaseModel):
    """A value that came from a file or goes into one. Never changed after it was made."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def _text(value: Any) -> Any:
    """Let a whole number or a boolean stand where text is meant; refuse a decimal number.

    ``must_contain: [404]`` can only mean the text ``404``. A float cannot be taken back to what was
    written (``1.10`` has become ``1.1``), so it is refused.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        message = "this is read as a decimal number || put it in quotes: it is meant as text"
        raise ValueError(message)  # noqa: TRY004 - pydantic reports ValueErrors, not TypeErrors
    return value


def _text_list(value: Any) -> Any:
    """One text where a list of texts is expected means a list of one."""
    return [value] if isinstance(value, str | int | float) else value


_AnyText = str | int | bool

Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=_AnyText)]
"""Text; numbers and booleans written without quotes are taken as the text they look like."""

NonEmptyText = Annotated[
    str, Field(min_length=1), BeforeValidator(_text, json_schema_input_type=_AnyText)
]
Texts = Annotated[
    list[NonEmptyText],
    BeforeValidator(_text_list, json_schema_input_type=list[_AnyText] | _AnyText),
]
"""A list of texts, or a single text."""

Bool = Annotated[bool, Strict()]
Int = Annotated[int, Strict()]
PositiveInt = Annotated[int, Strict(), Field(gt=0)]
NonNegativeInt = Annotated[int, Strict(), Field(ge=0)]
Seconds = Annotated[float, Strict(), Field(gt=0)]
Fraction = Annotated[float, Strict(), Field(ge=0, le=1)]
NonNegative = Annotated[float, Strict(), Field(ge=0)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
TurnNumber = Annotated[int, Strict(), Field(ge=1)]


def one_of(owner: object, names: tuple[str, ...], *, what: str) -> str:
    """The one name of ``names`` that is set on ``owner``; ValueError if none or several are."""
    given = [name for name in names if getattr(owner, name) is not None]
    if len(given) == 1:
        return given[0]
    listed = ", ".join(f"`{name}`" for name in names)
    if not given:
        raise ValueError(f"{what} needs one of {listed} || add exactly one of them")
    both = " and ".join(f"`{name}`" for name in given)
    raise ValueError(f"{what} has {both} || keep exactly one of {listed}")
