"""A profile (`engines/*.yaml`): how an engine is run, and what its CLI speaks, described as data.

Texts of a description may hold placeholders: ``{model}``, ``{model:-default}``, ``{base_url:+if
there is one}``. A text whose placeholder has no value is left out, with the list or entry that it
stands in.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from skillup.adapters import ADAPTERS
from skillup.schema.base import (
    Bool,
    Checked,
    Choice,
    ErrorKind,
    Fraction,
    HomePath,
    Int,
    Model,
    Names,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    PositiveInt,
    Regex,
    Seconds,
    Text,
    ToolKind,
    VariableName,
    WorkspacePaths,
    compiled_pattern,
)

# What the CLI of `engine: command` speaks: one process for each turn.

Path = NonEmptyText
"""Where a value is in an event: keys and numbers with dots, ``message.content.0.text``."""


class Matches(Model):
    """A text that a pattern is found in."""

    matches: Regex  #: A regular expression.


Scalar = str | int | bool | None
Conditions = dict[Path, Matches | Scalar | list[Scalar]]
"""What stands where: a value, one of some, or a pattern. All must hold."""
Argument = Text | list[Text]


class CallPaths(Model):
    """Where an event has a tool call."""

    id: Path  #: Its id, which the result repeats.
    name: Path  #: The tool's name.
    arguments: Path  #: An object.


class ResultPaths(Model):
    """Where an event has a tool's result."""

    id: Path  #: The id of the call.
    content: Path = ""  #: What the tool gave back: a text, or blocks.
    failed: Conditions = {}  #: Holds if the call failed.


class UsagePaths(Model):
    """Where an event has token counts."""

    of: Literal["request", "turn"] = "turn"  #: request: they are added up.
    cached_apart: Bool = False  #: The input is counted without cached tokens.
    input_tokens: Path | None = None  #: Tokens of the input.
    cached_input_tokens: Path | None = None  #: Of these, read from the cache.
    cache_write_tokens: Path | None = None  #: Of these, written to the cache.
    output_tokens: Path | None = None  #: Tokens of the output.
    reasoning_tokens: Path | None = None  #: Of these, reasoning.


_PLACEHOLDER = re.compile(r"\{([a-z_]+)(?::[-+][^{}]*)?\}")
_OF_TURNS = (
    *("model", "base_url", "key", "key_variable", "system", "max_turns", "retries", "attempts"),
    *("session", "workspace", "home"),
)


def _with(known: Sequence[str], value: Any) -> Any:
    """The value, if it has no other placeholders: a text with one would be left out."""
    for name in _PLACEHOLDER.findall(repr(value)):
        if name not in known:
            fix = f"known here: {', '.join(f'`{{{one}}}`' for one in known)}"
            raise ValueError(f"there is no placeholder `{{{name}}}` || {fix}")
    return value


class EventRule(Model):
    """What an event means, if `when` holds; one with `when` alone means nothing."""

    when: Conditions = {}  #: Which events it is for.
    each: Path | None = None  #: A list: `rules` are for each of its entries.
    rules: "list[EventRule]" = []  #: Of the entries of `each`.
    agent: Path | None = None  #: The sub-agent that it is of; none: the agent itself.
    session: Path | None = None  #: The session's id.
    model: Path | None = None  #: The model that answers.
    message: Path | None = None  #: A whole message of the agent's; the last is its answer.
    delta: Path | None = None  #: A part of a message.
    part_of: Path | None = None  #: The message that a `delta` belongs to; else the last one.
    reasoning: Path | None = None  #: What the agent thinks.
    notice: Path | None = None  #: A warning that is no failure.
    call: CallPaths | None = None  #: A tool call.
    result: ResultPaths | None = None  #: A tool's result.
    usage: UsagePaths | None = None  #: Token counts.
    answer: Path | None = None  #: The answer of the turn.
    error: Path | None = None  #: Why the turn failed, unless the agent goes on after it.
    status: Path | None = None  #: The HTTP status of that error.
    end: Bool = False  #: The turn has ended.


class Home(Model):
    """Where the CLI keeps its state, below HOME."""

    folder: HomePath  #: Relative to HOME.
    variable: NonEmptyText | None = None  #: The variable that moves it.


class Address(Model):
    """Where the CLI's model is, so that skillup's gateway can stand in front of it."""

    default: NonEmptyText | None = None  #: Without `base_url`. None: only the CLI knows.
    variable: NonEmptyText | None = None  #: The user's variable that holds it.


