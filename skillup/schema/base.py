"""What every model shares: frozen, no unknown keys, and the few scalar types YAML needs."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    Strict,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Model(BaseModel):
    """A value that came from a file or goes into one. Never changed after it was made."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Keys that are read under several names stand in the JSON Schema under each of them."""
        reference = handler(core_schema)
        if handler.mode == "validation":
            own = handler.resolve_ref_schema(reference)
            for field in cls.model_fields.values():
                if isinstance(field.validation_alias, AliasChoices):
                    _add_other_names(own, [str(name) for name in field.validation_alias.choices])
        return reference


class Short(Model):
    """A model that may be written as less than a mapping: as the value of its `chief`."""

    chief: ClassVar[str]
    spelled: ClassVar[dict[str, Any]] = {"type": ["string", "number", "boolean", "array"]}
    """The JSON Schema of what may stand in its place."""

    @classmethod
    def widened(cls, value: Any) -> Any:
        """The mapping that `value` means, if it is short for one."""
        return value if isinstance(value, dict) else {cls.chief: value}

    @model_validator(mode="before")
    @classmethod
    def _widen(cls, value: Any) -> Any:
        return value if isinstance(value, BaseModel) else cls.widened(value)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        reference = super().__get_pydantic_json_schema__(core_schema, handler)
        if handler.mode == "validation":
            own = handler.resolve_ref_schema(reference)
            full = dict(own)
            own.clear()
            own["anyOf"] = [full, cls.spelled]
        return reference


def _add_other_names(schema: JsonSchemaValue, names: list[str]) -> None:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    known = next((properties[name] for name in names if name in properties), None)
    if known is None:
        return
    for name in names:
        properties.setdefault(name, known)
    if any(name in required for name in names):
        schema["required"] = [name for name in required if name not in names]
        schema.setdefault("allOf", []).append({"anyOf": [{"required": [n]} for n in names]})


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


def optional(description: str, **options: Any) -> Any:
    """A field that may be left out: None."""
    return Field(None, description=description, **options)


def text_list(value: Any) -> Any:
    """One text where a list of texts is expected means a list of one."""
    return [value] if isinstance(value, str | int | float) else value


def one_or_more(value: Any) -> Any:
    """One text or mapping where a list is expected means a list of one."""
    return [value] if isinstance(value, str | dict) else value


_AnyText = str | int | bool

Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=_AnyText)]
"""Text; numbers and booleans written without quotes are taken as the text they look like."""

NonEmptyText = Annotated[
    str, Field(min_length=1), BeforeValidator(_text, json_schema_input_type=_AnyText)
]
Texts = Annotated[
    list[NonEmptyText],
    BeforeValidator(text_list, json_schema_input_type=list[_AnyText] | _AnyText),
]
"""A list of texts, or a single text."""

Bool = Annotated[bool, Strict()]
Int = Annotated[int, Strict()]
PositiveInt = Annotated[int, Strict(), Field(gt=0)]
MOST_TRIALS = 10_000
"""Of a case, on an engine and in a variant: enough to tell rates that differ by 0.02."""
Trials = Annotated[int, Strict(), Field(gt=0, le=MOST_TRIALS)]
NonNegativeInt = Annotated[int, Strict(), Field(ge=0)]
Seconds = Annotated[float, Strict(), Field(gt=0)]
Fraction = Annotated[float, Strict(), Field(ge=0, le=1)]
Confidence = Annotated[float, Strict(), Field(ge=0, le=0.999999999)]
"""Nothing is ever surer than that: p-values within 1e-9 of each other are taken as equal."""
NonNegative = Annotated[float, Strict(), Field(ge=0)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
TurnNumber = Annotated[int, Strict(), Field(ge=1)]


def _turn_or_last(value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not is_number and value != "last":
        raise ValueError("this is no turn || write its number, from 1, or `last`")
    return value


TurnOrLast = Annotated[
    int | Literal["last"],
    PlainValidator(_turn_or_last, json_schema_input_type=TurnNumber | Literal["last"]),
]
"""`last`: the last of those that were run."""


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
