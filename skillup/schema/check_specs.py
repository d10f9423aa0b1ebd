"""What stands to the right of a check's key: the arguments of each check.

Every model here is reached through a key of :class:`skillup.schema.checks.CheckKeys`; short
spellings (a bare string, a list) are widened to the full form before validation.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    WithJsonSchema,
    model_validator,
)

from skillup.schema.base import (
    Bool,
    Fraction,
    Int,
    Model,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    Seconds,
    Short,
    Text,
    Texts,
    TurnNumber,
    TurnOrLast,
    one_of,
    one_or_more,
    optional,
    text_list,
)
from skillup.schema.patterns import JsonPath, Regex, WorkspacePath

Regexes = Annotated[list[Regex], BeforeValidator(text_list, json_schema_input_type=Texts)]

ToolKind = Literal[
    "shell", "read", "write", "edit", "search", "web", "mcp", "skill", "agent", "other"
]
"""The portable kinds of tool calls; an engine's own names are mapped onto them."""


class TextSet(Short):
    """Texts (or patterns) to look for. All three conditions apply."""

    chief: ClassVar[str] = "all"

    any: Texts | None = optional("At least one of these must be found.")
    all: Texts | None = optional("Every one of these must be found.")
    none: Texts | None = optional(
        "None of these may be found (`not` is read too).",
        validation_alias=AliasChoices("none", "not"),
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.any or self.all or self.none):
            raise ValueError("there is nothing to look for || give `any`, `all` or `none` a text")
        return self


class RegexSet(TextSet):
    """Regexes to look for. All three conditions apply."""

    any: Regexes | None = optional("At least one of these must match.")
    all: Regexes | None = optional("Every one of these must match.")
    none: Regexes | None = optional(
        "None of these may match (`not` is read too).", validation_alias=AliasChoices("none", "not")
    )


class ArgMatch(Short):
    """How one argument of a tool call is compared; a bare value means `equals`."""

    spelled: ClassVar[dict[str, Any]] = {}

    equals: Any = optional("The argument equals this value.")
    contains: Text | None = optional("The argument, as text, contains this.")
    matches: Regex | None = optional("The argument, as text, matches this regex.")
    exists: Bool | None = optional("The argument is there (or, false, is not).")

    @classmethod
    def widened(cls, value: Any) -> Any:
        """``{match: …}`` must not pass for a value: it was meant as conditions."""
        from difflib import get_close_matches

        if not isinstance(value, dict):
            return {"equals": value}
        near = any(get_close_matches(str(key), cls.model_fields, 1, 0.8) for key in value)
        return value if near else {"equals": value}


class ToolMatch(Short):
    """Which tool calls are meant: by the engine's own name, or by portable kind."""

    chief: ClassVar[str] = "name"

    name: NonEmptyText | None = optional("Its own name, or `server::tool`; `*` is a wildcard.")
    kind: ToolKind | None = optional("The portable kind of the call.")
    args: dict[str, ArgMatch] = Field({}, description="Arguments that must match.")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.name is None and self.kind is None:
            raise ValueError("no tool is named || give `name` or `kind`")
        return self


class ToolCount(ToolMatch):
    """A tool match and how often it must occur."""

    min: NonNegativeInt | None = optional("At least so many calls (default 1).")
    max: NonNegativeInt | None = optional("At most so many calls.")

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max} || swap them")
        return self


class ToolCountInTurn(ToolCount):
    """skill-up's spelling: a tool call within one turn."""

    turn: TurnNumber = Field(description="The turn, counted from 1.")


class ToolMatchInTurn(ToolMatch):
    """skill-up's spelling: no such tool call within one turn."""

    turn: TurnNumber = Field(description="The turn, counted from 1.")


class ToolSequence(Model):
    """Tool calls in an order."""

    calls: list[ToolMatch] = Field(min_length=1, description="The calls, each as above.")
    mode: Literal["exact", "in_order", "any_order"] = Field(
        "in_order", description="exact: no others; in_order: others between."
    )


class TurnContains(Model):
    """skill-up's spelling: one turn's answer contains texts."""

    turn: TurnOrLast = Field(description="The turn, counted from 1, or `last`.")
    contains_all: Texts | None = optional("Every one of these must be found.")
    contains_any: Texts | None = optional("At least one of these must be found.")

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.contains_all or self.contains_any):
            raise ValueError(
                "there is nothing to look for || give `contains_all` or `contains_any`"
            )
        return self


class TurnNotContains(Model):
    """skill-up's spelling: one turn's answer does not contain texts."""

    turn: TurnOrLast = Field(description="The turn, counted from 1, or `last`.")
    not_contains: Texts = Field(min_length=1, description="Of `turn_response_not_contains`.")


