"""The record: all that happened in a trial. Written once, never changed; judges see nothing else.

All times are UTC, ISO 8601; durations are whole milliseconds. What an engine does not report is
``None``: never 0, never an estimate.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from skillup.schema.base import ErrorKind as ErrorKind
from skillup.schema.base import Stored
from skillup.schema.checks import ToolKind
from skillup.schema.grade import CheckResult, Judging, SimulationEnd

RECORD_VERSION = "skillup.record/2"

TurnStatus = Literal["completed", "failed", "skipped", "error"]
"""completed; failed (its post-condition, ``on_fail: fail``); skipped (not sent); error."""
MessageSource = Literal["case", "simulator", "follow_up", "history"]
ItemType = Literal["message", "reasoning", "tool_call", "tool_result", "question", "notice"]
Variant = Literal["with_skill", "without_skill"]
ExecutionMode = Literal["multi_turn", "single_shot"]


class TurnError(Stored):
    """Why a turn (or a whole trial) could not be run: never a verdict on the agent."""

    kind: ErrorKind  #: One of a closed list; see docs/errors.md.
    message: str  #: What happened and what to do about it, in one or two lines.
    evidence: str = ""  #: What the engine said, shortened; secrets masked.
    retry_after_seconds: float | None = None  #: The wait that the provider asks for.


class Usage(Stored):
    """Tokens of one turn, in one meaning for every engine."""

    input_tokens: int | None = None  #: All input, cached tokens included.
    cached_input_tokens: int | None = None  #: Of these, read from the cache.
    cache_write_tokens: int | None = None  #: Of these, written to the cache.
    output_tokens: int | None = None  #: All output, reasoning included.
    reasoning_tokens: int | None = None  #: Of these, reasoning.
    requests: int | None = None  #: Requests to the model.

    def tokens(self) -> int | None:
        """Input and output; the rest is among them. None: neither is known."""
        known = [count for count in (self.input_tokens, self.output_tokens) if count is not None]
        return sum(known) if known else None

    def agrees(self, other: "Usage") -> bool:
        """Whether input and output are the same, within 5 % or 10 tokens."""
        pairs = (self.input_tokens, other.input_tokens), (self.output_tokens, other.output_tokens)
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        return all(abs(a - b) <= max(10, 0.05 * max(a, b)) for a, b in known)


class ToolCall(Stored):
    """A call of a tool, as the engine announced it."""

    id: str  #: The engine's id of the call, unique within the turn.
    name: str  #: The engine's own name; MCP tools as `server::tool`.
    kind: ToolKind  #: The portable kind.
    arguments: dict[str, Any] = {}  #: As the agent gave them.


class ToolResult(Stored):
    """What a tool gave back."""

    call_id: str  #: The call that it answers.
    status: Literal["success", "error", "unknown"]  #: unknown: not reported.
    content: str  #: What the agent was shown.


class Question(Stored):
    """What came of a question that the agent asked in the middle of a turn."""

    options: list[str] = []  #: What could be chosen.
    answer: list[str] | None = None  #: What was answered, by the case; None: nothing.

    def __str__(self) -> str:
        answer = "not answered" if self.answer is None else f"answered: {', '.join(self.answer)}"
        return f"{answer} (options: {', '.join(self.options)})" if self.options else answer


class TranscriptItem(Stored):
    """One thing that was said or done within a turn, in order."""

    type: ItemType  #: What it is.
    text: str | None = None  #: message, reasoning, question, notice.
    question: Question | None = None  #: Of a question.
    tool_call: ToolCall | None = None  #: Of a tool_call.
    tool_result: ToolResult | None = None  #: Of a tool_result.
    agent: str | None = None  #: The sub-agent that did it; None: the agent.


@dataclass(slots=True)
class FileState:
    """A file of the workspace at one moment. Never changed after it was made."""

    # No model: workspaces have many, and a model takes eight times the memory.
    sha256: Annotated[str | None, Field(description="Of its bytes; None for a symbolic link.")]
    size: Annotated[int, Field(description="Bytes.")]
    executable: Annotated[bool, Field(description="Whether its owner may execute it.")] = False
    link: Annotated[str | None, Field(description="A symbolic link's target.")] = None
    dangling: Annotated[bool, Field(description="A symbolic link that leads to nothing.")] = False
    kept: Annotated[bool, Field(description="False: too large, its bytes were not stored.")] = True


class WorkspaceChanges(Stored):
    """What a turn did to the workspace."""

    added: list[str] = []  #: Paths, sorted.
    modified: list[str] = []  #: Paths, sorted.
    deleted: list[str] = []  #: Paths, sorted.
    diff: str = ""  #: Unified diff of text files, shortened if long.


class SessionFingerprint(Stored):
    """What the session's file has after a turn, so that the next one can be compared with it."""

    session_id: str  #: The engine's id of the session.
    messages: int  #: User messages in the session.
    prefix_sha256: str = ""  #: Of the file's bytes up to `prefix_bytes`.
    prefix_bytes: int = 0  #: How much of the file the hash is over.
    seeded: bool = False  #: It was made of a history.