class Seed(Model):
    """How a conversation that never ran is written as a session: its rows, one for each message.

    Besides the profile's placeholders: `id`, `order`, `parent`, `parent_order`, `time` and
    `milliseconds` of a row; `text` of a message; `calls` of an answer; `call_id`, `name` and
    `arguments` of a call; `content` and `failed` of its result, which a call may hold, too.
    """

    versions: list[NonEmptyText] = Field(min_length=2, max_length=2)  #: Of the CLI: first and last.
    begin: list[dict[str, Any]] = []  #: Rows before the first message.
    user: dict[str, Any]  #: The row of a user's message.
    assistant: dict[str, Any]  #: The row of an answer.
    call: dict[str, Any]  #: A tool call, one of the `calls` of an answer.
    result: dict[str, Any] | None = None  #: The row of a tool's result.
    tools: dict[ToolKind, NonEmptyText] = {}  #: The tool for calls of a kind.
    document: dict[str, Any] | None = None  #: With `import`: a file that holds the `rows`.
    import_: list[Argument] | None = Field(None, alias="import")  #: Its arguments: `{file}`.
    session: NonEmptyText | None = None  #: The id of the imported session.


class Store(Choice):
    """Where sessions are: what proves that a resumed one holds its earlier turns."""

    what: ClassVar[str] = "a store"
    choices: ClassVar[tuple[str, ...]] = ("files", "sqlite")

    files: HomePath | None = None  #: A glob below the home's folder: JSON lines.
    sqlite: HomePath | None = None  #: A database below the home's folder.
    rows: NonEmptyText | None = None  #: The SQL for a session's rows, in order: `:session`.
    message: Conditions  #: Which rows are messages of the user's.
    new: HomePath | None = None  #: Where a copy of a session goes, so that it can be forked.
    seed: Seed | None = None  #: How `input.history` is written as a session.

    @field_validator("files")
    @classmethod
    def _of_session(cls, value: Any) -> Any:
        return _with(("session", "session_start"), value)


class PermissionModes(Model):
    """Arguments, or variables, for each `permission`; one that is not here is refused."""

    full: list[Text] | dict[str, Text] | None = None  #: Everything runs.
    edits: list[Text] | dict[str, Text] | None = None  #: Files of the workspace may be edited.
    read_only: list[Text] | dict[str, Text] | None = None  #: Nothing is written.


class AgentDescription(Model):
    """A CLI agent: one process for each turn, which resumes the session of the one before."""

    name: NonEmptyText  #: The program, and how messages call it.
    install: Text = "set `command` in the profile"  #: How to get it.
    login: Text = "set `api_key_env` in the profile"  #: How to log in.
    keys: Names = []  #: Its own variables for the key, best first.
    home: Home | None = None  #: Where it keeps its state.
    address: Address = Address.model_construct()  #: Where its model is.
    skills: WorkspacePaths = [".agents/skills"]  #: Where it looks for skills.
    env: dict[str, Text] = {}  #: Variables.
    files: dict[HomePath, Any] = {}  #: Below HOME: a text, or JSON.
    arguments: list[Argument] = []  #: Of every turn.
    start: list[Argument] = []  #: Of a first turn: `{session}` is a new UUID.
    resume: list[Argument] | None = None  #: Of a resumed turn. None: it cannot resume.
    permission: PermissionModes = PermissionModes(full=[])  #: Arguments or variables for each mode.
    prompt: Literal["stdin", "argument"] = "stdin"  #: argument: the last one.
    escape: dict[NonEmptyText, Text] = {}  #: How one begins that begins like the CLI's commands.
    output: Literal["events", "json", "text"] = "events"  #: events: JSON lines.
    noise: Regex | None = None  #: Lines of other text that mean nothing.
    events: list[EventRule] = []  #: What an event means. All that fit are taken.
    ends_with: Literal["event", "exit"] = "event"  #: exit: no event ends a turn.
    tools: dict[ToolKind, Names] = {}  #: The names of its tools, by their kind.
    mcp: Regex | None = None  #: The name of an MCP server's tool: groups `server`, `tool`.
    errors: dict[ErrorKind, Names] = {}  #: Parts of what it says, by kind.
    exit_codes: dict[int, ErrorKind] = {}  #: What they mean.
    store: Store | None = None  #: Where sessions are. Needed to resume.

    @field_validator("arguments", "start", "resume", "env", "files", "permission")
    @classmethod
    def _of_turn(cls, value: Any) -> Any:
        return _with(_OF_TURNS, value)

    @field_validator("mcp")
    @classmethod
    def _names_both(cls, value: str | None) -> str | None:
        if value and {"server", "tool"} - set(compiled_pattern(value, False).groupindex):
            raise ValueError("it lacks a group || name both: (?P<server>…) and (?P<tool>…)")
        return value


