"""A suite: `eval.yaml`, its skills, its defaults and its gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from skillup.schema.base import (
    Bool,
    Confidence,
    Fraction,
    Model,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    PositiveInt,
    Seconds,
    Text,
    Texts,
    Trials,
)
from skillup.schema.case import Aggregation, Case, Mcp, RetryPolicy
from skillup.schema.checks import CheckSet
from skillup.schema.conversation import Persona, Turn
from skillup.schema.judge import JudgeConfig, JudgeModel, SkillRef
from skillup.schema.profile import HOME_VARIABLES, VariableOfKey
from skillup.schema.scripted import ScriptOrReplies

# A suite's gates: what a run of it has to meet. By itself, as comparing runs needs no cases.


class Gates(Model):
    """When a run as a whole is not acceptable."""

    max_new_failures: NonNegativeInt | None = Field(None, description="Newly failing cases.")
    min_pass_rate: Fraction | None = Field(
        None, description="The least mean of its cases' pass rates."
    )
    max_cost_increase: NonNegative | None = Field(
        None, allow_inf_nan=False, description="0.2 means 20 % more."
    )
    max_not_run: NonNegativeInt | None = Field(None, description="Cases without a verdict.")
    confidence: Confidence | None = Field(None, description="How sure a difference must be.")


class ModelRef(Model):
    """A model, by name; the rest is skill-up's."""

    name: NonEmptyText | None = Field(None, description="The model's name, as the CLI takes it.")
    provider: NonEmptyText | None = Field(None, description="skill-up: informational here.")
    base_url: Text | None = Field(None, description="The model's address.")
    params: dict[str, Any] = Field(default_factory=dict, description="skill-up: ignored.")