class ProcessInfo(Stored):
    """How the agent's process went."""

    argv: list[str] = []  #: Secrets masked.
    exit_code: int | None = None  #: None: ended by a signal, or never started.
    signal: int | None = None  #: The signal that ended it.
    ended_by: str = "exit"  #: How it ended.
    leftover_processes: int = 0  #: Outlived the agent, and were ended.


class Refusal(Stored):
    """A request to the model that its provider refused for now."""

    status: int  #: Of HTTP: 429, 503 or 529.
    retry_after_seconds: float | None = None  #: The wait that its headers ask for.


class Traffic(Stored):
    """What passed between the agent and its model in a turn, as the gateway saw it."""

    requests: int  #: With tools and the turn's message: the agent's own.
    side_requests: int = 0  #: Others: titles, sub-agents, summaries.
    usage: Usage | None = None  #: Tokens of `requests`, by the provider's answers.
    side_usage: Usage | None = None  #: Tokens of `side_requests`.
    cost_usd: float | None = None  #: Of both, by the profile's prices.
    refused: list[Refusal] = []  #: Requests that the provider refused for now.
    sha256: list[str] = []  #: Of the body of each of `requests`; 16 digits.
    continued: bool | None = None  #: Whether `requests` held all earlier messages, in order.
    usage_differs: bool = False  #: The CLI's count is over 5 % off.

    def total(self) -> Usage | None:
        """Tokens of all requests; None: nobody has said."""
        counts = total_usage((self.usage, self.side_usage))
        return Usage(**counts) if counts else None


class SimulatorInfo(Stored):
    """How the simulated user came to a message; its tokens are not the agent's."""

    usage: Usage | None = None  #: Tokens of writing this message.
    cost_usd: float | None = None  #: None: not known.
    model: str | None = None  #: Who played the user.
    cached: bool = False  #: It was known from earlier: it took nothing.
    sampling: dict[str, float] = {}  #: Temperature and seed that a model took.


class SimulatedEnd(Stored):
    """How a conversation with a simulated user came to its end."""

    stop: SimulationEnd  #: Why it ended.
    reason: str = ""  #: What the simulated user said of it.
    info: SimulatorInfo | None = None  #: What finding that out took.


class HistoryItem(Stored):
    """A message put into the session before turn 1; calls may have a kind and no `name`."""

    role: Literal["user", "assistant", "tool"]  #: Who said it.
    content: str = ""  #: What was said, or what the tool gave back.
    tool_calls: list[ToolCall] = []  #: Of the assistant.
    tool_result: ToolResult | None = None  #: Of a tool.


