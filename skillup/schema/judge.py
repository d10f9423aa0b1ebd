"""How a case names its judges; skill-up's form, with ours as a superset."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from skillup.schema.base import (
    Bool,
    Fraction,
    Model,
    NonEmptyText,
    NonNegative,
    PositiveInt,
    Seconds,
)
from skillup.schema.check_specs import Criterion, CriterionOrText
from skillup.schema.checks import Check
from skillup.schema.judge_context import JudgeContext
from skillup.schema.profile import VariableOfKey
from skillup.schema.scripted import ScriptOrReplies


class SkillRef(Model):
    """A skill on disk, and which of its files are installed."""

    source: Literal["local_path", "registry"] = Field("local_path", description="Where from.")
    path: NonEmptyText = Field(description="Its directory, relative to the suite root.")
    name: NonEmptyText | None = Field(None, description="Default: the name in its SKILL.md.")
    target: NonEmptyText | None = Field(None, description="Another place to install it to.")
    include: list[NonEmptyText] = Field(default_factory=list, description="Globs; default: all.")
    exclude: list[NonEmptyText] = Field(default_factory=list, description="Globs to leave out.")
    as_is: Bool = Field(False, description="Install what is there, even without a SKILL.md.")


class JudgeModel(Model):
    """The model that reads for a case's checks, and how it is asked."""

    model: NonEmptyText = Field(
        description="`anthropic:…`, `openai:…`, or `scripted:FILE` for a written-down judge."
    )
    base_url: NonEmptyText | None = Field(None, description="The model's address.")
    api_key_env: VariableOfKey | None = Field(
        None, description="The variable that holds the key; default: the provider's own."
    )
    timeout_seconds: Seconds | None = Field(None, description="For each request.")
    repeat: PositiveInt = Field(1, description="How often each question is asked.")


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


Criteria = Annotated[
    list[CriterionOrText],
    BeforeValidator(_one_or_more, json_schema_input_type=list[Criterion | str] | Criterion | str),
]


class JudgeConfig(Model):
    """One judge. `rule_based` is made of checks; the others read."""

    id: NonEmptyText | None = Field(None, description="A short name for reports.")
    type: Literal["rule_based", "script", "agent_judge"] | None = Field(
        None, description="Default: rule_based."
    )
    success: list[Check] = Field(default_factory=list, description="All of these must hold.")
    failure: list[Check] = Field(
        default_factory=list, description="If one of these holds, the case fails."
    )
    otherwise: Literal["fail", "pass"] = Field(
        "fail",
        description="rule_based: its verdict without success rules, if no failure rule holds.",
    )
    script_path: NonEmptyText | None = Field(None, description="script: the program.")
    exit_code_decides: Bool = Field(
        False,
        description="script: 0 is a pass, anything else and running out of time a failure; what it "
        "prints is evidence and no verdict.",
    )
    timeout_seconds: NonNegative | None = Field(None, description="How long it may take.")
    model: NonEmptyText | None = Field(
        None, description="The model that reads; of an agent_judge, the one its engine uses."
    )
    base_url: NonEmptyText | None = Field(None, description="The model's address.")
    api_key_env: VariableOfKey | None = Field(
        None, description="The variable that holds the model's key."
    )
    engine: NonEmptyText | None = Field(
        None, description="agent_judge: the profile of the agent; default: the trial's own."
    )
    criteria: Criteria = Field(default_factory=list, description="agent_judge: what is looked at.")
    pass_threshold: Fraction | None = Field(None, description="The least score to pass.")
    context: JudgeContext | None = Field(None, description="agent_judge: what it is shown.")
    skills: list[SkillRef] = Field(default_factory=list, description="agent_judge: its skills.")
    scripted: ScriptOrReplies | None = Field(
        None, description="agent_judge: what it says where its engine is the scripted one."
    )
    repeat: PositiveInt = Field(1, description="How often it is asked.")
    required: Bool = Field(True, description="The case fails if this judge says no.")

    @model_validator(mode="after")
    def _fits_type(self) -> JudgeConfig:
        kind = self.type or "rule_based"
        if kind == "script" and self.script_path is None:
            raise ValueError("a script judge without a script || add `script_path`")
        if kind == "rule_based" and self.criteria:
            raise ValueError("`criteria` in a rule_based judge || set `type: agent_judge`")
        if kind != "rule_based" and (self.success or self.failure):
            raise ValueError(f"`success`/`failure` in a {kind} judge || set `type: rule_based`")
        return self
