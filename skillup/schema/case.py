"""A case: one conversation to run, and how to judge it."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import AliasChoices, BeforeValidator, Field

from skillup.schema.base import (
    Bool,
    CapturePattern,
    Checked,
    Choice,
    ErrorKind,
    Fraction,
    Int,
    JsonPath,
    Model,
    Names,
    NonEmptyText,
    NonNegativeInt,
    PositiveInt,
    Regex,
    Seconds,
    Text,
    Texts,
    Trials,
    VariableName,
    WorkspacePath,
    optional,
    text_list,
)
from skillup.schema.checks import Check, CheckSet, Criterion, Rubric, ToolKind
from skillup.schema.judge import JudgeConfig
from skillup.schema.judge_model import JudgeModel
from skillup.schema.profile import ScriptOrReplies

T = TypeVar("T")


class Capture(Choice):
    """A value taken out of a turn, for use as ``<<variable>>`` later."""

    what = "a capture"
    choices = ("pattern", "jsonpath")

    variable: VariableName = Field(description="The name to keep it under.")
    pattern: CapturePattern | None = optional("A regex with a group `value`, or just one.")
    jsonpath: JsonPath | None = optional("A JSONPath; the first value found is kept, as text.")
    default: Text | None = optional("Used where nothing is found, or only white space.")


class Pairs(Checked):
    """Questions that the assistant asked, in a known order, and what the user answered to each."""

    marker: Regex = Field(description="Where it matches, the assistant asks; group `question`.")
    fields: list[VariableName] = Field(min_length=1, description="One for each question.")
    default: Text | None = optional("For what was not answered; without it, that is an error.")
    pending: VariableName | None = optional("Gets the question that is still open.")

    def wrong(self) -> Iterator[str]:
        names = self.names()
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            yield f"`{twice}` is named twice || give each value a name of its own"

    def names(self) -> list[str]:
        return [*self.fields, *([] if self.pending is None else [self.pending])]


class Reconstruct(Choice):
    """One rule: a capture over the whole history, or pairs of questions and answers."""

    what = "a rule of `reconstruct`"
    choices = ("capture", "pairs")

    capture: Capture | None = optional("A value from any of the messages.")
    role: Literal["user", "assistant", "any"] = Field("any", description="capture: whose messages.")
    take: Literal["first", "last", "last_message"] = Field(
        "last", description="capture: which match counts."
    )
    pairs: Pairs | None = optional("Questions and their answers, by a marker.")

    def wrong(self) -> Iterator[str]:
        yield from super().wrong()
        if self.pairs is not None and {"role", "take"} & self.model_fields_set:
            yield "`role` and `take` belong to a `capture` || leave them out here"
        if self.capture is not None and self.capture.jsonpath is not None:
            yield "a `jsonpath` over a history || put it on a message of the history"

    def variables(self) -> list[str]:
        """The names that the rule gives a value to."""
        captured = [] if self.capture is None else [self.capture.variable]
        return captured if self.pairs is None else self.pairs.names()


def _turns(value: Any) -> Any:
    """A bare string is a turn with that message."""
    if isinstance(value, list):
        return [{"content": item} if isinstance(item, str) else item for item in value]
    return value


class PostCondition(CheckSet, Checked):
    """A gate after a turn: if it fails, the conversation does not go on."""

    on_fail: Literal["fail", "skip_remaining", "judge"] = Field(
        "fail", description="judge: nothing more is sent, and the checks decide."
    )

    def wrong(self) -> Iterator[str]:
        if not any(True for _ in self.given()):
            yield "there is no condition || add one, such as `must_contain_any: [...]`"


class Turn(Choice):
    """One user message and what must pass after the agent has answered it."""

    what = "a turn"
    choices = ("content", "respond")

    role: Literal["user"] = Field("user", description="`user`, the default.")
    content: Text | None = optional("The message; `<<name>>` is filled in.")
    respond: NonEmptyText | None = optional("What the simulated user is to write.")
    literal: Bool = Field(False, description="Its texts are no templates.")
    slash_command: Bool = Field(False, description="The message is a command of the CLI.")
    timeout_seconds: Seconds | None = optional("Default: the profile's, 300.")
    post_condition: PostCondition | None = optional("The gate after the turn.")
    capture: list[Capture] = Field([], description="Values for later turns.")
    expected_output: NonEmptyText | None = optional("What a good answer says.")
    assertions: list[Check] = Field([], description="This turn's checks.")
    branches: "list[Branch]" = Field([], description="Other ways to go on from here.")

    def wrong(self) -> Iterator[str]:
        yield from super().wrong()
        if self.content is not None and not self.content.strip():
            yield "the message is empty || write what the user says"

    def checks(self) -> list[Check]:
        """Its assertions; `expected_output` is one more, after them: places stay as written."""
        if self.expected_output is None:
            return self.assertions
        literal = {"literal": True} if self.literal else {}
        return [*self.assertions, Check(expected_output=self.expected_output, **literal)]


Turns = Annotated[list[Turn], BeforeValidator(_turns, json_schema_input_type=list[Turn | str])]


class Branch(Model):
    """Another way in which a conversation goes on, from a fork of its session and workspace."""

    name: NonEmptyText = Field(
        description="A short name; the case's results are distinguished by it.", pattern="^[^/]+$"
    )
    turns: Turns = Field(min_length=1, description="The turns after the fork.")
    assertions: list[Check] = Field([], description="Checks on this branch.")


class HistoryToolCall(Choice):
    """A call of a tool that the assistant made earlier."""

    what = "a tool call"
    choices = ("name", "kind")

    id: NonEmptyText | None = optional("Default: one is made up.")
    name: NonEmptyText | None = optional("The engine's own name of the tool.")
    kind: ToolKind | None = optional("A portable kind instead of a name.")
    arguments: dict[str, Any] = Field({}, description="As the agent gave them.")


class HistoryMessage(Model):
    """One message of a conversation that took place earlier."""

    role: Literal["user", "assistant", "tool"] = Field(description="Who said it; tool: a result.")
    content: Text = Field("", description="What was said, or what the tool gave back.")
    literal: Bool = Field(False, description="What was said is no template.")
    tool_calls: list[HistoryToolCall] = Field([], description="assistant: its calls.")
    call_id: NonEmptyText | None = optional("tool: the call; default: the next.")
    status: Literal["success", "error"] = Field("success", description="tool: how it went.")
    message_index: Int | None = optional("Its place, where the list is not sorted.")
    capture: list[Capture] = Field([], description="Values for later turns.")


def _facts(value: Any) -> Any:
    """A mapping is its `key: value` lines."""
    items = value.items() if isinstance(value, dict) else ()
    texts = [f"{k}: {v if isinstance(v, str) else json.dumps(v, default=str)}" for k, v in items]
    return texts if isinstance(value, dict) else value


Knowledge = Annotated[Texts, BeforeValidator(_facts, json_schema_input_type=Texts | dict[str, Any])]


class Persona(Model):
    """The simulated user's part; `<<name>>` is filled in."""

    name: NonEmptyText | None = optional("In a record: which of `personas` it was.")
    role: NonEmptyText | None = optional("Who the user is.")
    objective: NonEmptyText = Field(description="What the user wants to reach; must be there.")
    knowledge: Knowledge = Field([], description="What the user knows.")
    behavior: Texts = Field([], description="How the user behaves, a list.")