def _model(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _engine(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class EngineRef(Model):
    """The suite's default engine; `--engine` outranks it."""

    name: NonEmptyText = Field(
        validation_alias=AliasChoices("name", "type"),
        description="A profile's name, an adapter's name, or a path (`type` is read too).",
    )
    model: Annotated[ModelRef, BeforeValidator(_model, json_schema_input_type=ModelRef | str)] = (
        Field(default_factory=ModelRef, description="The model.")
    )
    version: NonEmptyText | None = Field(None, description="skill-up: the CLI's version.")
    entry: Text | None = Field(None, description="skill-up: ignored.")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="skill-up: ignored.")
    custom: dict[str, Any] | None = Field(None, description="skill-up: a custom engine.")


class SetupStep(Model):
    """A command that prepares the workspace."""

    run: NonEmptyText = Field(description="A shell command.")


def _no_homes(env: dict[str, str]) -> dict[str, str]:
    moved = sorted(HOME_VARIABLES & env.keys())
    if moved:
        raise ValueError(
            f"{', '.join(moved)} would move the agent out of its trial's own home || leave it out "
            "(a profile with `isolation: shared` may set it)"
        )
    return env


class Environment(Model):
    """Where trials run. `none` means this machine."""

    type: Literal["none", "opensandbox", "docker"] = Field("none", description="The runtime.")
    env: Annotated[dict[str, Text], AfterValidator(_no_homes)] = Field(
        default_factory=dict, description="Variables for the agent."
    )
    setup_steps: list[SetupStep] = Field(default_factory=list, description="Run in order.")
    image: Text | None = Field(None, description="skill-up: container image.")
    sandbox_template: Text | None = Field(None, description="skill-up.")
    workspace_mount: Text | None = Field(None, description="skill-up.")
    use_server_proxy: Bool | None = Field(None, description="skill-up.")
    ready_timeout_seconds: NonNegative | None = Field(None, description="skill-up.")
    sandbox_timeout_seconds: NonNegative | None = Field(None, description="skill-up.")
    entrypoint: list[Text] = Field(default_factory=list, description="skill-up.")
    metadata: dict[str, Text] = Field(default_factory=dict, description="skill-up.")
    kwargs: dict[str, Text] = Field(default_factory=dict, description="skill-up.")
    network_policy: Text | None = Field(None, description="skill-up.")
    allowed_egress: list[Text] = Field(default_factory=list, description="skill-up.")

    @model_validator(mode="after")
    def _can_be_enforced(self) -> Environment:
        policy = self.network_policy
        if policy and self.type == "none":
            raise ValueError(
                f"`network_policy: {policy}` with `type: none`, which cannot keep it || "
                "leave it out: on this machine agents reach the network"
            )
        return self


class CaseDefaults(Model):
    """What every case of the suite gets unless it says otherwise."""

    timeout_seconds: Seconds | None = Field(None, description="For the whole conversation.")
    max_turns: PositiveInt | None = Field(None, description="Agent steps within a turn.")
    turn_limit: PositiveInt | None = Field(None, description="As in a case.")
    expect: CheckSet | None = Field(None, description="Merged: lists are joined.")
    judge: JudgeConfig | None = Field(None, description="For cases without judge and checks.")
    collect_artifacts: Texts = Field(default_factory=list, description="Joined with the case's.")
    pass_threshold: Fraction | None = Field(None, description="The least score to pass.")
    aggregation: Aggregation | None = Field(None, description="Over turns and conversation.")
    on_turn_failure: Literal["continue", "stop"] | None = Field(None, description="As in a case.")
    trials: Trials | None = Field(None, description="How often each case is held.")


class Dataset(Model):
    """Items that a case is made of each, as Langfuse keeps them."""

    path: NonEmptyText = Field(description="The items: a JSON list, or JSON lines.")
    case: NonEmptyText | None = Field(
        None, description="A case file with what the items' cases have besides; default: nothing."
    )


def _dataset(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


DatasetOrPath = Annotated[Dataset, BeforeValidator(_dataset, json_schema_input_type=Dataset | str)]


class Cases(Model):
    """Which cases, and how they are run."""

    files: Texts | None = Field(
        None, description="Paths and globs; default: every other *.yaml beside it and in cases/."
    )
    datasets: list[DatasetOrPath] = Field(
        default_factory=list, description="Datasets: a case for each of their items."
    )
    defaults: CaseDefaults = Field(default_factory=CaseDefaults, description="For every case.")
    parallelism: PositiveInt | None = Field(None, description="Trials at once; -j outranks it.")
    retry_policy: RetryPolicy = Field(default_factory=RetryPolicy, description="For every case.")


class Benchmark(Model):
    """The comparison with and without the skill."""

    enabled: Bool = Field(False, description="Hold each case in both variants.")


class Report(Model):
    """Which reports a run writes."""

    formats: list[Literal["json", "html", "junit", "markdown", "benchmark"]] = Field(
        default_factory=list, description="Besides result.json."
    )
    artifacts: list[Text] = Field(default_factory=list, description="skill-up: always kept.")


class UserSimulator(Model):
    """Who plays the user: a model, or an engine."""

    model: Text | None = Field(
        None, description="`anthropic:…`, `openai:…` or `scripted:FILE`; default: the judges'."
    )
    engine: NonEmptyText | None = Field(
        None, description="A profile that plays the user, in place of a model."
    )
    provider: Text | None = Field(None, description="skill-up: anthropic or openai.")
    protocol: Text | None = Field(None, description="skill-up: anthropic or openai.")
    base_url: Text | None = Field(None, description="The model's address.")
    api_key_env: VariableOfKey | None = Field(
        None, description="The variable that holds the key; default: the provider's own."
    )
    timeout_seconds: Seconds | None = Field(None, description="For each message.")
    scripted: ScriptOrReplies | None = Field(
        None, description="What the user says where its engine is the scripted one."
    )

    @model_validator(mode="after")
    def _one_player(self) -> UserSimulator:
        if self.engine is not None and self.model:
            raise ValueError("both `model` and `engine` || keep the one that plays the user")
        return self


class Suite(Model):
    """The whole of an `eval.yaml`."""

    schema_version: Literal["v1alpha1"] | None = Field(
        None, description="Only of skill-up's suites: their keys then mean what they mean there."
    )
    name: NonEmptyText | None = Field(None, description="Default: the skill's or folder's name.")
    description: Text | None = Field(None, description="What the suite is about.")
    skills: list[SkillRef] | None = Field(
        None, description="Under test; default: the skill whose directory holds evals/."
    )
    distractors: Texts = Field(
        default_factory=list,
        validation_alias=AliasChoices("distractors", "neighbours"),
        description="Skills installed in both variants (`neighbours` is read too).",
    )
    engine: (
        Annotated[EngineRef, BeforeValidator(_engine, json_schema_input_type=EngineRef | str)]
        | None
    ) = Field(None, description="The default engine.")
    cases: Cases = Field(default_factory=Cases, description="Which cases, and how.")
    environment: Environment = Field(default_factory=Environment, description="Where they run.")
    mcp: Mcp = Field(default_factory=Mcp, description="MCP servers.")
    user_simulator: UserSimulator | None = Field(None, description="Who plays the user.")
    judge: JudgeConfig | None = Field(None, description="Defaults for the cases' judges.")
    judges: list[JudgeConfig] | None = Field(
        None, min_length=1, description="For cases without a judge of their own; all must pass."
    )
    on_no_resume: Literal["error", "single_shot"] = Field(
        "error", description="What an engine does that cannot resume."
    )
    benchmark: Benchmark = Field(default_factory=Benchmark, description="With and without.")
    gates: Gates = Field(default_factory=Gates, description="What the whole run must meet.")
    report: Report = Field(default_factory=Report, description="Which reports.")

    @model_validator(mode="after")
    def _judge_or_judges(self) -> Suite:
        if self.judge is not None and self.judges is not None:
            raise ValueError("both `judge` and `judges` || keep one of them")
        return self

    @model_validator(mode="before")
    @classmethod
    def _no_null_sections(cls, value: Any) -> Any:
        """An empty section (`mcp:`) means its defaults."""
        if isinstance(value, dict):
            return {k: v for k, v in value.items() if v is not None}
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Each section may be left empty."""
        reference = super().__get_pydantic_json_schema__(core_schema, handler)
        own = handler.resolve_ref_schema(reference)
        for name, section in own["properties"].items():
            about = {"description": section["description"]}
            own["properties"][name] = {"anyOf": [section, {"type": "null"}], **about}
        return reference


# Which cases need a simulated user, what it is to do there, and which model plays it.

_PROTOCOLS = ("anthropic", "openai")


@dataclass(frozen=True, slots=True)
class Lead:
    """A conversation that a simulated user leads."""

    max_turns: int
    """The most turns, the first message of the case included."""
    opening: str | None = None
    """The case's own first message (skill-up's `prompt`); None: the user writes that, too."""
    must_end: bool = False
    """A user that wants to go on beyond `max_turns` is an error, not the conversation's end."""


def lead_of(case: Case) -> Lead | None:
    """How a simulated user leads `case`; None: its turns are written down.

    With skill-up's `scenario` beside a `prompt`, `max_turns` counts messages, not the agent's
    steps, where there is no `turn_limit`; a case that lacks both does not validate.
    """
    if case.input.conversation is not None:
        return Lead(case.input.conversation.max_turns)
    if case.user_simulator is not None and case.input.prompt is not None:
        most = case.turn_limit or case.max_turns or 1
        return Lead(most, case.input.prompt, must_end=case.turn_limit is not None)
    return None


def persona_of(case: Case) -> Persona | None:
    """The part that the case writes for its user; None: a scenario or an instruction is all."""
    return case.input.conversation.persona if case.input.conversation is not None else None


def needs_simulator(case: Case) -> bool:
    """Whether somebody must play the user."""
    return lead_of(case) is not None or _any_respond(case.input.all_turns())


def _any_respond(turns: Sequence[Turn]) -> bool:
    return any(
        turn.respond is not None or any(_any_respond(branch.turns) for branch in turn.branches)
        for turn in turns
    )


def playing_model(given: UserSimulator | None, case: Case) -> JudgeModel | None:
    """The model that plays the user: the suite's own, else the one that judges; None: nobody.

    skill-up names a model by `model` and `protocol` or `provider`.
    """
    given = given or UserSimulator()
    if given.model:
        return JudgeModel(
            model=_full_name(given.model, given),
            base_url=given.base_url or None,
            api_key_env=given.api_key_env,
            timeout_seconds=given.timeout_seconds,
        )
    if case.judge_model is None:
        return None
    timeout = given.timeout_seconds or case.judge_model.timeout_seconds
    return case.judge_model.model_copy(update={"repeat": 1, "timeout_seconds": timeout})


def _full_name(model: str, given: UserSimulator) -> str:
    if ":" in model:
        return model
    for protocol in (given.protocol, given.provider):
        if protocol in _PROTOCOLS:
            return f"{protocol}:{model}"
    provider, slash, name = model.partition("/")
    return f"{provider}:{name}" if slash and provider in _PROTOCOLS else model
