"""The one vocabulary of checks, wherever a check may stand, and the arguments of each.

``CheckKeys`` has a field for each check. A :class:`Check` has exactly one of them set (an item of
a list); a :class:`CheckSet` may have several, which must all pass (``expect``, ``post_condition``).
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, WithJsonSchema

from skillup.schema.base import (
    Bool,
    Checked,
    Choice,
    Fraction,
    Int,
    JsonPath,
    Model,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    PositiveInt,
    Regex,
    Regexes,
    Seconds,
    Short,
    Text,
    Texts,
    TurnOrLast,
    WorkspacePath,
    WorkspacePaths,
    one_or_more,
    optional,
)
from skillup.schema.base import ToolKind as ToolKind
from skillup.schema.judge_model import JudgeModel

_NONE = AliasChoices("none", "not")


class TextSet(Short, Choice):
    """Texts (or patterns) to look for. All three conditions apply."""

    chief = "all"
    what = "the check"
    choices = ("any", "all", "none")
    several = True

    any: Texts | None = optional("At least one of these must be found.")
    all: Texts | None = optional("Every one of these must be found.")
    none: Texts | None = optional(
        "None of these may be found (`not` is read too).", validation_alias=_NONE
    )


class RegexSet(TextSet):
    """Regexes to look for. All three conditions apply."""

    any: Regexes | None = optional("At least one of these must match.")
    all: Regexes | None = optional("Every one of these must match.")
    none: Regexes | None = optional(
        "None of these may match (`not` is read too).", validation_alias=_NONE
    )


class ArgMatch(Short):
    """How one argument of a tool call is compared; a bare value means `equals`."""

    spelled: ClassVar = {}

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
        own = cls.model_fields
        near = any(key in own or get_close_matches(str(key), own, 1, 0.8) for key in value)
        return value if near else {"equals": value}


class ToolMatch(Short, Checked):
    """Which tool calls are meant: by the engine's own name, or by portable kind."""

    chief = "name"

    name: NonEmptyText | None = optional("Its own name, or `server::tool`; `*` is a wildcard.")
    kind: ToolKind | None = optional("The portable kind of the call.")
    args: dict[str, ArgMatch] = Field({}, description="Arguments that must match.")

    def wrong(self) -> Iterator[str]:
        if self.name is None and self.kind is None:
            yield "no tool is named || give `name` or `kind`"


class ToolCount(ToolMatch):
    """A tool match and how often it must occur."""

    min: NonNegativeInt | None = optional("At least so many calls (default 1).")
    max: NonNegativeInt | None = optional("At most so many calls.")

    def wrong(self) -> Iterator[str]:
        yield from super().wrong()
        if self.min is not None and self.max is not None and self.min > self.max:
            yield f"min {self.min} is above max {self.max} || swap them"


class ToolCountInTurn(ToolCount):
    """skill-up's spelling: a tool call within one turn."""

    turn: PositiveInt = Field(description="The turn, counted from 1.")


class ToolMatchInTurn(ToolMatch):
    """skill-up's spelling: no such tool call within one turn."""

    turn: PositiveInt = Field(description="The turn, counted from 1.")


class ToolSequence(Model):
    """Tool calls in an order."""

    calls: list[ToolMatch] = Field(min_length=1, description="The calls, each as above.")
    mode: Literal["exact", "in_order", "any_order"] = Field(
        "in_order", description="exact: no others; in_order: others between."
    )


class TurnContains(Choice):
    """skill-up's spelling: one turn's answer contains texts."""

    what = "the check"
    choices = ("contains_all", "contains_any")
    several = True

    turn: TurnOrLast = Field(description="The turn, counted from 1, or `last`.")
    contains_all: Texts | None = optional("Every one of these must be found.")
    contains_any: Texts | None = optional("At least one of these must be found.")


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
    Any, AfterValidator(_is_json_schema), WithJsonSchema({"type": ["object", "boolean"]})
]


class JsonMatch(Checked):
    """A value inside the answer, read as JSON."""

    path: JsonPath = Field("$", description="JSONPath; the root is the answer read as JSON.")
    equals: Any = optional("A found value equals this.")
    matches: Regex | None = optional("A found value, as text, matches this regex.")
    exists: Bool | None = optional("Something (or, false, nothing) is found.")
    json_schema: JsonSchema = optional("A found value is valid by it.", alias="schema")
    whole: Bool = Field(False, description="The answer is JSON and nothing else.")

    def wrong(self) -> Iterator[str]:
        conditions = ("equals", "matches", "exists", "json_schema")
        if sum(name in self.model_fields_set for name in conditions) > 1:
            names = "`equals`, `matches`, `exists`, `schema`"
            yield f"more than one condition || keep one of {names}"


