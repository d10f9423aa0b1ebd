"""The record: all that happened in a trial. Written once, never changed; judges see nothing else.

All times are UTC, ISO 8601; durations are whole milliseconds. What an engine does not tell is
``None``: never 0, never an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import (
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from skillup.schema.base import Model
from skillup.schema.check_specs import ToolKind
from skillup.schema.grade import CheckResult, Judging

RECORD_VERSION = "skillup.record/1"
ON_DISK = {"files": "changes"}
"""The context in which records are dumped that are to be stored: 30,000 files are listed once."""

TurnStatus = Literal["completed", "failed", "skipped", "error"]
"""completed; failed (its post-condition, ``on_fail: fail``); skipped (not sent); error."""

ErrorKind = Literal[
    "engine_not_found",
    "engine_not_usable",
    "auth",
    "rate_limit",
    "quota",
    "overloaded",
    "model_error",
    "network",
    "timeout",
    "crash",
    "protocol",
    "output_limit",
    "session_lost",
    "session_mismatch",
    "no_resume",
    "capture",
    "template",
    "max_turns",
    "budget",
    "setup",
    "unsupported",
    "cancelled",
    "judge",
    "internal",
]
"""The closed list of infrastructure failures; each has a page in ``docs/errors.md``."""


class TurnError(Model):
    """Why a turn (or a whole trial) could not be held: never a verdict on the agent."""

    kind: ErrorKind = Field(description="One of a closed list; see docs/errors.md.")
    message: str = Field(description="What happened and what to do about it, in one or two lines.")
    evidence: str = Field("", description="What the engine said, shortened; secrets masked.")
    retry_after_seconds: float | None = Field(
        None, description="How long the provider asks to wait, as the engine's own error says it."
    )


class Usage(Model):
    """Tokens of one turn, in one meaning for every engine."""

    input_tokens: int | None = Field(None, description="All input, cached tokens included.")
    cached_input_tokens: int | None = Field(None, description="Of these, read from the cache.")
    cache_write_tokens: int | None = Field(None, description="Of these, written to the cache.")
    output_tokens: int | None = Field(None, description="All output, reasoning included.")
    reasoning_tokens: int | None = Field(None, description="Of these, reasoning.")
    requests: int | None = Field(None, description="Requests to the model.")

    def tokens(self) -> int | None:
        """Input and output; the rest is among them. None: neither was told."""
        known = [count for count in (self.input_tokens, self.output_tokens) if count is not None]
        return sum(known) if known else None


class ToolCall(Model):
    """A call of a tool, as the engine announced it."""

    id: str = Field(description="The engine's id of the call, unique within the turn.")
    name: str = Field(description="The engine's own name; MCP tools as `server::tool`.")
    kind: ToolKind = Field(description="The portable kind.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="As the agent gave them.")


class ToolResult(Model):
    """What a tool gave back."""

    call_id: str = Field(description="The call that it answers.")
    status: Literal["success", "error", "unknown"] = Field(
        description="success, error, or unknown where the engine does not say."
    )
    content: str = Field(description="What the agent was shown.")


class TranscriptItem(Model):
    """One thing that was said or done within a turn, in order."""

    type: Literal["message", "reasoning", "tool_call", "tool_result", "notice"] = Field(
        description="What it is."
    )
    text: str | None = Field(None, description="message, reasoning, notice.")
    tool_call: ToolCall | None = Field(None, description="Of a tool_call.")
    tool_result: ToolResult | None = Field(None, description="Of a tool_result.")
    agent: str | None = Field(None, description="The sub-agent that did it; None: the agent.")


class FileState(Model):
    """A file of the workspace at one moment."""

    sha256: str | None = Field(description="Of its bytes; None for a symbolic link.")
    size: int = Field(description="Bytes.")
    executable: bool = Field(False, description="Whether its owner may execute it.")
    link: str | None = Field(None, description="A symbolic link's target.")
    dangling: bool = Field(False, description="A symbolic link that leads to nothing.")
    kept: bool = Field(True, description="False: too large, its bytes were not stored.")


class WorkspaceChanges(Model):
    """What a turn did to the workspace."""

    added: list[str] = Field(default_factory=list, description="Paths, sorted.")
    modified: list[str] = Field(default_factory=list, description="Paths, sorted.")
    deleted: list[str] = Field(default_factory=list, description="Paths, sorted.")
    diff: str = Field("", description="Unified diff of text files, shortened if long.")


class SessionFingerprint(Model):
    """What the session's file held after a turn, so that the next one can be compared with it."""

    session_id: str = Field(description="The engine's id of the session.")
    messages: int = Field(description="User messages in the session.")
    prefix_sha256: str = Field(description="Of the file's bytes up to `prefix_bytes`.")
    prefix_bytes: int = Field(description="How much of the file the hash is over.")
    seeded: bool = Field(
        False, description="It was made of a history, which may have no user message in it."
    )