class TurnRecord(Stored):
    """One user message and everything the agent did until it answered."""

    turn_number: int  #: From 1.
    status: TurnStatus  #: completed, failed, skipped or error.
    reason: str = ""  #: Why it was skipped or failed.
    source: MessageSource = "case"  #: Who wrote it.
    content: str  #: The message as sent (or, if it was not, as written).
    response: str = ""  #: The agent's answer: its last message.
    transcript: list[TranscriptItem] = []  #: All that was said and done.
    post_condition_passed: bool | None = None  #: None: there is none.
    post_condition: list[CheckResult] = []  #: What the gate found.
    captures: dict[str, str] = {}  #: Variables taken out of the turn.
    session_id: str | None = None  #: The session that answered.
    session_verified: bool | None = None  #: None: there were no earlier turns.
    session: SessionFingerprint | None = None  #: What the session has after the turn.
    usage: Usage | None = None  #: Tokens of this turn alone.
    cost_usd: float | None = None  #: Of this turn alone; None: not known.
    model: str | None = None  #: The model that answered, as the engine names it.
    started_at: str | None = None  #: UTC, ISO 8601; None: not sent.
    duration_ms: int = 0  #: From the message to the end of the answer.
    changes: WorkspaceChanges | None = None  #: What the turn did to the workspace.
    files: dict[str, FileState] | None = None  #: The workspace after the turn.
    unseen: list[str] = []  #: Paths that could not be read; `/`: all below.
    files_changed: dict[str, FileState | None] | None = None  #: On disk: changes; null: gone.
    notes: list[str] = []  #: Warnings, a line each.
    unknown_events: int = 0  #: Lines of the stream that we did not understand.
    unread_lines: int = 0  #: Lines that are no JSON, and may be events.
    workspace: str | None = None  #: The directory, as the agent names it.
    slash_command: bool = False  #: It was a command of the CLI.
    process: ProcessInfo | None = None  #: How the agent's process went.
    traffic: Traffic | None = None  #: What passed to the model and back; None: no gateway.
    error: TurnError | None = None  #: Why the turn could not be run.
    simulator: SimulatorInfo | None = None  #: What writing the message took.
    counted_by: str | None = None  #: The job that ran a shared turn.
    asked_by: list[int] = []  #: A follow-up's place among the assertions.
    follow_ups: "list[TurnRecord]" = []  #: Messages of failed checks.

    def executed(self) -> Iterator["TurnRecord"]:
        """The turn itself and all its follow-ups, in the order in which they were run."""
        yield self
        for follow_up in self.follow_ups:
            yield from follow_up.executed()

    def last_answer(self) -> "TurnRecord":
        """The last of :meth:`executed`: its answer is the one that stands."""
        return self.follow_ups[-1].last_answer() if self.follow_ups else self

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [item.tool_call for item in self.transcript if item.tool_call is not None]

    @property
    def tool_results(self) -> list[ToolResult]:
        return [item.tool_result for item in self.transcript if item.tool_result is not None]


class EngineInfo(Stored):
    """Which engine ran the conversation, and how."""

    profile: str  #: The profile's name.
    adapter: str  #: The adapter that speaks the CLI's protocol.
    command: list[str] = []  #: As the profile gives it; empty: the adapter's own.
    version: str | None = None  #: The CLI's version.
    model: str | None = None  #: As the profile gives it; None: the CLI's default.
    permission: str = "full"  #: full, edits or read_only.
    isolation: str = "clean"  #: clean or shared.


class SandboxInfo(Stored):
    """The sandbox of a trial."""

    kind: str  #: none, bubblewrap, docker or podman.
    asked: str  #: As the suite says, or the variable SKILLUP_SANDBOX.
    probe: str = ""  #: Which version; of none: why there was none.
    image: str | None = None  #: Of a container.
    network: list[str] = []  #: Hosts beside the model; `*`: all.
    read: list[str] = []  #: What the suite opened for reading.
    open: list[str] = []  #: What is open that is closed elsewhere.
    limits: dict[str, int] = {}  #: As the suite says.


