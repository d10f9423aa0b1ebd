"""What every model shares: frozen, no unknown keys; and the types of its texts and numbers."""

import linecache
import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    Strict,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, PydanticUndefined
from pydantic_core.core_schema import no_info_plain_validator_function

if TYPE_CHECKING:
    import regex
    from jsonpath_ng import JSONPath


class Model(BaseModel):
    """A value that came from a file or goes into one. Never changed after it was made."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)
    spelled: ClassVar[dict[str, Any] | None] = None
    """The JSON Schema of what may stand in the place of a mapping; None: nothing."""
    on_demand: ClassVar[bool] = True
    """Its validator is built when a value is met, not with those of the models it is part of."""

    def __deepcopy__(self, memo: object = None) -> Self:  # of defaults, wherever one is taken
        return self

    def __copy__(self) -> Self:
        """As pydantic's, without what no model of ours has: other keys, private attributes."""
        made, put = self.__new__(type(self)), object.__setattr__
        put(made, "__dict__", self.__dict__.copy())
        put(made, "__pydantic_fields_set__", self.__pydantic_fields_set__.copy())
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """A new empty list or mapping is made faster than a copy of the default."""
        for field in cls.model_fields.values():
            if field.default in ([], {}):
                field.json_schema_extra = {"default": field.default}
                # pydantic asks for its signature each time: that of `list` takes 15 times as long.
                field.default_factory = dict if field.default == {} else lambda: []  # noqa: PIE807
                field.default = PydanticUndefined

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Within another model only a call: most of what files may have is never met."""
        if handler.field_name is None:
            return handler(source)
        if not cls.on_demand:
            cls.model_rebuild()  # once for all that it is part of, and for itself
            return handler(source)
        described = {"pydantic_js_annotation_functions": [cls._definition]}
        return no_info_plain_validator_function(cls._validate, metadata=described)

    @classmethod
    def _validate(cls, value: Any) -> Any:
        return cls.__pydantic_validator__.validate_python(value)

    @classmethod
    def _definition(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Its JSON Schema stands among the definitions, once."""
        made: GenerateJsonSchema = handler.generate_json_schema  # type: ignore[attr-defined]
        whole: Any = cls.__pydantic_core_schema__
        whole = {**whole.get("definitions", [whole])[0]}  # As Check names itself
        name, reference = made.get_cache_defs_ref_schema(whole.pop("ref"))
        if name not in made.definitions:
            made.definitions[name] = {}  # It may be met within itself
            made.definitions[name] = made.generate_inner(whole)
        return reference

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """With descriptions, and with each of the names under which a key is read."""
        reference = handler(core_schema)
        own = handler.resolve_ref_schema(reference)
        for key, text in descriptions(cls).items():
            if key in own.get("properties", ()):
                own["properties"][key]["description"] = text
        if handler.mode == "validation":
            for names in (spellings(*item) for item in cls.model_fields.items()):
                if len(names) > 1:
                    own["properties"] |= dict.fromkeys(names, own["properties"][names[0]])
                    if names[0] in own.get("required", ()):
                        own["required"].remove(names[0])
                        one = {"anyOf": [{"required": [name]} for name in names]}
                        own.setdefault("allOf", []).append(one)
            if cls.spelled is not None:
                full = dict(own)
                own.clear()
                own["anyOf"] = [full, cls.spelled]
        return reference


def spellings(name: str, field: FieldInfo) -> list[str]:
    """How files may write a field's key; the first is the usual one."""
    alias = field.validation_alias
    return [*map(str, alias.choices)] if isinstance(alias, AliasChoices) else [str(alias or name)]


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Of its keys, by comments after ``#:``: a `Field` with a `description` is made slowly."""
    found: dict[str, str | None] = {}
    for base in reversed(model.__mro__):
        found |= _commented(base.__module__).get(base.__name__, {})
    fields = model.model_fields.items()
    texts = {spellings(*item)[0]: found.get(item[0]) or item[1].description for item in fields}
    return {key: text for key, text in texts.items() if text}


@cache
def _commented(module: str) -> dict[str, dict[str, str]]:
    """The comments after ``#:``, by class and field."""
    found, own, above = dict[str, dict[str, str]](), dict[str, str](), list[str]()
    of_module = vars(sys.modules[module])
    for line in linecache.getlines(of_module.get("__file__") or "", of_module):
        if begins := re.match(r"class (\w+)", line):
            own = found.setdefault(begins[1], {})
        elif line.startswith("    #: "):
            above.append(line[7:].strip())
        elif field := re.match(r"    (\w+): ", line):
            if text := " ".join(above) or line.partition("  #: ")[2].strip():
                own[field[1]] = text
            above = []
    return found