CUSTOM_VALUES = (
    *("workspace", "prompt", "messages", "messages_json", "session_input", "session_input_json"),
    *("session_id", "input_file", "output_file", "model", "model_provider", "model_name"),
    *("api_key", "case_id", "variant", "max_turns", "timeout_seconds", "kwargs", "kwargs_json"),
)
"""What ``${NAME}`` in a custom engine stands for, of each call; else it is a variable."""


class CustomProgram(Model):
    """The program of a custom engine: a process a call."""

    command: NonEmptyText  #: A name on `PATH`, or a path.
    args: list[Text] = []  #: Its arguments.
    cwd: NonEmptyText | None = None  #: In the workspace; default: that.
    input_file: NonEmptyText | None = None  #: In the workspace; default: outside of it.
    output_file: NonEmptyText | None = None  #: Where it writes its result; default: stdout.


class CustomService(Model):
    """The HTTP service of a custom engine: a request a call."""

    url: NonEmptyText  #: Its address.
    method: Literal["POST"] = "POST"  #: The only one.
    headers: dict[NonEmptyText, Text] = {}  #: Of each request.
    request_body: Any = None  #: A template; default: the session input.
    files: list[Any] = []  #: Files of the workspace: not sent yet.


class CustomEngine(Checked):
    """An agent by skill-up's contract: called with a session input, it gives a session result."""

    transport: Literal["local", "http"]  #: Which of the two it is.
    conversation_mode: Literal["batch", "stateful"] = "batch"  #: batch: it holds one turn only.
    response_format: Literal["session_result", "text"] = "session_result"  #: text: the answer.
    timeout_seconds: Seconds | None = None  #: Of a call.
    env: dict[NonEmptyText, Text] = {}  #: Variables of the program.
    kwargs: dict[NonEmptyText, Text] = {}  #: Handed on as they are.
    provider: Text | None = None  #: The model's; default: `engine.model.provider`.
    local: CustomProgram | None = None  #: With `transport: local`.
    http: CustomService | None = None  #: With `transport: http`.

    def wrong(self) -> Iterator[str]:
        if getattr(self, self.transport) is None:
            yield f"`transport: {self.transport}` needs `{self.transport}` || add it"
        if self.local and "${api_key}" in str([self.local.command, *self.local.args]):
            yield "other users see arguments || hand `${api_key}` on in `env`"


# The profile.

DESCRIBED = "command"
"""The engine of a profile that describes its agent itself."""
Permission = Literal["full", "edits", "read_only"]
Isolation = Literal["clean", "shared"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"(?=.*[0-9])(?=.*[a-z]).{21,}")


def _no_key(value: str) -> str:
    """Refuse what is a key and not the name of a variable; the message does not repeat it."""
    if _NAME.fullmatch(value) and not _KEY.fullmatch(value):
        return value
    fix = "write the name of the variable that holds the key, such as ANTHROPIC_API_KEY"
    why = "a key itself has no place in a file"
    raise ValueError(f"this is not the name of a variable || {fix}; {why}")


VariableOfKey = Annotated[NonEmptyText, AfterValidator(_no_key)]


class Price(Model):
    """USD per million tokens."""

    input: NonNegative  #: Input tokens that were not cached.
    cached_input: NonNegative | None = None  #: Default: as `input`.
    cache_write: NonNegative | None = None  #: Default: as `input`.
    output: NonNegative  #: Output tokens, reasoning included.


def _by_model(value: Any) -> Any:
    """Prices without a model's name are those of every model."""
    if isinstance(value, dict) and not all(isinstance(one, dict | Price) for one in value.values()):
        return {"": value}
    return value