class ProcessInfo(Model):
    """How the agent's process went."""

    argv: list[str] = Field(default_factory=list, description="Secrets masked.")
    exit_code: int | None = Field(None, description="None: ended by a signal, or never started.")
    signal: int | None = Field(None, description="The signal that ended it.")
    ended_by: str = Field(
        "exit", description="exit, answered, timeout, cancelled, output_limit or not_started."
    )
    peak_memory_bytes: int | None = Field(None, description="Of the whole process tree, sampled.")
    cpu_seconds: float | None = Field(None, description="Of the whole process tree.")
    leftover_processes: int = Field(0, description="Outlived the agent, and were ended.")
    truncated_lines: int = Field(0, description="Lines that were too long to be kept whole.")


class SimulatorInfo(Model):
    """How the simulated user came to a message; its tokens are not the agent's."""

    usage: Usage | None = Field(None, description="Tokens of writing this message.")
    cost_usd: float | None = Field(None, description="None: not known.")
    model: str | None = Field(None, description="Who played the user.")
    cached: bool = Field(False, description="It was known from earlier: it took nothing.")


class SimulatedEnd(Model):
    """How a conversation with a simulated user came to its end."""

    stop: Literal["completed", "impossible", "limit"] = Field(
        description="The user's aim was reached, cannot be reached, or `max_turns` was."
    )
    reason: str = Field("", description="What the simulated user said of it.")
    info: SimulatorInfo | None = Field(None, description="What finding that out took.")


class HistoryItem(Model):
    """A message that was put into the session before the first turn, as it was put there.

    Every call has an id. Its `name` is empty where the case gives only a `kind`.
    """

    role: Literal["user", "assistant", "tool"] = Field(description="Who said it.")
    content: str = Field("", description="What was said, or what the tool gave back.")
    tool_calls: list[ToolCall] = Field(default_factory=list, description="Of the assistant.")
    tool_result: ToolResult | None = Field(None, description="Of a tool.")


