"""A case: one conversation to hold, and how to judge it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from skillup.schema.base import (
    Bool,
    Fraction,
    Model,
    NonEmptyText,
    NonNegativeInt,
    PositiveInt,
    Seconds,
    Text,
    Texts,
    Trials,
    VariableName,
)
from skillup.schema.checks import Check, CheckSet
from skillup.schema.conversation import Input
from skillup.schema.judge import JudgeConfig, JudgeModel
from skillup.schema.patterns import WorkspacePath
from skillup.schema.record import ErrorKind
from skillup.schema.scripted import ScriptOrReplies

Aggregation = Literal["mean", "min", "max"]


RetryKind = Literal[ErrorKind, "error", "turn_precondition_fail"]
"""`error` stands for every kind of error that trying again may help against."""
RetryKinds = list[RetryKind] | RetryKind


class GitRemote(Model):
    """A remote of the prepared repository."""

    name: NonEmptyText = Field(description="Its name.")
    url: NonEmptyText = Field(description="Its address; nothing is fetched.")


class GitContext(Model):
    """A git repository made of the workspace's files."""

    init: Bool = Field(False, description="Make a repository and commit what is there.")
    checkout: NonEmptyText | None = Field(None, description="The branch to be on.")
    apply_diff: NonEmptyText | None = Field(None, description="A patch of the suite to apply.")
    remotes: list[GitRemote] = Field(default_factory=list, description="Remotes to add.")


class Context(Model):
    """The trial's workspace before turn 1."""

    fixture: NonEmptyText | None = Field(
        None,
        validation_alias=AliasChoices("fixture", "repo_fixture"),
        description="A directory of the suite, copied (`repo_fixture` is read too).",
    )
    files: dict[WorkspacePath, Text] = Field(default_factory=dict, description="Files by path.")
    literal: Bool = Field(False, description="What is in `files` is no template.")
    git: GitContext | None = Field(None, description="Make it a git repository.")
    setup: Texts = Field(default_factory=list, description="Shell commands, run in order.")


class Constraints(Model):
    """Limits, as skill-up writes them."""

    timeout_seconds: Seconds | None = Field(None, description="For the whole conversation.")
    max_turns: PositiveInt | None = Field(None, description="Agent steps within a turn.")


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _usual_retries() -> list[RetryKind]:
    return ["timeout", "rate_limit", "overloaded"]


class RetryPolicy(Model):
    """Which errors are tried again, as a whole new trial."""

    max_retries: NonNegativeInt = Field(0, description="How often at most.")
    retry_on: Annotated[
        list[RetryKind], BeforeValidator(_one_or_more, json_schema_input_type=RetryKinds)
    ] = Field(
        default_factory=_usual_retries,
        description="Error kinds; `error` for all of them; `turn_precondition_fail`.",
    )


class McpServer(Model):
    """An MCP server that the agent is given."""

    name: NonEmptyText = Field(description="Its name.")
    mode: Literal["mocked", "real"] | None = Field(None, description="mocked or real.")
    transport: Literal["stdio", "http"] | None = Field(None, description="How it is reached.")
    command: NonEmptyText | None = Field(None, description="stdio: the program.")
    args: list[Text] = Field(default_factory=list, description="stdio: its arguments.")
    env: dict[str, Text] = Field(default_factory=dict, description="stdio: its variables.")
    endpoint: NonEmptyText | None = Field(None, description="http: its address.")
    config_ref: NonEmptyText | None = Field(None, description="A file that describes it.")


class Mcp(Model):
    """MCP servers of a suite, or of a case."""

    servers: list[McpServer] = Field(default_factory=list, description="The servers.")


class Scenario(Model):
    """skill-up's simulated user: a free text."""

    scenario: NonEmptyText = Field(description="Who the user is, wants and knows.")