class SkillInfo(Stored):
    """A skill that was installed for the trial."""

    name: str  #: As its SKILL.md says.
    sha256: str  #: Over its installed files: path, mode and content.
    role: Literal["under_test", "distractor"] = "under_test"  #: Its part.


class Record(Stored):
    """One execution of one case with one profile, in one variant."""

    schema_version: str = RECORD_VERSION  #: The version of this format.
    run_id: str  #: The run it belongs to.
    suite: str  #: The suite's name.
    suite_root: str = ""  #: Relative to the workspace root where it can be.
    case_id: str  #: The case's id.
    case: dict[str, Any]  #: The case as it was run, defaults merged in.
    engine: EngineInfo  #: Which engine ran it, and how.
    sandbox: SandboxInfo | None = None  #: Where it ran; None: on the machine, as it is.
    variant: Variant = "with_skill"  #: With the skill, or without.
    trial: int = 1  #: Which repetition, from 1.
    attempt: int = 1  #: Above 1: an earlier attempt met an error and was retried.
    execution_mode: ExecutionMode = "multi_turn"  #: How turns were sent.
    skills: list[SkillInfo] = []  #: What was installed.
    started_at: str  #: UTC, ISO 8601.
    duration_ms: int  #: Preparation included, waits not.
    session_id: str | None = None  #: The session of the conversation.
    initial_variables: dict[str, str] = {}  #: All variables before turn 1.
    variables: dict[str, str] = {}  #: All variables at the end.
    references: dict[str, FileState] = {}  #: Files that checks compare with.
    initial_files: dict[str, FileState] | None = None  #: Before turn 1.
    history: list[HistoryItem] = []  #: What came before turn 1.
    turns: list[TurnRecord] = []  #: In order; those not sent are there too.
    branch_of: str | None = None  #: The case that it is a branch of.
    simulated_end: SimulatedEnd | None = None  #: How the simulated user ended it.
    judging: Judging | None = None  #: What judges took while the conversation went on.
    notes: list[str] = []  #: Artifacts that could not be collected, and why.
    skipped: str | None = None  #: Why the whole case was not run.
    error: TurnError | None = None  #: What kept the first turn from starting.

    def variables_after(self, turn_number: int | None) -> dict[str, str]:
        """The variables as they stood when that turn ended; None: when the conversation did."""
        values = dict(self.initial_variables)
        for turn in self.turns:
            if turn_number is None or turn.turn_number <= turn_number:
                values |= turn.captures
        return values

    @field_validator("case")
    @classmethod
    def _is_a_case(cls, case: dict[str, Any]) -> dict[str, Any]:
        """Where readers look into the case there are mappings; else the record is damaged."""
        for path in (("vars",), ("user_simulator",), ("input", "conversation", "persona")):
            given: Any = case
            for key in path:
                given = given.get(key) or {}
                if not isinstance(given, dict):
                    raise ValueError(f"`{key}` of the case is no mapping")  # noqa: TRY004  pydantic reports these
        return case

    def on_disk(self) -> Self:
        """Every list of files but the first as its changes."""
        turns = _with_files(self.turns, self.initial_files or {}, as_changes=True)[0]
        changed = any(new is not old for new, old in zip(turns, self.turns, strict=True))
        return self.model_copy(update={"turns": turns}) if changed else self

    @model_validator(mode="after")
    def _read_changes(self) -> Self:
        if any(turn.files_changed is not None for turn in self.executed()):
            turns = _with_files(self.turns, self.initial_files or {}, as_changes=False)[0]
            self.__dict__["turns"] = turns  # it is frozen from now on
        return self

    def executed(self) -> Iterator["TurnRecord"]:
        """Every message with its answer, follow-ups too, in order."""
        for turn in self.turns:
            yield from turn.executed()

    def first_error(self) -> TurnError | None:
        """The trial's own error, else that of the first turn that has one."""
        return self.error or next((turn.error for turn in self.turns if turn.error), None)