class FileContains(Choice):
    """A file of the workspace and what is in it."""

    what = "a file check"
    choices = ("content", "matches")

    path: WorkspacePath = Field(description="The file, relative to the workspace; globs work.")
    content: Text | None = optional("Text that the file contains.")
    matches: Regex | None = optional("A regex that matches somewhere in the file.")


FileContainsList = Annotated[
    list[FileContains],
    BeforeValidator(one_or_more, json_schema_input_type=list[FileContains] | FileContains),
]


class GoldenFile(Short):
    """A reference text from the suite, compared as a whole."""

    chief = "path"

    path: NonEmptyText = Field(description="The reference file, relative to the suite root.")
    file: WorkspacePath | None = optional("The workspace file to compare; default: the answer.")


class ScriptSpec(Short):
    """A program of the suite that judges the record."""

    chief = "path"

    path: NonEmptyText = Field(description="The program, relative to the suite root.")
    timeout_seconds: Seconds = Field(30.0, description="How long it may take.")


class ScaleStep(Model):
    """A step of a scale."""

    score: Fraction = Field(description="What it counts, 0..1.")
    means: NonEmptyText = Field(description="When it is taken.")


class Criterion(Short, Checked):
    """One line of a rubric."""

    chief = "outcome"

    id: NonEmptyText | None = optional("A short name for reports.")
    outcome: NonEmptyText = Field(description="What must be true of the conversation.")
    weight: NonNegative = Field(1.0, description="Its share of the rubric's score.")
    required: Bool = Field(False, description="The rubric fails if this one does.")
    scale: list[ScaleStep] = Field([], description="Steps in place of yes and no, the worst first.")
    min_score: Fraction | None = optional("The least score to pass; default: the highest.")

    def wrong(self) -> Iterator[str]:
        scores = [step.score for step in self.scale]
        if scores != sorted({*scores}) or len(scores) == 1:
            yield "a scale has two steps or more, with growing scores || sort them"
        if self.min_score is not None and self.min_score not in scores:
            yield "`min_score` is no step's score || take one of the `scale`"


Criteria = Annotated[
    list[Criterion],
    BeforeValidator(one_or_more, json_schema_input_type=list[Criterion | str] | Criterion | str),
]


class Rubric(Short):
    """Criteria that a model judges."""

    chief = "criteria"

    criteria: Criteria = Field(min_length=1, description="What is looked at.")
    threshold: Fraction = Field(1.0, description="The least weighted share of criteria, 0..1.")
    prompt: NonEmptyText | None = optional("Replaces the judge's own question.")


class Similar(Short):
    """A text that the answer should mean the same as."""

    chief = "to"

    to: NonEmptyText = Field(description="The reference text.")
    threshold: Fraction = Field(0.8, description="The least similarity, 0..1.")


class Relevance(Model):
    """Do the answers stay relevant to the conversation, window by window?"""

    window_size: PositiveInt = Field(5, description="Turns in a window.")
    threshold: Fraction = Field(0.8, description="The least share of relevant windows.")
    prompt: NonEmptyText | None = optional("Replaces the judge's own question.")


Aspect = Literal["correctness", "completeness", "flow", "format"]


class AnswerQuality(Short):
    """How good the answer is, in several respects; the score is their mean."""

    chief = "threshold"

    threshold: Fraction = Field(0.7, description="The least mean, 0..1.")
    min_grade: Int = Field(3, ge=1, le=5, description="The least grade of each aspect, 1..5.")
    aspects: list[Aspect] = Field(
        list(get_args(Aspect)), min_length=1, description="What is looked at."
    )
    prompt: NonEmptyText | None = optional("Replaces the judge's own question.")