class TurnRecord(Model):
    """One user message and everything the agent did until it answered."""

    turn_number: int = Field(description="From 1.")
    status: TurnStatus = Field(description="completed, failed, skipped or error.")
    reason: str = Field("", description="Why it was skipped or failed.")
    source: Literal["case", "simulator", "follow_up", "history"] = Field(
        "case", description="Who wrote the message."
    )
    content: str = Field(description="The message as sent (or, if it was not, as written).")
    response: str = Field("", description="The agent's answer: its last message.")
    transcript: list[TranscriptItem] = Field(
        default_factory=list, description="All that was said and done, in order."
    )
    post_condition_passed: bool | None = Field(None, description="None: there is none.")
    post_condition: list[CheckResult] = Field(
        default_factory=list, description="What the gate found, a result for each of its checks."
    )
    captures: dict[str, str] = Field(
        default_factory=dict, description="Variables taken out of the turn."
    )
    session_id: str | None = Field(None, description="The session that answered.")
    session_verified: bool | None = Field(
        None, description="The session still held the earlier turns; None: there were none."
    )
    session: SessionFingerprint | None = Field(
        None, description="What the session held after the turn."
    )
    usage: Usage | None = Field(None, description="Tokens of this turn alone.")
    cost_usd: float | None = Field(None, description="Of this turn alone; None: not known.")
    model: str | None = Field(None, description="The model that answered, as the engine names it.")
    started_at: str | None = Field(None, description="UTC, ISO 8601; None: not sent.")
    duration_ms: int = Field(0, description="From the message to the end of the answer.")
    changes: WorkspaceChanges | None = Field(
        None, description="What the turn did to the workspace."
    )
    files: dict[str, FileState] | None = Field(None, description="The workspace after the turn.")
    unseen: list[str] = Field(
        default_factory=list,
        description="Paths of the workspace that could not be looked at after the turn; of a "
        "directory, with all that is below it, `/` at the end.",
    )
    files_changed: dict[str, FileState | None] | None = Field(
        None,
        description="On disk, in place of `files`: what differs from the list before it, which is "
        "that of the message before or `initial_files`. null: no such file any more.",
    )
    notes: list[str] = Field(
        default_factory=list,
        description="Warnings of the engine, and what of the workspace was not kept; a line each.",
    )
    unknown_events: int = Field(0, description="Lines of the stream that we did not understand.")
    unread_lines: int = Field(
        0,
        description="Lines of the stream that are no JSON and may have been events: what is not in "
        "the transcript may have happened.",
    )
    workspace: str | None = Field(
        None, description="The agent's directory, as its calls name it; None: not known."
    )
    slash_command: bool = Field(
        False, description="The message was a command of the CLI, which need not answer."
    )
    process: ProcessInfo | None = Field(None, description="How the agent's process went.")
    error: TurnError | None = Field(None, description="Why the turn could not be held.")
    simulator: SimulatorInfo | None = Field(
        None, description="What writing the message took, where a simulated user wrote it."
    )
    held_by: str | None = Field(
        None, description="The job that held this turn, where it is shared with a fork's parent."
    )
    asked_by: list[int] = Field(
        default_factory=list,
        description="Of a follow-up: the place of its check among the turn's `assertions`, and of "
        "theirs, from 0.",
    )
    follow_ups: list[TurnRecord] = Field(
        default_factory=list,
        description="Messages that failed checks asked for, in the same session, in order.",
    )

    def executed(self) -> Iterator[TurnRecord]:
        """The turn itself and all its follow-ups, in the order in which they were held."""
        yield self
        for follow_up in self.follow_ups:
            yield from follow_up.executed()

    def last_answer(self) -> TurnRecord:
        """The last of :meth:`executed`: its answer is the one that stands."""
        return self.follow_ups[-1].last_answer() if self.follow_ups else self

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of this turn, in order."""
        return [item.tool_call for item in self.transcript if item.tool_call is not None]

    @property
    def tool_results(self) -> list[ToolResult]:
        """The results of this turn, in order of arrival."""
        return [item.tool_result for item in self.transcript if item.tool_result is not None]


class EngineInfo(Model):
    """Which engine held the conversation, and how."""

    profile: str = Field(description="The profile's name.")
    adapter: str = Field(description="The adapter that speaks the CLI's protocol.")
    command: list[str] = Field(
        default_factory=list, description="As the profile gives it; empty: the adapter's own."
    )
    version: str | None = Field(None, description="The CLI's version.")
    model: str | None = Field(None, description="As the profile gives it; None: the CLI's default.")
    permission: str = Field("full", description="full, edits or read_only.")
    isolation: str = Field("clean", description="clean or shared.")


class SkillInfo(Model):
    """A skill that was installed for the trial."""

    name: str = Field(description="As its SKILL.md says.")
    sha256: str = Field(description="Over its installed files: path, mode and content.")
    role: Literal["under_test", "distractor"] = Field(
        "under_test", description="Whether it is under test."
    )


class Record(Model):
    """One execution of one case with one profile, in one variant."""

    schema_version: str = Field(RECORD_VERSION, description="The version of this format.")
    run_id: str = Field(description="The run it belongs to.")
    suite: str = Field(description="The suite's name.")
    suite_root: str = Field("", description="Relative to the workspace root where it can be.")
    case_id: str = Field(description="The case's id.")
    case: dict[str, Any] = Field(description="The case as it was run, defaults merged in.")
    engine: EngineInfo = Field(description="Which engine held it, and how.")
    variant: Literal["with_skill", "without_skill"] = Field(
        "with_skill", description="With the skill under test, or without."
    )
    trial: int = Field(1, description="Which repetition, from 1.")
    attempt: int = Field(1, description="Above 1: an earlier attempt met an error and was retried.")
    execution_mode: Literal["multi_turn", "single_shot"] = Field(
        "multi_turn", description="single_shot: all turns were sent as one message."
    )
    skills: list[SkillInfo] = Field(default_factory=list, description="What was installed.")
    started_at: str = Field(description="UTC, ISO 8601.")
    duration_ms: int = Field(
        description="The whole trial, preparation included, but not what it waited for its "
        "provider after refusals."
    )
    session_id: str | None = Field(None, description="The session of the conversation.")
    initial_variables: dict[str, str] = Field(
        default_factory=dict, description="All variables before turn 1."
    )
    variables: dict[str, str] = Field(default_factory=dict, description="All variables at the end.")
    references: dict[str, FileState] = Field(
        default_factory=dict, description="Files of the suite that checks compare with, by path."
    )
    initial_files: dict[str, FileState] | None = Field(None, description="Before turn 1.")
    history: list[HistoryItem] = Field(
        default_factory=list, description="What was put into the session before turn 1."
    )
    turns: list[TurnRecord] = Field(
        default_factory=list, description="In order; those not sent are there too."
    )
    branch_of: str | None = Field(
        None, description="The case whose turns up to the fork it shares; None: no branch."
    )
    simulated_end: SimulatedEnd | None = Field(
        None, description="How the simulated user ended the conversation; None: there was none."
    )
    judging: Judging | None = Field(
        None, description="What judges took while the conversation went on."
    )
    notes: list[str] = Field(
        default_factory=list, description="Artifacts that could not be collected, and why."
    )
    skipped: str | None = Field(None, description="Why the whole case was not held.")
    error: TurnError | None = Field(None, description="What kept the first turn from starting.")

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

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """With the context :data:`ON_DISK`, every list of files but the first as its changes."""
        record = self
        if info.context == ON_DISK:
            turns = _with_changes(self.turns, self.initial_files or {})[0]
            record = self.model_copy(update={"turns": turns})
        dumped: dict[str, Any] = dump(record)
        return dumped

    @model_validator(mode="after")
    def _read_changes(self) -> Record:
        if any(turn.files_changed is not None for turn in self.executed()):
            turns = _with_lists(self.turns, self.initial_files or {})[0]
            self.__dict__["turns"] = turns  # it is frozen from now on
        return self

    def executed(self) -> Iterator[TurnRecord]:
        """Every message with its answer, follow-ups too, in order."""
        for turn in self.turns:
            yield from turn.executed()

    def first_error(self) -> TurnError | None:
        """The trial's own error, else that of the first turn that has one."""
        if self.error is not None:
            return self.error
        return next((turn.error for turn in self.turns if turn.error is not None), None)