class Stored(Model):
    """Read and written for each trial, or made from attributes: validated in one piece."""

    on_demand: ClassVar = False

    def on_disk(self) -> Self:
        """As it is written: the model reads that as the same value."""
        return self


class Short(Model):
    """A model that may be written as less than a mapping: as the value of its `chief`."""

    chief: ClassVar[str]  # The key that a bare value stands for
    spelled: ClassVar[dict[str, Any] | None] = {"type": ["string", "number", "boolean", "array"]}

    @classmethod
    def widened(cls, value: Any) -> Any:
        """The mapping that `value` means, if it is short for one."""
        return value if isinstance(value, dict) else {cls.chief: value}

    @model_validator(mode="before")
    @classmethod
    def _widen(cls, value: Any) -> Any:
        return value if isinstance(value, BaseModel) else cls.widened(value)


class Checked(Model):
    """A model of which no field can say by itself all that may be wrong with it."""

    def wrong(self) -> Iterator[str]:
        """What it is, as ``what || fix``; the first is reported."""
        yield from ()

    @model_validator(mode="after")
    def _right(self) -> Self:
        if (what := next(iter(self.wrong()), None)) is not None:
            raise ValueError(what)
        return self


class Choice(Checked):
    """Exactly one of the keys `choices` is given; or at least one, if there may be `several`."""

    what: ClassVar[str]  # How messages name it: "a capture"
    choices: ClassVar[tuple[str, ...]]
    several: ClassVar[bool] = False  # More than one may be given

    def wrong(self) -> Iterator[str]:
        given = [name for name in self.choices if getattr(self, name) not in (None, [])]
        if len(given) == 1 or (given and self.several):
            return
        listed = ", ".join(f"`{name}`" for name in self.choices)
        if not given:
            one = "at least" if self.several else "exactly"
            yield f"{self.what} needs one of {listed} || add {one} one of them"
        both = " and ".join(f"`{name}`" for name in given)
        yield f"{self.what} has {both} || keep exactly one of {listed}"


def _text(value: Any) -> Any:
    """Text written without quotes: not ``1.10``, of which only the number 1.1 is left."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        message = "this is read as a decimal number || put it in quotes: it is meant as text"
        raise ValueError(message)  # noqa: TRY004 - pydantic reports ValueErrors, not TypeErrors
    return value


def text_list(value: Any) -> Any:
    """One text where a list of texts is expected means a list of one."""
    return [value] if isinstance(value, str | int | float) else value


def one_or_more(value: Any) -> Any:
    """One text or mapping where a list is expected means a list of one."""
    return [value] if isinstance(value, str | dict) else value


_AnyText = str | int | bool

_READ = BeforeValidator(_text, json_schema_input_type=_AnyText)
Text = Annotated[str, _READ]
"""Text; numbers and booleans written without quotes are taken as the text they look like."""
NonEmptyText = Annotated[str, Field(min_length=1), _READ]
Texts = Annotated[
    list[NonEmptyText], BeforeValidator(text_list, json_schema_input_type=list[_AnyText] | _AnyText)
]
Names = Annotated[
    list[NonEmptyText], BeforeValidator(text_list, json_schema_input_type=list[str] | str)
]

Bool = Annotated[bool, Strict()]
Int = Annotated[int, Strict()]
PositiveInt = Annotated[int, Strict(), Field(gt=0)]
MOST_TRIALS = 10_000
"""Of a case, on an engine and in a variant: enough to tell rates that differ by 0.02."""
Trials = Annotated[int, Strict(), Field(gt=0, le=MOST_TRIALS)]
NonNegativeInt = Annotated[int, Strict(), Field(ge=0)]
Seconds = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Strict(), Field(ge=0, le=1)]
Confidence = Annotated[float, Strict(), Field(ge=0, le=0.999999999)]
"""Nothing is ever surer than that: p-values within 1e-9 of each other are taken as equal."""
NonNegative = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]


def _turn_or_last(value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not is_number and value != "last":
        raise ValueError("this is no turn || write its number, from 1, or `last`")
    return value


TurnOrLast = Annotated[
    int | Literal["last"],
    PlainValidator(_turn_or_last, json_schema_input_type=PositiveInt | Literal["last"]),
]
"""`last`: the last of those that were run."""

_OfEngine = Literal["engine_not_found", "engine_not_usable", "auth"]
_OfProvider = Literal["rate_limit", "quota", "overloaded", "model_error", "network"]
_OfProcess = Literal["timeout", "crash", "protocol", "output_limit"]
_OfSession = Literal["session_lost", "session_mismatch", "no_resume"]
_OfCase = Literal["capture", "template", "max_turns", "budget", "setup", "unsupported"]
ErrorKind = Literal[
    _OfEngine, _OfProvider, _OfProcess, _OfSession, _OfCase, "cancelled", "judge", "internal"
]
"""The closed list of infrastructure failures; each has a page in ``docs/errors.md``."""

ToolKind = Literal[
    "shell", "read", "write", "edit", "search", "web", "mcp", "skill", "agent", "other"
]
"""The portable kinds of tool calls; an engine's own names are mapped onto them."""