def _model_from_name(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


JudgeModelOrName = Annotated[
    JudgeModel, BeforeValidator(_model_from_name, json_schema_input_type=JudgeModel | str)
]


class Case(Model):
    """One conversation to hold, and how to judge it; one YAML file."""

    schema_version: Literal["v1alpha1"] | None = Field(
        None, description="Only of skill-up's cases: their keys then mean what they mean there."
    )
    id: NonEmptyText = Field("", description="Default: the file's name without its ending.")
    title: Text | None = Field(None, description="One line for people.")
    description: Text | None = Field(None, description="Why this case exists.")
    tag: NonEmptyText | None = Field(None, description="skill-up: one tag.")
    tags: Texts = Field(default_factory=list, description="For --tag.")
    vars: dict[VariableName, Text] = Field(
        default_factory=dict, description="Usable as <<name>> in messages, files and checks."
    )
    depends_on: Annotated[
        list[NonEmptyText], BeforeValidator(_one_or_more, json_schema_input_type=list[str] | str)
    ] = Field(default_factory=list, description="Cases that must have passed before.")
    context: Context = Field(default_factory=Context, description="The workspace at the start.")
    input: Input = Field(description="What the agent is told.")
    expected_output: NonEmptyText | None = Field(
        None, description="What a good final answer says; for cases of one turn."
    )
    expect: CheckSet | None = Field(None, description="A gate; if it fails, nothing is judged.")
    assertions: list[Check] = Field(
        default_factory=list, description="Checks of the whole conversation."
    )
    judge: JudgeConfig | None = Field(None, description="How the conversation is judged.")
    judges: list[JudgeConfig] | None = Field(
        None, min_length=1, description="Several judges; all must pass."
    )
    judge_model: JudgeModelOrName | None = Field(
        None, description="The model that reads for checks; default: the suite's `judge.model`."
    )
    aggregation: Aggregation | None = Field(None, description="Over turns and conversation.")
    on_turn_failure: Literal["continue", "stop"] | None = Field(
        None, description="Whether to go on after a turn whose checks failed."
    )
    window_size: PositiveInt | None = Field(
        None, description="Turns of context that a turn's model judge sees."
    )
    pass_threshold: Fraction | None = Field(None, description="The least score to pass.")
    trials: Trials | None = Field(None, description="How often the case is held.")
    timeout_seconds: Seconds | None = Field(None, description="For the whole conversation.")
    timeout_covers_judges: Bool = Field(
        False, description="The conversation's time is that of its script and agent judges, too."
    )
    max_turns: PositiveInt | None = Field(None, description="Agent steps within a turn.")
    turn_limit: PositiveInt | None = Field(
        None, description="The most turns of the conversation; one that needs more is an error."
    )
    constraints: Constraints | None = Field(None, description="skill-up: limits.")
    retry_policy: RetryPolicy | None = Field(None, description="Which errors are tried again.")
    collect_artifacts: Texts = Field(
        default_factory=list, description="Globs of workspace files to keep."
    )
    mcp: Mcp = Field(default_factory=Mcp, description="In place of the suite's of the same name.")
    user_simulator: Scenario | None = Field(None, description="skill-up: a simulated user.")
    scripted: ScriptOrReplies | None = Field(
        None, description="What the `scripted` engine says and does."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Case:
        if self.judge is not None and self.judges is not None:
            raise ValueError("both `judge` and `judges` || keep one of them")
        if self.input.turns is not None and self.expected_output is not None:
            raise ValueError(
                "`expected_output` beside `input.turns` || give each turn its own `expected_output`"
            )
        if self.aggregation is not None and self.input.prompt is not None:
            raise ValueError("`aggregation` without turns || use `input.turns`, or leave it out")
        return self

    def checks(self) -> list[Check]:
        """The conversation's assertions; `expected_output` is one more, after them."""
        if self.expected_output is None:
            return self.assertions
        return [*self.assertions, Check(expected_output=self.expected_output)]

    def all_judges(self) -> list[JudgeConfig]:
        """The judges, in order; none if the case relies on its checks alone."""
        if self.judges is not None:
            return self.judges
        return [self.judge] if self.judge is not None else []