class CheckKeys(Model):
    """All checks by key; see ``docs/case-language.md`` for what each one looks at."""

    contains: TextSet | None = optional("The answer contains texts.")
    not_contains: Texts | None = optional("The answer contains none of these.")
    matches: RegexSet | None = optional("The regexes match somewhere: as `contains`.")
    glob: Texts | None = optional("The whole answer matches each of these globs.")
    not_glob: Texts | None = optional("The whole answer matches none of these.")
    equals: Text | None = optional("The answer, trimmed, equals this text.")
    min_tokens: NonNegativeInt | None = optional("At least so many output tokens.")
    max_tokens: NonNegativeInt | None = optional("At most so many output tokens.")
    json_: JsonMatch | None = optional("A value inside the answer, read as JSON.", alias="json")
    tool_called: ToolCount | None = optional("A tool was called.")
    tool_not_called: ToolMatch | None = optional("No such call was made.")
    tool_sequence: ToolSequence | None = optional("The calls were made in an order.")
    skill_used: NonEmptyText | None = optional("The agent used this skill.")
    skill_not_used: NonEmptyText | None = optional("It did not use this skill.")
    files_exist: WorkspacePaths | None = optional("Each glob finds a file in the workspace.")
    files_not_exist: WorkspacePaths | None = optional("None of them finds anything.")
    file_contains: FileContainsList | None = optional("Files have a content.")
    golden_file: GoldenFile | None = optional("The answer (or a file) equals a file.")
    exit_code: Int | None = optional("The agent's process (of the last turn) ended with this code.")
    max_cost_usd: NonNegative | None = optional("It cost at most so much.")
    max_duration_seconds: NonNegative | None = optional("It took at most so long.")
    script: ScriptSpec | None = optional("A program of the suite says so.")
    rubric: Rubric | None = optional("A model judges these criteria.")
    similar: Similar | None = optional("The answer means the same as a text.")
    expected_output: NonEmptyText | None = optional("The answer says what this says.")
    relevance: Relevance | None = optional("The answers stay relevant, window by window.")
    answer_quality: AnswerQuality | None = optional("Correctness and more, by a model.")
    any_of: "list[Check] | None" = optional("At least one passes.", min_length=1)
    all_of: "list[Check] | None" = optional("Every one passes.", min_length=1)
    none_of: "list[Check] | None" = optional("Every one is assertable, and fails.", min_length=1)
    # skill-up's spellings
    must_contain: Texts | None = optional("skill-up: all of these are found.")
    must_contain_all: Texts | None = optional("skill-up: all of these are found.")
    must_contain_any: Texts | None = optional("skill-up: one of these is found.")
    must_not_contain: Texts | None = optional("skill-up: none of these is found.")
    output_contains: TextSet | None = optional("skill-up: `contains`.")
    output_matches: RegexSet | None = optional("skill-up: `matches`.")
    turn_response_contains: TurnContains | None = optional("skill-up, by turn.")
    turn_response_not_contains: TurnNotContains | None = optional("skill-up, by turn.")
    tool_called_in_turn: ToolCountInTurn | None = optional("skill-up, by turn.")
    tool_not_called_in_turn: ToolMatchInTurn | None = optional("skill-up, by turn.")

    def given(self) -> Iterator[tuple[str, Any]]:
        """The YAML keys and arguments that ask something, in order; an empty list asks nothing."""
        # A check has one key of fifty: looking at those that are set is what keeps this cheap.
        names = [name for name in self.__pydantic_fields_set__ if name in _ORDER]
        for name in sorted(names, key=_ORDER.__getitem__) if names[1:] else names:
            value = getattr(self, name)
            if value is not None and value != []:
                yield _KEYS[name], value


class CheckSet(CheckKeys):
    """Several checks under one roof; all of them must pass."""

    case_sensitive: Bool = Field(False, description="Texts tell case apart; patterns always do.")
    literal: Bool = Field(False, description="Its texts are no templates.")


