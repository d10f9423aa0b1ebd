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
    text_list,
)
from skillup.schema.checks import Check, CheckSet, Criterion, Rubric, ToolKind
from skillup.schema.judge import JudgeConfig
from skillup.schema.judge_model import JudgeModel
from skillup.schema.profile import ScriptOrReplies

T = TypeVar("T")
_FIXTURE = AliasChoices("fixture", "repo_fixture")


class Capture(Choice):
    """A value taken out of a turn, for use as ``<<variable>>`` later."""

    what = "a capture"
    choices = ("pattern", "jsonpath")

    variable: VariableName  #: The name to keep it under.
    pattern: CapturePattern | None = None  #: A regex with a group `value`, or just one.
    jsonpath: JsonPath | None = None  #: A JSONPath; the first value found is kept, as text.
    default: Text | None = None  #: Used where nothing is found, or only white space.


class Pairs(Checked):
    """Questions that the assistant asked, in a known order, and what the user answered to each."""

    marker: Regex  #: Where it matches, the assistant asks; group `question`.
    fields: list[VariableName] = Field(min_length=1)  #: One for each question.
    default: Text | None = None  #: For what was not answered; without it, that is an error.
    pending: VariableName | None = None  #: Gets the question that is still open.

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

    capture: Capture | None = None  #: A value from any of the messages.
    role: Literal["user", "assistant", "any"] = "any"  #: capture: whose messages.
    take: Literal["first", "last", "last_message"] = "last"  #: capture: which match counts.
    pairs: Pairs | None = None  #: Questions and their answers, by a marker.

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

    on_fail: Literal["fail", "skip_remaining", "judge"] = "fail"  #: judge: the checks decide.

    def wrong(self) -> Iterator[str]:
        if not any(True for _ in self.given()):
            yield "there is no condition || add one, such as `must_contain_any: [...]`"


class Turn(Choice):
    """One user message and what must pass after the agent has answered it."""

    what = "a turn"
    choices = ("content", "respond")

    role: Literal["user"] = "user"  #: `user`, the default.
    content: Text | None = None  #: The message; `<<name>>` is filled in.
    respond: NonEmptyText | None = None  #: What the simulated user is to write.
    literal: Bool = False  #: Its texts are no templates.
    slash_command: Bool = False  #: The message is a command of the CLI.
    timeout_seconds: Seconds | None = None  #: Default: the profile's, 300.
    post_condition: PostCondition | None = None  #: The gate after the turn.
    capture: list[Capture] = []  #: Values for later turns.
    expected_output: NonEmptyText | None = None  #: What a good answer says.
    assertions: list[Check] = []  #: This turn's checks.
    branches: "list[Branch]" = []  #: Other ways to go on from here.

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

    name: NonEmptyText = Field(pattern="^[^/]+$")  #: Short; results are distinguished by it.
    turns: Turns = Field(min_length=1)  #: The turns after the fork.
    assertions: list[Check] = []  #: Checks on this branch.


class HistoryToolCall(Choice):
    """A call of a tool that the assistant made earlier."""

    what = "a tool call"
    choices = ("name", "kind")

    id: NonEmptyText | None = None  #: Default: one is made up.
    name: NonEmptyText | None = None  #: The engine's own name of the tool.
    kind: ToolKind | None = None  #: A portable kind instead of a name.
    arguments: dict[str, Any] = {}  #: As the agent gave them.


class HistoryMessage(Model):
    """One message of a conversation that took place earlier."""

    role: Literal["user", "assistant", "tool"]  #: Who said it; tool: a result.
    content: Text = ""  #: What was said, or what the tool gave back.
    literal: Bool = False  #: What was said is no template.
    tool_calls: list[HistoryToolCall] = []  #: assistant: its calls.
    call_id: NonEmptyText | None = None  #: tool: the call; default: the next.
    status: Literal["success", "error"] = "success"  #: tool: how it went.
    message_index: Int | None = None  #: Its place, where the list is not sorted.
    capture: list[Capture] = []  #: Values for later turns.


def _facts(value: Any) -> Any:
    """A mapping is its `key: value` lines."""
    items = value.items() if isinstance(value, dict) else ()
    texts = [f"{k}: {v if isinstance(v, str) else json.dumps(v, default=str)}" for k, v in items]
    return texts if isinstance(value, dict) else value


Knowledge = Annotated[Texts, BeforeValidator(_facts, json_schema_input_type=Texts | dict[str, Any])]


class Persona(Model):
    """The simulated user's part; `<<name>>` is filled in."""

    name: NonEmptyText | None = None  #: In a record: which of `personas` it was.
    role: NonEmptyText | None = None  #: Who the user is.
    objective: NonEmptyText  #: What the user wants to reach; must be there.
    knowledge: Knowledge = []  #: What the user knows.
    behavior: Texts = []  #: How the user behaves, a list.


class PersonaVariant(Model):
    """One of several users with the same objective; its keys replace those of `persona`."""

    name: NonEmptyText  #: A short name, for the record; must be there.
    role: NonEmptyText | None = None  #: Who the user is.
    knowledge: Knowledge = []  #: What the user knows.
    behavior: Texts = []  #: How the user behaves, a list.


class SimulationSettings(Model):
    """What a suite says of the users of all its led conversations, and a case of its own."""

    personas: list[PersonaVariant] = []  #: Users that take turns over the trials.
    fidelity: Literal["off", "flag", "error"] | None = None  #: If a message leaves the part.


