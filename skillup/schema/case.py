"""A case: one conversation to run, and how to judge it."""

from __future__ import annotations

from typing import Annotated, Literal

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
    optional,
    text_as,
    text_list,
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
    checkout: NonEmptyText | None = optional("The branch to be on.")
    apply_diff: NonEmptyText | None = optional("A patch of the suite to apply.")
    remotes: list[GitRemote] = Field([], description="Remotes to add.")


class Context(Model):
    """The trial's workspace before turn 1."""

    fixture: NonEmptyText | None = optional(
        "A directory of the suite, copied (`repo_fixture` is read too).",
        validation_alias=AliasChoices("fixture", "repo_fixture"),
    )
    files: dict[WorkspacePath, Text] = Field({}, description="Files by path.")
    literal: Bool = Field(False, description="What is in `files` is no template.")
    git: GitContext | None = optional("Make it a git repository.")
    setup: Texts = Field([], description="Shell commands, run in order.")


class Constraints(Model):
    """Limits, as skill-up writes them."""

    timeout_seconds: Seconds | None = optional("For the whole conversation.")
    max_turns: PositiveInt | None = optional("Agent steps within a turn.")


class RetryPolicy(Model):
    """Which errors are tried again, as a whole new trial."""

    max_retries: NonNegativeInt = Field(0, description="How often at most.")
    retry_on: Annotated[
        list[RetryKind], BeforeValidator(text_list, json_schema_input_type=RetryKinds)
    ] = Field(
        ["timeout", "rate_limit", "overloaded"], description="Error kinds; `error`: all of them."
    )


class McpServer(Model):
    """An MCP server that the agent is given."""

    name: NonEmptyText = Field(description="Its name.")
    mode: Literal["mocked", "real"] | None = optional("mocked or real.")
    transport: Literal["stdio", "http"] | None = optional("How it is reached.")
    command: NonEmptyText | None = optional("stdio: the program.")
    args: list[Text] = Field([], description="stdio: its arguments.")
    env: dict[str, Text] = Field({}, description="stdio: its variables.")
    endpoint: NonEmptyText | None = optional("http: its address.")
    config_ref: NonEmptyText | None = optional("A file that describes it.")


class Mcp(Model):
    """MCP servers of a suite, or of a case."""

    servers: list[McpServer] = Field([], description="The servers.")


class Scenario(Model):
    """skill-up's simulated user: a free text."""

    scenario: NonEmptyText = Field(description="Who the user is, wants and knows.")


JudgeModelOrName = Annotated[
    JudgeModel, BeforeValidator(text_as("model"), json_schema_input_type=JudgeModel | str)
]


class Case(Model):
    """One conversation to run, and how to judge it; one YAML file."""

    schema_version: Literal["v1alpha1"] | None = optional("Of skill-up's files only.")
    id: NonEmptyText = Field("", description="Default: the file's name without its ending.")
    title: Text | None = optional("One line for people.")
    description: Text | None = optional("Why this case exists.")
    tag: NonEmptyText | None = optional("skill-up: one tag.")
    tags: Texts = Field([], description="For --tag.")
    vars: dict[VariableName, Text] = Field({}, description="Values for <<name>>.")
    depends_on: Annotated[
        list[NonEmptyText], BeforeValidator(text_list, json_schema_input_type=list[str] | str)
    ] = Field([], description="Cases that must have passed before.")
    context: Context = Field(Context.model_construct(), description="The workspace at the start.")
    input: Input = Field(description="What the agent is sent.")
    expected_output: NonEmptyText | None = optional("What a good final answer says.")
    expect: CheckSet | None = optional("A gate; if it fails, nothing is judged.")
    assertions: list[Check] = Field([], description="Checks of the whole conversation.")
    judge: JudgeConfig | None = optional("How the conversation is judged.")
    judges: list[JudgeConfig] | None = optional("Several judges; all must pass.", min_length=1)
    judge_model: JudgeModelOrName | None = optional("Reads for checks; default: the suite's.")
    aggregation: Aggregation | None = optional("Over turns and conversation.")
    on_turn_failure: Literal["continue", "stop"] | None = optional(
        "After a turn whose checks failed."
    )
    window_size: PositiveInt | None = optional("Turns of context that a turn's model judge sees.")
    pass_threshold: Fraction | None = optional("The least score to pass.")
    trials: Trials | None = optional("How often the case is run.")
    timeout_seconds: Seconds | None = optional("For the whole conversation.")
    timeout_covers_judges: Bool = Field(
        False, description="`timeout_seconds` includes program judges."
    )
    max_turns: PositiveInt | None = optional("Agent steps within a turn.")
    turn_limit: PositiveInt | None = optional("The most turns of the conversation.")
    constraints: Constraints | None = optional("skill-up: limits.")
    retry_policy: RetryPolicy | None = optional("Which errors are tried again.")
    collect_artifacts: Texts = Field([], description="Globs of workspace files to keep.")
    mcp: Mcp = Field(Mcp.model_construct(), description="In place of the suite's of the same name.")
    user_simulator: Scenario | None = optional("skill-up: a simulated user.")
    scripted: ScriptOrReplies | None = optional("What the `scripted` engine says and does.")

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