Files = Mapping[str, FileState]


def _with_changes(turns: Sequence[TurnRecord], before: Files) -> tuple[list[TurnRecord], Files]:
    """`turns` with changes for lists, and the list that the last of them left."""
    written = []
    for turn in turns:
        update: dict[str, Any] = {}
        if turn.files is not None:
            paths = sorted(before.keys() | turn.files.keys())
            pairs = ((path, before.get(path), turn.files.get(path)) for path in paths)
            # Mostly the same objects: to compare them is slow.
            changed = {path: new for path, old, new in pairs if old is not new and old != new}
            update, before = {"files": None, "files_changed": changed}, turn.files
        update["follow_ups"], before = _with_changes(turn.follow_ups, before)
        written.append(turn.model_copy(update=update))
    return written, before


def _with_lists(turns: Sequence[TurnRecord], before: Files) -> tuple[list[TurnRecord], Files]:
    """`turns` with lists again, and the last of these."""
    read = []
    for turn in turns:
        update: dict[str, Any] = {}
        if turn.files_changed is not None:
            merged = sorted({**before, **turn.files_changed}.items())
            before = {path: state for path, state in merged if state is not None}
            update = {"files": before, "files_changed": None}
        update["follow_ups"], before = _with_lists(turn.follow_ups, before)
        read.append(turn.model_copy(update=update))
    return read, before


# What a trial needs to be gone on with in the middle of its conversation.

CHECKPOINT_VERSION = "skillup.checkpoint/1"


class Checkpoint(Model):
    """A trial after a turn that others follow; its workspace and home are in its scratch."""

    schema_version: str = Field(CHECKPOINT_VERSION, description="The version of this format.")
    record: Record = Field(description="All there is of it so far, the turns too.")
    variables: dict[str, str] = Field(description="What the next message may use.")
    messages: int = Field(description="Messages sent so far, follow-ups too.")
    session: SessionFingerprint = Field(description="What the session held after the turn.")
    chosen_session_id: str = Field(description="The id that the trial chose for its session.")
    skills: dict[str, str] = Field(description="Name → directory, relative to the workspace.")
    session_files: dict[str, int] = Field(description="Of its home: path → size in bytes.")
    workspace_sha256: str = Field(
        description="Over the workspace's paths, sizes, times and modes, with its `.git`."
    )
    asked_sha256: str = Field(description="Over the case and the engine, as they were asked for.")
    elapsed_ms: int = Field(description="Of the trial so far, preparation included.")
    held_seconds: float = Field(description="Of the conversation's own time limit.")
    uncounted: int = Field(0, description="Attempts so far that no `retry_policy` counts.")