class PersonaVariant(Model):
    """One of several users with the same objective; its keys replace those of `persona`."""

    name: NonEmptyText = Field(description="A short name, for the record; must be there.")
    role: NonEmptyText | None = optional("Who the user is.")
    knowledge: Knowledge = Field([], description="What the user knows.")
    behavior: Texts = Field([], description="How the user behaves, a list.")


class SimulationSettings(Model):
    """What a suite says of the users of all its led conversations, and a case of its own."""

    personas: list[PersonaVariant] = Field([], description="Users that take turns over the trials.")
    fidelity: Literal["off", "flag", "error"] | None = optional(
        "Whether a judge looks for messages that leave the part, and what then."
    )


class Conversation(SimulationSettings):
    """A conversation led by a simulated user."""

    mode: Literal["chatter_agent"] | None = optional("May be `chatter_agent`; it has no effect.")
    max_turns: PositiveInt = Field(description="The most turns; must be there.")
    persona: Persona = Field(
        validation_alias=AliasChoices("persona", "chatter"),
        description="The user's part (`chatter` is read too).",
    )


class UserAnswer(Model):
    """What the user answers to a question that the agent asks in the middle of a turn."""

    question: Regex | None = optional("Where it matches, this is answered; default: everywhere.")
    answer: Texts = Field(min_length=1, description="What is answered; a list selects several.")
    literal: Bool = Field(False, description="Its texts are no templates.")