Files = Mapping[str, FileState]


def _with_files(
    turns: Sequence[TurnRecord], before: Files, *, as_changes: bool
) -> tuple[list[TurnRecord], Files]:
    """`turns` with every list of files as its changes to the one before, or as a list; the last."""
    made = []
    for turn in turns:
        update: dict[str, Any] = {}
        if as_changes and turn.files is not None:
            changed: dict[str, FileState | None] = {}
            if turn.files is not before:
                for path, new in turn.files.items():
                    old = before.get(path)
                    if old is not new and old != new:  # mostly the same object: to compare is slow
                        changed[path] = new
                changed |= dict.fromkeys(before.keys() - turn.files.keys())
            update = {"files": None, "files_changed": dict(sorted(changed.items()))}
            before = turn.files
        elif not as_changes and turn.files_changed is not None:
            merged = sorted({**before, **turn.files_changed}.items())
            before = {path: state for path, state in merged if state is not None}
            update = {"files": before, "files_changed": None}
        if turn.follow_ups:
            follow_ups, before = _with_files(turn.follow_ups, before, as_changes=as_changes)
            update["follow_ups"] = follow_ups
        made.append(turn.model_copy(update=update) if update else turn)
    return made, before


CHECKPOINT_VERSION = "skillup.checkpoint/2"


class Checkpoint(Stored):
    """A trial after a turn that others follow; its workspace and home are in its scratch."""

    schema_version: str = CHECKPOINT_VERSION  #: The version of this format.
    record: Record  #: All there is of it so far, the turns too.
    variables: dict[str, str]  #: What the next message may use.
    messages: int  #: Messages sent so far, follow-ups too.
    session: SessionFingerprint  #: What the session has after the turn.
    chosen_session_id: str  #: The id that the trial chose for its session.
    skills: dict[str, str]  #: Name → directory, relative to the workspace.
    session_files: dict[str, int]  #: Of its home: path → size in bytes.
    workspace_sha256: str  #: Over paths, sizes, times and modes, with `.git`.
    asked_sha256: str  #: Over the case and the engine, as they were asked for.
    elapsed_ms: int  #: Of the trial so far, preparation included.
    elapsed_seconds: float  #: Of the conversation's own time limit.
    uncounted: int = 0  #: Attempts so far that no `retry_policy` counts.

    def on_disk(self) -> Self:
        return self.model_copy(update={"record": self.record.on_disk()})


def utc_now() -> str:
    """This moment, UTC, ISO 8601 with milliseconds."""
    seconds, part = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_to_the_second(seconds)}.{part:03}Z"


@lru_cache(1)  # Asked for several times in each trial
def _to_the_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


# Sums of what messages and judges used; what nobody reported stays unknown.


def total_usage(usages: Iterable[Usage | None]) -> dict[str, Any] | None:
    """The sum by field, over those that are known; a field that nobody reported stays None."""
    known = [vars(usage) for usage in usages if usage is not None]
    if len(known) < 2:
        return dict(known[0]) if known else None
    return {name: total_cost(usage[name] for usage in known) for name in Usage.model_fields}


def total_cost(amounts: Iterable[Any]) -> Any:
    """The sum of those that are known; None if none is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def joined(*parts: Judging | None) -> Judging | None:
    """The sum of several; None if there is none."""
    given = [part for part in parts if part is not None]
    if not given:
        return None
    return Judging(
        calls=sum(part.calls for part in given),
        cached_calls=sum(part.cached_calls for part in given),
        models=list(dict.fromkeys(name for part in given for name in part.models)),
        usage=total_usage(Usage(**part.usage) if part.usage else None for part in given),
        cost_usd=total_cost(part.cost_usd for part in given),
    )