def _is_json_schema(value: Any) -> Any:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    if not isinstance(value, dict | bool):
        raise ValueError("not a JSON Schema || write it as a mapping")  # noqa: TRY004
    if "patternProperties" in str(value):
        raise ValueError("`patternProperties` is not read || name the properties")
    try:
        checker: Any = validator_for(value, default=Draft202012Validator)
        checker.check_schema(value)
    except SchemaError as error:
        raise ValueError(f"not a JSON Schema: {error.json_path}: {error.message}") from None
    return value


JsonSchema = Annotated[
    Any,
    AfterValidator(_is_json_schema),
    WithJsonSchema({"type": ["object", "boolean"]}),
]


class JsonMatch(Model):
    """A value inside the answer, read as JSON."""

    path: JsonPath = Field("$", description="JSONPath; the root is the answer read as JSON.")
    equals: Any = optional("A found value equals this.")
    matches: Regex | None = optional("A found value, as text, matches this regex.")
    exists: Bool | None = optional("Something (or, false, nothing) is found.")
    json_schema: JsonSchema = optional("A found value is valid by it.", alias="schema")
    whole: Bool = Field(False, description="The answer is JSON and nothing else.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        conditions = ("equals", "matches", "exists", "json_schema")
        if sum(name in self.model_fields_set for name in conditions) > 1:
            names = "`equals`, `matches`, `exists`, `schema`"
            raise ValueError(f"more than one condition || keep one of {names}")
        return self


class FileContains(Model):
    """A file of the workspace and what is in it."""

    path: WorkspacePath = Field(description="The file, relative to the workspace; globs work.")
    content: Text | None = optional("Text that the file contains.")
    matches: Regex | None = optional("A regex that matches somewhere in the file.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        one_of(self, ("content", "matches"), what="a file check")
        return self


FileContainsList = Annotated[
    list[FileContains],
    BeforeValidator(one_or_more, json_schema_input_type=list[FileContains] | FileContains),
]


class GoldenFile(Short):
    """A reference text from the suite, compared as a whole."""

    chief: ClassVar[str] = "path"

    path: NonEmptyText = Field(description="The reference file, relative to the suite root.")
    file: WorkspacePath | None = optional("The workspace file to compare; default: the answer.")


class ScriptSpec(Short):
    """A program of the suite that judges the record."""

    chief: ClassVar[str] = "path"

    path: NonEmptyText = Field(description="The program, relative to the suite root.")
    timeout_seconds: Seconds = Field(30.0, description="How long it may take.")


class Criterion(Short):
    """One line of a rubric."""

    chief: ClassVar[str] = "outcome"

    id: NonEmptyText | None = optional("A short name for reports.")
    outcome: NonEmptyText = Field(description="What must be true of the conversation.")
    weight: NonNegative = Field(1.0, description="Its share of the rubric's score.")
    required: Bool = Field(False, description="The rubric fails if this one does.")


Criteria = Annotated[
    list[Criterion],
    BeforeValidator(one_or_more, json_schema_input_type=list[Criterion | str] | Criterion | str),
]


class Rubric(Short):
    """Criteria that a model judges."""

    chief: ClassVar[str] = "criteria"

    criteria: Criteria = Field(min_length=1, description="What is looked at.")
    threshold: Fraction = Field(1.0, description="The least weighted share of criteria, 0..1.")
    prompt: NonEmptyText | None = optional("Replaces the judge's own question.")


class Similar(Short):
    """A text that the answer should mean the same as."""

    chief: ClassVar[str] = "to"

    to: NonEmptyText = Field(description="The reference text.")
    threshold: Fraction = Field(0.8, description="The least similarity, 0..1.")


class Relevance(Model):
    """Do the answers stay relevant to the conversation, window by window?"""

    window_size: Annotated[Int, Field(ge=1)] = Field(5, description="Turns in a window.")
    threshold: Fraction = Field(0.8, description="The least share of relevant windows.")
    prompt: NonEmptyText | None = optional("Replaces the judge's own question.")


Aspect = Literal["correctness", "completeness", "flow", "format"]


class AnswerQuality(Short):
    """How good the answer is, in several respects; the score is their mean."""

    chief: ClassVar[str] = "threshold"

    threshold: Fraction = Field(0.7, description="The least mean, 0..1.")
    min_grade: Int = Field(3, ge=1, le=5, description="The least grade of each aspect, 1..5.")
    aspects: list[Aspect] = Field(
        ["correctness", "completeness", "flow", "format"],
        min_length=1,
        description="What is looked at.",
    )
    prompt: NonEmptyText | None = optional("Replaces the judge's own question.")