class Conversation(SimulationSettings):
    """A conversation led by a simulated user."""

    mode: Literal["chatter_agent"] | None = None  #: May be `chatter_agent`; it has no effect.
    max_turns: PositiveInt  #: The most turns; must be there.
    persona: Persona = Field(validation_alias=AliasChoices("persona", "chatter"))  #: Their part.


class UserAnswer(Model):
    """What the user answers to a question that the agent asks in the middle of a turn."""

    question: Regex | None = None  #: Where it matches, this is answered; default: everywhere.
    answer: Texts = Field(min_length=1)  #: What is answered; a list selects several.
    literal: Bool = False  #: Its texts are no templates.


class Input(Choice):
    """What the agent is sent: one of `prompt`, `turns`, `conversation`, `transcript`."""

    what = "`input`"
    choices = ("prompt", "turns", "conversation", "transcript")

    system: NonEmptyText | None = None  #: Added to the agent's system prompt.
    literal: Bool = False  #: `system` and `prompt` are no templates.
    history: list[HistoryMessage] = []  #: Earlier messages of the session.
    reconstruct: list[Reconstruct] = []  #: Variables from the history.
    message_index: Int | None = None  #: History from this place on is left out.
    prompt: Text | None = None  #: One turn.
    #: Several, in order; a bare text is a turn with that message.
    turns: Turns | None = Field(None, min_length=1)
    conversation: Conversation | None = None  #: A simulated user leads.
    answers: list[UserAnswer] = []  #: To questions in the middle of a turn; the first that fits.
    transcript: list[HistoryMessage] | None = Field(None, min_length=1)  #: Judged, not run.

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

    name: NonEmptyText  #: Its name.
    url: NonEmptyText  #: Its address; nothing is fetched.


class GitContext(Model):
    """A git repository made of the workspace's files."""

    init: Bool = False  #: Make a repository and commit what is there.
    checkout: NonEmptyText | None = None  #: The branch to be on.
    apply_diff: NonEmptyText | None = None  #: A patch of the suite, applied and not committed.
    remotes: list[GitRemote] = []  #: A list of remotes; nothing is fetched.


class Context(Model):
    """The trial's workspace before turn 1."""

    #: A directory of the suite, copied (`repo_fixture` is read too).
    fixture: NonEmptyText | None = Field(None, validation_alias=_FIXTURE)
    files: dict[WorkspacePath, Text] = {}  #: Files by path.
    literal: Bool = False  #: What is in `files` is no template.
    git: GitContext | None = None  #: Make it a git repository.
    setup: Texts = []  #: Shell commands, run in order.


class Constraints(Model):
    """Limits, as skill-up writes them."""

    timeout_seconds: Seconds | None = None  #: For the whole conversation.
    max_turns: PositiveInt | None = None  #: Agent steps within a turn.


class RetryPolicy(Model):
    """Which errors are tried again, as a whole new trial."""

    max_retries: NonNegativeInt = 0  #: How often at most.
    retry_on: RetryKinds = ["timeout", "rate_limit", "overloaded"]  #: `error`: all kinds.


class Scenario(Model):
    """skill-up's simulated user: a free text."""

    scenario: NonEmptyText  #: Who the user is, wants and knows.


class CaseDefaults(Constraints):
    """What every case of the suite gets unless it says otherwise."""

    turn_limit: PositiveInt | None = None  #: The most turns of the conversation.
    trials: Trials | None = None  #: How often the case is run.
    expect: CheckSet | None = None  #: A gate; if it fails, nothing is judged.
    judge: JudgeConfig | None = None  #: How the conversation is judged.
    pass_threshold: Fraction | None = None  #: The least score to pass.
    aggregation: Aggregation | None = None  #: Over turns and conversation.
    on_turn_failure: Literal["continue", "stop"] | None = None  #: After a turn whose checks failed.
    collect_artifacts: Texts = []  #: Globs of workspace files to keep.


class Case(CaseDefaults, Checked):
    """One conversation to run, and how to judge it; one YAML file."""

    schema_version: Literal["v1alpha1"] | None = None  #: Of skill-up's files only.
    id: NonEmptyText = ""  #: Default: the file's name without its ending.
    title: Text | None = None  #: One line for people.
    description: Text | None = None  #: Why this case exists.
    tag: NonEmptyText | None = None  #: skill-up: one tag.
    tags: Texts = []  #: For --tag.
    vars: dict[VariableName, Text] = {}  #: Values for <<name>>.
    depends_on: Names = []  #: Cases that must have passed before.
    context: Context = Context.model_construct()  #: The workspace at the start.
    input: Input  #: What the agent is sent.
    expected_output: NonEmptyText | None = None  #: What a good final answer says.
    assertions: list[Check] = []  #: Checks of the whole conversation.
    judges: list[JudgeConfig] | None = Field(None, min_length=1)  #: Several judges; all must pass.
    judge_model: JudgeModel | None = None  #: Reads for checks; default: the suite's.
    window_size: PositiveInt | None = None  #: Turns of context that a turn's model judge sees.
    timeout_covers_judges: Bool = False  #: `timeout_seconds` includes program judges.
    constraints: Constraints | None = None  #: skill-up: limits.
    retry_policy: RetryPolicy | None = None  #: Which errors are tried again.
    mcp: dict[str, Any] = {}  #: MCP servers: not run yet.
    user_simulator: Scenario | None = None  #: skill-up: a simulated user.
    scripted: ScriptOrReplies | None = None  #: What the `scripted` engine says and does.

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