class Profile(Model):
    """How one engine is run. Every key has a default that the adapter supplies."""

    name: NonEmptyText = ""  #: How it is called in results.
    engine: NonEmptyText = Field(
        description=f"The adapter: {', '.join(ADAPTERS)}, command; or the file of a description."
    )
    agent: AgentDescription | None = None  #: With `engine: command`: what its CLI speaks.
    custom: CustomEngine | None = None  #: With `engine: command`: a custom engine of skill-up's.
    command: Names | None = Field(None, min_length=1)  #: A name or path; with arguments, a list.
    model: NonEmptyText | None = None  #: As the CLI takes it.
    base_url: Text | None = None  #: The model's address, as the CLI takes it.
    api_key_env: VariableOfKey | None = None  #: The variable that holds the key.
    gateway: Literal["on", "off"] = "on"  #: on: skillup has the key, and counts.
    permission: Permission = "full"  #: The same on every turn.
    isolation: Isolation = "clean"  #: clean: a home of its own for each trial.
    session: Literal["resume", "live"] = "resume"  #: live: one process for the conversation.
    args: list[Text] = []  #: More arguments, as they are, on every turn.
    env: dict[str, Text] = {}  #: More variables; ${VAR} is filled in.
    timeout_seconds: Seconds = 300.0  #: A turn's.
    max_turns: PositiveInt | None = None  #: The agent's own steps within a turn.
    retries: NonNegativeInt = 2  #: The CLI's own, within a turn.
    #: For every model, or by model name.
    prices: Annotated[
        dict[str, Price],
        BeforeValidator(_by_model, json_schema_input_type=dict[str, Price] | Price),
    ] = {}


# What the `scripted` engine does. The agent fills in the placeholders of `docs/case-language.md` in
# ``say``, ``run``, ``write``, ``read``, ``skill`` and ``remember``. One that has no value (no such
# turn, group or memory) is an error of the turn; other text in double braces is left alone.


class WriteFile(Model):
    """A file the agent writes."""

    path: NonEmptyText  #: Relative to the workspace.
    content: Text  #: The whole content.


class Step(Choice):
    """One thing the agent does before it answers; it is really done, and seen as a tool call."""

    what = "a step"
    choices = ("say", "run", "write", "read", "skill", "remember", "delay")

    say: NonEmptyText | None = None  #: A message on the way.
    run: NonEmptyText | None = None  #: A shell command; a tool call of kind `shell`.
    write: WriteFile | None = None  #: Writes a file; of kind `write`.
    read: NonEmptyText | None = None  #: A file; of kind `read`.
    skill: NonEmptyText | None = None  #: Loads an installed skill; of kind `skill`.
    remember: dict[VariableName, Text] | None = Field(None, min_length=1)  #: Values to keep.
    delay: Seconds | None = None  #: Seconds to wait.


class ScriptedUsage(Model):
    """The token counts that the agent reports for a turn."""

    input_tokens: NonNegativeInt = 100  #: All input, cached tokens included.
    cached_input_tokens: NonNegativeInt = 0  #: Of these, read from the cache.
    output_tokens: NonNegativeInt = 20  #: All output.


_Reported = Literal["auth", "rate_limit", "quota", "overloaded", "model_error", "max_turns"]


class Misbehave(Model):
    """Faults on request, so that error handling can be tested with a real process."""

    exit_code: Int | None = None  #: End with this code; below 0: by that signal.
    error: _Reported | None = None  #: Report this error.
    message: Text | None = None  #: What that error says, such as `try again in 5 s`.
    garbage: Bool = False  #: Print no whole line of JSON, nor a result.
    no_result: Bool = False  #: End with code 0 and no result event.
    hang: Bool = False  #: Never answer.
    ignore_signals: Bool = False  #: Ignore SIGINT and SIGTERM.
    orphan: Bool = False  #: Leave a child running in a session of its own.
    forget: Bool = False  #: Lose the session's earlier turns.
    new_session: Bool = False  #: Answer from a new session instead.
    flood_bytes: NonNegativeInt = 0  #: Print so much first.
    probability: Fraction = 1.0  #: How often it happens.
    times: PositiveInt | None = None  #: Only the first so many times.


class Reply(Model):
    """One rule: to which messages it answers, and how. The first rule that applies is taken."""

    turn: PositiveInt | None = None  #: Only as the session's n-th turn.
    when: NonEmptyText | None = None  #: Only if this regex matches; case is ignored.
    needs_skill: NonEmptyText | None = None  #: Only if this skill is installed.
    probability: Fraction = 1.0  #: How often the rule applies.
    steps: list[Step] = []  #: What is done before the answer.
    say: Text = ""  #: The answer.
    usage: ScriptedUsage = ScriptedUsage.model_construct()  #: Tokens reported.
    misbehave: Misbehave | None = None  #: A fault, for tests.

    @field_validator("when")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error} || correct it") from error
        return value


def _replies(value: Any) -> Any:
    return {"replies": value} if isinstance(value, list) else value


class Script(Model):
    """All replies of one case (``scripted:`` takes a plain list of replies, too)."""

    replies: list[Reply] = Field(min_length=1)  #: Rules, the first that applies wins.


ScriptOrReplies = Annotated[
    Script, BeforeValidator(_replies, json_schema_input_type=Script | list[Reply])
]
