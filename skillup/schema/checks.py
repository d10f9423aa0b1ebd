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

    any: Texts | None = None  #: At least one of these must be found.
    all: Texts | None = None  #: Every one of these must be found.
    none: Texts | None = Field(None, validation_alias=_NONE)  #: None is found (or as `not`).


class RegexSet(TextSet):
    """Regexes to look for. All three conditions apply."""

    any: Regexes | None = None  #: At least one of these must match.
    all: Regexes | None = None  #: Every one of these must match.
    none: Regexes | None = Field(None, validation_alias=_NONE)  #: None matches (or as `not`).


class ArgMatch(Short):
    """How one argument of a tool call is compared; a bare value means `equals`."""

    spelled: ClassVar = {}

    equals: Any = None  #: The argument equals this value.
    contains: Text | None = None  #: The argument, as text, contains this.
    matches: Regex | None = None  #: The argument, as text, matches this regex.
    exists: Bool | None = None  #: The argument is there (or, false, is not).

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

    name: NonEmptyText | None = None  #: Its own name, or `server::tool`; `*` is a wildcard.
    kind: ToolKind | None = None  #: The portable kind of the call.
    args: dict[str, ArgMatch] = {}  #: Arguments that must match.

    def wrong(self) -> Iterator[str]:
        if self.name is None and self.kind is None:
            yield "no tool is named || give `name` or `kind`"


class ToolCount(ToolMatch):
    """A tool match and how often it must occur."""

    min: NonNegativeInt | None = None  #: At least so many calls (default 1).
    max: NonNegativeInt | None = None  #: At most so many calls.

    def wrong(self) -> Iterator[str]:
        yield from super().wrong()
        if self.min is not None and self.max is not None and self.min > self.max:
            yield f"min {self.min} is above max {self.max} || swap them"
        if self.min == 0 and self.max is None:
            yield "min 0 holds of any number of calls || give `max`, too, or use `tool_not_called`"


class ToolCountInTurn(ToolCount):
    """skill-up's spelling: a tool call within one turn."""

    turn: PositiveInt  #: The turn, counted from 1.


class ToolMatchInTurn(ToolMatch):
    """skill-up's spelling: no such tool call within one turn."""

    turn: PositiveInt  #: The turn, counted from 1.


class ToolSequence(Model):
    """Tool calls in an order."""

    calls: list[ToolMatch] = Field(min_length=1)  #: The calls, each as above.
    mode: Literal["exact", "in_order", "any_order"] = "in_order"  #: exact: no others.


class TurnContains(Choice):
    """skill-up's spelling: one turn's answer contains texts."""

    what = "the check"
    choices = ("contains_all", "contains_any")
    several = True

    turn: TurnOrLast  #: The turn, counted from 1, or `last`.
    contains_all: Texts | None = None  #: Every one of these must be found.
    contains_any: Texts | None = None  #: At least one of these must be found.


class TurnNotContains(Model):
    """skill-up's spelling: one turn's answer does not contain texts."""

    turn: TurnOrLast  #: The turn, counted from 1, or `last`.
    not_contains: Texts = Field(min_length=1)  #: Of `turn_response_not_contains`.


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

    path: JsonPath = "$"  #: JSONPath; the root is the answer read as JSON.
    equals: Any = None  #: A found value equals this.
    matches: Regex | None = None  #: A found value, as text, matches this regex.
    exists: Bool | None = None  #: Something (or, false, nothing) is found.
    json_schema: JsonSchema = Field(None, alias="schema")  #: A found value is valid by it.
    whole: Bool = False  #: The answer is JSON and nothing else.

    def wrong(self) -> Iterator[str]:
        conditions = ("equals", "matches", "exists", "json_schema")
        if sum(name in self.model_fields_set for name in conditions) > 1:
            names = "`equals`, `matches`, `exists`, `schema`"
            yield f"more than one condition || keep one of {names}"


class FileContains(Choice):
    """A file of the workspace and what is in it."""

    what = "a file check"
    choices = ("content", "matches")

    path: WorkspacePath  #: The file, relative to the workspace; globs work.
    content: Text | None = None  #: Text that the file contains.
    matches: Regex | None = None  #: A regex that matches somewhere in the file.


FileContainsList = Annotated[
    list[FileContains],
    BeforeValidator(one_or_more, json_schema_input_type=list[FileContains] | FileContains),
]


class GoldenFile(Short):
    """A reference text from the suite, compared as a whole."""

    chief = "path"

    path: NonEmptyText  #: The reference file, relative to the suite root.
    file: WorkspacePath | None = None  #: The workspace file to compare; default: the answer.


class ScriptSpec(Short):
    """A program of the suite that judges the record."""

    chief = "path"

    path: NonEmptyText  #: The program, relative to the suite root.
    timeout_seconds: Seconds = 30.0  #: How long it may take.


class ScaleStep(Model):
    """A step of a scale."""

    score: Fraction  #: What it counts, 0..1.
    means: NonEmptyText  #: When it is taken.


class Criterion(Short, Checked):
    """One line of a rubric."""

    chief = "outcome"

    id: NonEmptyText | None = None  #: A short name for reports.
    outcome: NonEmptyText  #: What must be true of the conversation.
    weight: NonNegative = 1.0  #: Its share of the rubric's score.
    required: Bool = False  #: The rubric fails if this one does.
    scale: list[ScaleStep] = []  #: Steps in place of yes and no, the worst first.
    min_score: Fraction | None = None  #: The least score to pass; default: the highest.

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

    criteria: Criteria = Field(min_length=1)  #: What is looked at.
    threshold: Fraction = 1.0  #: The least weighted share of criteria, 0..1.
    prompt: NonEmptyText | None = None  #: Replaces the judge's own question.


