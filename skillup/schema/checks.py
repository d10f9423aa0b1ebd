"""The one vocabulary of checks, wherever a check may stand.

``CheckKeys`` has a field for each check. A :class:`Check` has exactly one of them set (an item of
a list); a :class:`CheckSet` may have several, which must all pass (``expect``, ``post_condition``).
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from skillup.schema.base import (
    Bool,
    Int,
    Model,
    NonEmptyText,
    NonNegative,
    Short,
    Text,
    Texts,
    TurnOrLast,
    optional,
)
from skillup.schema.check_specs import (
    AnswerQuality,
    FileContainsList,
    GoldenFile,
    JsonMatch,
    RegexSet,
    Relevance,
    Rubric,
    ScriptSpec,
    Similar,
    TextSet,
    ToolCount,
    ToolCountInTurn,
    ToolMatch,
    ToolMatchInTurn,
    ToolSequence,
    TurnContains,
    TurnNotContains,
)
from skillup.schema.patterns import WorkspacePaths


class CheckKeys(Model):
    """All checks by key; see ``docs/case-language.md`` for what each one looks at."""

    contains: TextSet | None = optional("The answer contains texts.")
    not_contains: Texts | None = optional("The answer contains none of these.")
    matches: RegexSet | None = optional("The regexes match somewhere: as `contains`.")
    glob: Texts | None = optional("The whole answer matches each of these globs.")
    not_glob: Texts | None = optional("The whole answer matches none of these.")
    equals: Text | None = optional("The answer, trimmed, equals this text.")
    min_tokens: Annotated[Int, Field(ge=0)] | None = optional("At least so many output tokens.")
    max_tokens: Annotated[Int, Field(ge=0)] | None = optional("At most so many output tokens.")
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
        """The keys that ask something, as written in YAML, with their arguments, in a fixed order.

        An empty list asks nothing, so nothing passes by it.
        """
        # A check has one key of fifty: looking at those that are set is what keeps this cheap.
        names = [name for name in self.model_fields_set if name in _KEYS]
        if len(names) > 1:
            names.sort(key=_ORDER.__getitem__)
        for name in names:
            value = getattr(self, name)
            if value is not None and value != []:
                yield _KEYS[name], value


class CheckSet(CheckKeys):
    """Several checks under one roof; all of them must pass."""

    case_sensitive: Bool = Field(False, description="Texts tell case apart; patterns always do.")
    literal: Bool = Field(False, description="Its texts are no templates.")


class Check(Short, CheckKeys):
    """One check and what goes with it. A bare string is a rubric line."""

    spelled: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "string"}, {"type": "object", "required": ["type"]}]
    }

    name: NonEmptyText | None = optional("A name for reports.")
    weight: NonNegative = Field(1.0, description="Its share of the score.")
    required: Bool = Field(False, description="The turn scores 0 and the case fails without it.")
    case_sensitive: Bool = Field(False, description="Texts tell case apart; patterns always do.")
    turn: TurnOrLast | None = optional("Ask it of this turn, counted from 1; `last`: of the last.")
    literal: Bool = Field(False, description="Its texts, and its `prompt`, are no templates.")
    prompt: NonEmptyText | None = optional("A message that is sent if a check beside it failed.")
    assertions: "list[Check] | None" = optional("The follow-up's own checks.", min_length=1)

    @classmethod
    def widened(cls, value: Any) -> Any:
        """The full form of a check as written."""
        return widen_check(value)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        keys = [key for key, _ in self.given()]
        if self.assertions is not None and self.prompt is None:
            raise ValueError("`assertions` without a `prompt` || add the follow-up's `prompt`")
        if self.prompt is not None and self.assertions is None:
            raise ValueError("a follow-up without checks || add `assertions` beside `prompt`")
        if self.prompt is not None and not keys:
            return self
        if not keys:
            raise ValueError(
                "no check asks for anything || add one, such as `contains` or `tool_called`"
            )
        if len(keys) > 1:
            both = " and ".join(f"`{key}`" for key in keys)
            raise ValueError(f"{both} in one item || make each its own list item, or use `all_of`")
        return self

    def key_and_spec(self) -> tuple[str, Any]:
        """The one check key that is set, and its arguments; ``follow_up`` if it is only that."""
        return next(self.given(), ("follow_up", None))

    @property
    def key(self) -> str:
        return self.key_and_spec()[0]

    @property
    def spec(self) -> Any:
        return self.key_and_spec()[1]


CHECK_FIELDS: dict[str, str] = {
    (field.alias or name): name for name, field in CheckKeys.model_fields.items()
}
"""YAML key → field name of :class:`CheckKeys`."""

_KEYS = {field: key for key, field in CHECK_FIELDS.items()}
_ORDER = {field: number for number, field in enumerate(_KEYS)}


# Other spellings of one check: bare strings, and the ``type:``/``value:`` form of the neighbours.


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
"""Type → our key, and where among its arguments the value belongs."""


def widen_check(value: Any) -> Any:
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