class Input(Choice):
    """What the agent is sent: one of `prompt`, `turns`, `conversation`, `transcript`."""

    what = "`input`"
    choices = ("prompt", "turns", "conversation", "transcript")

    system: NonEmptyText | None = optional("Added to the agent's system prompt.")
    literal: Bool = Field(False, description="`system` and `prompt` are no templates.")
    history: list[HistoryMessage] = Field([], description="Earlier messages of the session.")
    reconstruct: list[Reconstruct] = Field([], description="Variables from the history.")
    message_index: Int | None = optional("History from this place on is left out.")
    prompt: Text | None = optional("One turn.")
    turns: Turns | None = optional(
        "Several, in order; a bare text is a turn with that message.", min_length=1
    )
    conversation: Conversation | None = optional("A simulated user leads.")
    answers: list[UserAnswer] = Field(
        [], description="To questions of the agent's in the middle of a turn; the first that fits."
    )
    transcript: list[HistoryMessage] | None = optional("Judged, not run.", min_length=1)

    def wrong(self) -> Iterator[str]:
        yield from super().wrong()
        if self.transcript is not None and self.history:
            fix = "put it at the transcript's beginning"
            yield f"`history` beside `transcript` || {fix}"
        if self.prompt is not None and not self.prompt.strip():
            yield "the prompt is empty || write what the user says"

    def all_turns(self) -> list[Turn]:
        """The scripted turns; `prompt` is a conversation of one turn."""
        if self.turns is not None:
            return self.turns
        if self.prompt is None:
            return []
        # Not validated again: for this alone its validator would be built at every start.
        return [_EMPTY_TURN.model_copy(update={"content": self.prompt, "literal": self.literal})]


_EMPTY_TURN = Turn.model_construct()


Aggregation = Literal["mean", "min", "max"]

RetryKind = Literal[ErrorKind, "error", "turn_precondition_fail"]
"""`error` stands for every kind of error that trying again may help against."""
RetryKinds = Annotated[
    list[RetryKind], BeforeValidator(text_list, json_schema_input_type=list[RetryKind] | RetryKind)
]


class GitRemote(Model):
    """A remote of the prepared repository."""

    name: NonEmptyText = Field(description="Its name.")
    url: NonEmptyText = Field(description="Its address; nothing is fetched.")


class GitContext(Model):
    """A git repository made of the workspace's files."""

    init: Bool = Field(False, description="Make a repository and commit what is there.")
    checkout: NonEmptyText | None = optional("The branch to be on.")
    apply_diff: NonEmptyText | None = optional("A patch of the suite, applied and not committed.")
    remotes: list[GitRemote] = Field([], description="A list of remotes; nothing is fetched.")


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
    retry_on: RetryKinds = Field(
        ["timeout", "rate_limit", "overloaded"], description="Error kinds; `error`: all of them."
    )


class Scenario(Model):
    """skill-up's simulated user: a free text."""

    scenario: NonEmptyText = Field(description="Who the user is, wants and knows.")