class Check(Short, CheckKeys, Checked):
    """One check and what goes with it. A bare string is a rubric line."""

    spelled: ClassVar = {"anyOf": [{"type": "string"}, {"type": "object", "required": ["type"]}]}

    name: NonEmptyText | None = optional("A name for reports.")
    weight: NonNegative = Field(1.0, description="Its share of the score.")
    required: Bool = Field(False, description="The turn scores 0 and the case fails without it.")
    case_sensitive: Bool = Field(False, description="Texts tell case apart; patterns always do.")
    turn: TurnOrLast | None = optional("Ask it of this turn, counted from 1; `last`: of the last.")
    literal: Bool = Field(False, description="Its texts, and its `prompt`, are no templates.")
    judge: JudgeModel | None = optional("Reads for this check, in place of the case's model.")
    prompt: NonEmptyText | None = optional("A message that is sent if a check beside it failed.")
    assertions: "list[Check] | None" = optional("The follow-up's own checks.", min_length=1)

    @classmethod
    def widened(cls, value: Any) -> Any:
        """The full form of a check as written; what is no known short form comes back as it is."""
        if isinstance(value, str):
            return {"rubric": value}
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            return value
        kind = value["type"].replace("_", "-").replace("icontains", "contains")
        negated = value.get("negate") is True
        if kind not in _BY_TYPE and kind.startswith("not-"):
            kind, negated = kind.removeprefix("not-"), not negated
        if kind not in _BY_TYPE:
            return value
        rest = {k: v for k, v in value.items() if k not in ("type", "value", "threshold")}
        if isinstance(rest.get("negate"), bool):
            del rest["negate"]
        key, place = _BY_TYPE[kind]
        if negated and kind in ("contains", "regex"):
            place = "any"  # of a list, none may be there
        given = _argument(kind, value.get("value", value.get("threshold")), rest)
        if place:
            given = {place: given if isinstance(given, list) else [given]}
        spelled = {key: given}
        if not negated:
            return {**spelled, **rest}
        if "case_sensitive" in rest:
            spelled["case_sensitive"] = rest.pop("case_sensitive")
        return {"none_of": [spelled], **rest}

    def wrong(self) -> Iterator[str]:
        keys = [key for key, _ in self.given()]
        if self.assertions is not None and self.prompt is None:
            yield "`assertions` without a `prompt` || add the follow-up's `prompt`"
        if self.prompt is not None and self.assertions is None:
            yield "a follow-up without checks || add `assertions` beside `prompt`"
        if self.prompt is not None and not keys:
            return
        if self.judge is not None:
            if not any(key in READ_BY_MODEL for key in keys):
                yield "`judge` beside a check that no model reads || take it out"
            scored = self.similar is not None or self.answer_quality is not None
            if self.rubric is None or not any(one.scale for one in self.rubric.criteria):
                self.judge.fits(scored=scored)
        if not keys:
            yield "no check asks for anything || add one, such as `contains` or `tool_called`"
        if len(keys) > 1:
            both = " and ".join(f"`{key}`" for key in keys)
            yield f"{both} in one item || make each its own list item, or use `all_of`"

    def key_and_spec(self) -> tuple[str, Any]:
        """The one check key that is set, and its arguments; ``follow_up`` if it is only that."""
        return next(self.given(), ("follow_up", None))

    @property
    def key(self) -> str:
        return self.key_and_spec()[0]


CHECK_FIELDS: dict[str, str] = {
    (field.alias or name): name for name, field in CheckKeys.model_fields.items()
}
"""YAML key → field name of :class:`CheckKeys`."""
READ_BY_MODEL = ("rubric", "similar", "expected_output", "relevance", "answer_quality")
"""The keys of the checks that a model reads."""

_KEYS = {field: key for key, field in CHECK_FIELDS.items()}
_ORDER = {field: number for number, field in enumerate(_KEYS)}

_BY_TYPE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("contains", "contains-all"), ("contains", "all")),
    "contains-any": ("contains", "any"),
    **dict.fromkeys(("regex", "starts-with", "ends-with"), ("matches", "all")),
    "equals": ("equals", ""),
    **dict.fromkeys(("is-json", "contains-json"), ("json", "")),
    "cost": ("max_cost_usd", ""),
    "latency": ("max_duration_seconds", ""),
    **dict.fromkeys(("llm-rubric", "rubrics"), ("rubric", "")),
    "skill-used": ("skill_used", ""),
    "not-skill-used": ("skill_not_used", ""),
}
"""The neighbours' ``type:`` → our key, and where among its arguments their ``value:`` belongs."""


def _argument(kind: str, value: Any, rest: dict[str, Any]) -> Any:
    """Our check's argument; what of `rest` is in it already is taken out of that."""
    if kind in ("starts-with", "ends-with") and isinstance(value, str):
        ignored = "" if rest.get("case_sensitive") is True else "(?i)"
        form = r"{}\A\s*{}" if kind == "starts-with" else r"{}{}\s*\Z"
        return form.format(ignored, re.escape(value))
    if kind == "regex" and rest.get("flags") == "i" and isinstance(value, str):
        del rest["flags"]
        return f"(?i){value}"
    if kind in ("is-json", "contains-json"):
        wanted = {"exists": True} if value is None else {"schema": value}
        return {"whole": kind == "is-json", **wanted}
    return value / 1000 if kind == "latency" and isinstance(value, int | float) else value