# Regexes as files write them: read once, and refused where they are no regexes. They are those of
# the `regex` library, which can be stopped when a search takes too long.

_ESCAPE = re.compile(r"\\.", re.DOTALL)


@lru_cache(maxsize=4096)
def compiled_pattern(pattern: str, fold: bool) -> "regex.Pattern[str]":
    """`pattern`, ready to search with; `fold` ignores case. Raises ValueError if it is none."""
    import regex

    # Only newer versions of the library know `\z`, which Go (skill-up) has.
    known = _ESCAPE.sub(lambda found: r"\Z" if found[0] == r"\z" else found[0], pattern)
    try:
        return regex.compile(known, regex.IGNORECASE if fold else 0)
    except (regex.error, OverflowError, RecursionError, ValueError) as trouble:
        raise ValueError(f"/{pattern}/ is not a valid regex: {trouble}") from None


def kept_group(pattern: str) -> str | int:
    """The group whose text a capture keeps: `value`, else the only one, else ValueError."""
    compiled = compiled_pattern(pattern, False)
    if "value" in compiled.groupindex:
        return "value"
    if compiled.groups == 1:
        return 1
    groups = f"has {compiled.groups} groups" if compiled.groups else "has no group"
    raise ValueError(f"/{pattern}/ {groups}; name the one to keep: (?P<value>…)")


def _valid(check: Callable[[str], object], fix: str) -> AfterValidator:
    """Refuses a text for which `check` raises ValueError (``what; fix``), else with this `fix`."""

    def validate(value: str) -> str:
        try:
            check(value)
        except ValueError as trouble:
            what, _, own = str(trouble).partition("; ")
            raise ValueError(f"{what} || {own or fix}") from None
        return value

    return AfterValidator(validate)


_CORRECT_IT = "correct it, or write a text as it is with `contains`"
Regex = Annotated[NonEmptyText, _valid(lambda text: compiled_pattern(text, False), _CORRECT_IT)]
Regexes = Annotated[list[Regex], BeforeValidator(text_list, json_schema_input_type=Texts)]
CapturePattern = Annotated[NonEmptyText, _valid(kept_group, "correct it")]

# jsonpath-ng hands these to `re`, which has no time limit.
_UNLIMITED = re.compile(r"=~|`(?:sub|split)\(")


@lru_cache(maxsize=1024)
def compiled_path(path: str) -> "JSONPath":
    """`path`, ready to look with. Raises ValueError if it is none, or has a regex inside."""
    import warnings

    from jsonpath_ng.ext.parser import parse

    if _UNLIMITED.search(path):
        message = f"the JSONPath {path} has a regex inside; use `matches` beside `path` instead"
        raise ValueError(message)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return parse(path)
    except Exception as trouble:  # noqa: BLE001 - its parser raises more than its own errors
        raise ValueError(f"{path} is not a valid JSONPath: {trouble}") from None


JsonPath = Annotated[NonEmptyText, _valid(compiled_path, "write it like $.a.b[0]")]


def outside_problem(path: str) -> str | None:
    """Why `path` (or glob) cannot lie in a workspace, as ``what; fix``; None if it can."""
    plain = path.replace("\\", "/")
    if plain.startswith(("/", "~/")) or plain[1:3] == ":/":
        return f"{path} is absolute; write it relative to where it is looked for"
    if ".." in plain.split("/"):
        return f"{path} leads elsewhere; write it without `..`"
    return None


def outside_suite(script: str) -> str | None:
    """Why a script with this path does not lie in the suite; None if it does."""
    inside = outside_problem(posixpath.normpath(script)) is None
    return None if inside else f"the script {script} lies outside of the suite"


def _inside(value: str) -> None:
    if (problem := outside_problem(value)) is not None:
        raise ValueError(problem)


WorkspacePath = Annotated[NonEmptyText, _valid(_inside, "")]  # A file of the workspace, or a glob
HomePath = WorkspacePath  # The same of an agent's home

WorkspacePaths = Annotated[
    list[WorkspacePath],
    BeforeValidator(text_list, json_schema_input_type=list[str | int] | str | int),
]