class CaseDefaults(Constraints):
    """What every case of the suite gets unless it says otherwise."""

    turn_limit: PositiveInt | None = optional("The most turns of the conversation.")
    trials: Trials | None = optional("How often the case is run.")
    expect: CheckSet | None = optional("A gate; if it fails, nothing is judged.")
    judge: JudgeConfig | None = optional("How the conversation is judged.")
    pass_threshold: Fraction | None = optional("The least score to pass.")
    aggregation: Aggregation | None = optional("Over turns and conversation.")
    on_turn_failure: Literal["continue", "stop"] | None = optional(
        "After a turn whose checks failed."
    )
    collect_artifacts: Texts = Field([], description="Globs of workspace files to keep.")


class Case(CaseDefaults, Checked):
    """One conversation to run, and how to judge it; one YAML file."""

    schema_version: Literal["v1alpha1"] | None = optional("Of skill-up's files only.")
    id: NonEmptyText = Field("", description="Default: the file's name without its ending.")
    title: Text | None = optional("One line for people.")
    description: Text | None = optional("Why this case exists.")
    tag: NonEmptyText | None = optional("skill-up: one tag.")
    tags: Texts = Field([], description="For --tag.")
    vars: dict[VariableName, Text] = Field({}, description="Values for <<name>>.")
    depends_on: Names = Field([], description="Cases that must have passed before.")
    context: Context = Field(Context.model_construct(), description="The workspace at the start.")
    input: Input = Field(description="What the agent is sent.")
    expected_output: NonEmptyText | None = optional("What a good final answer says.")
    assertions: list[Check] = Field([], description="Checks of the whole conversation.")
    judges: list[JudgeConfig] | None = optional("Several judges; all must pass.", min_length=1)
    judge_model: JudgeModel | None = optional("Reads for checks; default: the suite's.")
    window_size: PositiveInt | None = optional("Turns of context that a turn's model judge sees.")
    timeout_covers_judges: Bool = Field(
        False, description="`timeout_seconds` includes program judges."
    )
    constraints: Constraints | None = optional("skill-up: limits.")
    retry_policy: RetryPolicy | None = optional("Which errors are tried again.")
    mcp: dict[str, Any] = Field({}, description="MCP servers: not run yet.")
    user_simulator: Scenario | None = optional("skill-up: a simulated user.")
    scripted: ScriptOrReplies | None = optional("What the `scripted` engine says and does.")

    def wrong(self) -> Iterator[str]:
        if self.judge is not None and self.judges is not None:
            yield "both `judge` and `judges` || keep one of them"
        if self.input.turns is not None and self.expected_output is not None:
            yield "`expected_output` beside `input.turns` || give each turn its own"
        if self.aggregation is not None and self.input.prompt is not None:
            yield "`aggregation` without turns || use `input.turns`, or leave it out"

    def __copy__(self) -> Self:
        made = super().__copy__()
        made.__dict__.pop("_derived", None)
        return made

    def checks(self) -> list[Check]:
        """The conversation's assertions, then `expected_output`.

        Of a led conversation that nothing else decides: whether its objective was reached.
        """
        own = self.assertions
        if self.expected_output is not None:
            return [*own, Check(expected_output=self.expected_output)]
        led = self.input.conversation
        if led is None or self.judge_model is None or own or self.expect or self.all_judges():
            return own
        goal = f"The user's objective was reached by the end: {led.persona.objective}"
        rubric = Rubric(criteria=[Criterion(outcome=goal)])
        return [Check(name="objective was reached", rubric=rubric)]

    def all_judges(self) -> list[JudgeConfig]:
        """The judges, in order; none if the case relies on its checks alone."""
        if self.judges is not None:
            return self.judges
        return [self.judge] if self.judge is not None else []


def of_case(make: Callable[[Case], Iterable[T]]) -> Callable[[Case], tuple[T, ...]]:
    """What `make` finds in a case: looked for once, and anew in a copy, which may differ."""

    @wraps(make)
    def found(case: Case) -> tuple[T, ...]:
        known: dict[Any, Any] = case.__dict__.setdefault("_derived", {})
        if make not in known:
            known[make] = tuple(make(case))
        return cast("tuple[T, ...]", known[make])

    return found