class Similar(Short):
    """A text that the answer should mean the same as."""

    chief = "to"

    to: NonEmptyText  #: The reference text.
    threshold: Fraction = 0.8  #: The least similarity, 0..1.


class Relevance(Model):
    """Do the answers stay relevant to the conversation, window by window?"""

    window_size: PositiveInt = 5  #: Turns in a window.
    threshold: Fraction = 0.8  #: The least share of relevant windows.
    prompt: NonEmptyText | None = None  #: Replaces the judge's own question.


Aspect = Literal["correctness", "completeness", "flow", "format"]


class AnswerQuality(Short):
    """How good the answer is, in several respects; the score is their mean."""

    chief = "threshold"

    threshold: Fraction = 0.7  #: The least mean, 0..1.
    min_grade: Int = Field(3, ge=1, le=5)  #: The least grade of each aspect, 1..5.
    aspects: list[Aspect] = Field(list(get_args(Aspect)), min_length=1)  #: What is looked at.
    prompt: NonEmptyText | None = None  #: Replaces the judge's own question.


class CheckKeys(Model):
    """All checks by key; see ``docs/case-language.md`` for what each one looks at."""

    contains: TextSet | None = None  #: The answer contains texts.
    not_contains: Texts | None = None  #: The answer contains none of these.
    matches: RegexSet | None = None  #: The regexes match somewhere: as `contains`.
    glob: Texts | None = None  #: The whole answer matches each of these globs.
    not_glob: Texts | None = None  #: The whole answer matches none of these.
    equals: Text | None = None  #: The answer, trimmed, equals this text.
    min_tokens: NonNegativeInt | None = None  #: At least so many output tokens.
    max_tokens: NonNegativeInt | None = None  #: At most so many output tokens.
    json_: JsonMatch | None = Field(None, alias="json")  #: A value inside the answer, read as JSON.
    tool_called: ToolCount | None = None  #: A tool was called.
    tool_not_called: ToolMatch | None = None  #: No such call was made.
    tool_sequence: ToolSequence | None = None  #: The calls were made in an order.
    skill_used: NonEmptyText | None = None  #: The agent used this skill.
    skill_not_used: NonEmptyText | None = None  #: It did not use this skill.
    files_exist: WorkspacePaths | None = None  #: Each glob finds a file in the workspace.
    files_not_exist: WorkspacePaths | None = None  #: None of them finds anything.
    file_contains: FileContainsList | None = None  #: Files have a content.
    golden_file: GoldenFile | None = None  #: The answer (or a file) equals a file.
    exit_code: Int | None = None  #: The agent's process (of the last turn) ended with this code.
    max_cost_usd: NonNegative | None = None  #: It cost at most so much.
    max_duration_seconds: NonNegative | None = None  #: It took at most so long.
    script: ScriptSpec | None = None  #: A program of the suite says so.
    rubric: Rubric | None = None  #: A model judges these criteria.
    similar: Similar | None = None  #: The answer means the same as a text.
    expected_output: NonEmptyText | None = None  #: The answer says what this says.
    relevance: Relevance | None = None  #: The answers stay relevant, window by window.
    answer_quality: AnswerQuality | None = None  #: Correctness and more, by a model.
    any_of: "list[Check] | None" = Field(None, min_length=1)  #: At least one passes.
    all_of: "list[Check] | None" = Field(None, min_length=1)  #: Every one passes.
    none_of: "list[Check] | None" = Field(None, min_length=1)  #: Each is assertable, and fails.
    # skill-up's spellings
    must_contain: Texts | None = None  #: skill-up: all of these are found.
    must_contain_all: Texts | None = None  #: skill-up: all of these are found.
    must_contain_any: Texts | None = None  #: skill-up: one of these is found.
    must_not_contain: Texts | None = None  #: skill-up: none of these is found.
    output_contains: TextSet | None = None  #: skill-up: `contains`.
    output_matches: RegexSet | None = None  #: skill-up: `matches`.
    turn_response_contains: TurnContains | None = None  #: skill-up, by turn.
    turn_response_not_contains: TurnNotContains | None = None  #: skill-up, by turn.
    tool_called_in_turn: ToolCountInTurn | None = None  #: skill-up, by turn.
    tool_not_called_in_turn: ToolMatchInTurn | None = None  #: skill-up, by turn.

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

    case_sensitive: Bool = False  #: Texts tell case apart; patterns always do.
    literal: Bool = False  #: Its texts are no templates.


class Check(Short, CheckKeys, Checked):
    """One check and what goes with it. A bare string is a rubric line."""

    spelled: ClassVar = {"anyOf": [{"type": "string"}, {"type": "object", "required": ["type"]}]}

    name: NonEmptyText | None = None  #: A name for reports.
    weight: NonNegative = 1.0  #: Its share of the score.
    required: Bool = False  #: The turn scores 0 and the case fails without it.
    case_sensitive: Bool = False  #: Texts tell case apart; patterns always do.
    turn: TurnOrLast | None = None  #: Ask it of this turn, counted from 1; `last`: of the last.
    literal: Bool = False  #: Its texts, and its `prompt`, are no templates.
    judge: JudgeModel | None = None  #: Reads for this check, in place of the case's model.
    prompt: NonEmptyText | None = None  #: A message that is sent if a check beside it failed.
    assertions: "list[Check] | None" = Field(None, min_length=1)  #: The follow-up's own checks.

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
