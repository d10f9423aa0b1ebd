"""The record: all that happened in a trial. Written once, never changed; judges see nothing else.

All times are UTC, ISO 8601; durations are whole milliseconds. What an engine does not tell is
``None``: never 0, never an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from skillup.schema.base import Model
from skillup.schema.check_specs import ToolKind
from skillup.schema.grade import CheckResult

RECORD_VERSION = "skillup.record/1"

TurnStatus = Literal["completed", "failed", "skipped", "error"]
"""completed; failed (its post-condition, ``on_fail: fail``); skipped (not sent); error."""

ErrorKind = Literal[
    "engine_not_found",
    "engine_not_usable",
    "auth",
    "rate_limit",
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

    kind: ErrorKind
    message: str = Field(description="What happened and what to do about it, in one or two lines.")
    evidence: str = Field("", description="What the engine said, shortened; secrets masked.")


class Usage(Model):
    """Tokens of one turn, in one meaning for every engine."""

    input_tokens: int | None = Field(None, description="All input, cached tokens included.")
    cached_input_tokens: int | None = Field(None, description="Of these, read from the cache.")
    cache_write_tokens: int | None = Field(None, description="Of these, written to the cache.")
    output_tokens: int | None = Field(None, description="All output, reasoning included.")
    reasoning_tokens: int | None = Field(None, description="Of these, reasoning.")
    requests: int | None = Field(None, description="Requests to the model.")


class ToolCall(Model):
    """A call of a tool, as the engine announced it."""

    id: str
    name: str = Field(description="The engine's own name; MCP tools as `server::tool`.")
    kind: ToolKind
    arguments: dict[str, Any] = Field(default_factory=dict)


class ToolResult(Model):
    """What a tool gave back."""

    call_id: str
    status: Literal["success", "error", "unknown"]
    content: str


class TranscriptItem(Model):
    """One thing that was said or done within a turn, in order."""

    type: Literal["message", "reasoning", "tool_call", "tool_result", "notice"]
    text: str | None = Field(None, description="message, reasoning, notice.")
    tool_call: ToolCall | None = None
    tool_result: ToolResult | None = None
    agent: str | None = Field(None, description="The sub-agent that did it; None: the agent.")


class FileState(Model):
    """A file of the workspace at one moment."""

    sha256: str | None = Field(description="Of its bytes; None for a symbolic link.")
    size: int = Field(description="Bytes.")
    executable: bool = False
    link: str | None = Field(None, description="A symbolic link's target.")
    kept: bool = Field(True, description="False: too large, its bytes were not stored.")


class WorkspaceChanges(Model):
    """What a turn did to the workspace."""

    added: list[str] = Field(default_factory=list)
    modified: list[str] = Field(default_factory=list)
    deleted: list[str] = Field(default_factory=list)
    diff: str = Field("", description="Unified diff of text files, shortened if long.")


class SessionFingerprint(Model):
    """What the session's file held after a turn, so that the next one can be compared with it."""

    session_id: str
    messages: int = Field(description="User messages in the session.")
    prefix_sha256: str = Field(description="Of the file's bytes up to `prefix_bytes`.")
    prefix_bytes: int


class ProcessInfo(Model):
    """How the agent's process went."""

    argv: list[str] = Field(default_factory=list, description="Secrets masked.")
    exit_code: int | None = None
    signal: int | None = None
    ended_by: str = "exit"
    peak_memory_bytes: int | None = Field(None, description="Of the whole process tree, sampled.")
    cpu_seconds: float | None = Field(None, description="Of the whole process tree.")
    leftover_processes: int = Field(0, description="Outlived the agent, and were ended.")
    truncated_lines: int = 0


class TurnRecord(Model):
    """One user message and everything the agent did until it answered."""

    turn_number: int = Field(description="From 1.")
    status: TurnStatus
    reason: str = Field("", description="Why it was skipped or failed.")
    source: Literal["case", "simulator", "follow_up", "history"] = "case"
    content: str = Field(description="The message as sent (or, if it was not, as written).")
    response: str = Field("", description="The agent's answer: its last message.")
    transcript: list[TranscriptItem] = Field(default_factory=list)
    post_condition_passed: bool | None = Field(None, description="None: there is none.")
    post_condition: list[CheckResult] = Field(default_factory=list)
    captures: dict[str, str] = Field(default_factory=dict)
    session_id: str | None = None
    session_verified: bool | None = Field(
        None, description="The session still held the earlier turns; None: there were none."
    )
    session: SessionFingerprint | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    model: str | None = None
    started_at: str | None = None
    duration_ms: int = 0
    changes: WorkspaceChanges | None = None
    files: dict[str, FileState] | None = Field(None, description="The workspace after the turn.")
    notes: list[str] = Field(
        default_factory=list,
        description="Warnings of the engine, and what of the workspace was not kept; a line each.",
    )
    unknown_events: int = Field(0, description="Lines of the stream that we did not understand.")
    process: ProcessInfo | None = None
    error: TurnError | None = None
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

    profile: str
    adapter: str
    command: list[str] = Field(default_factory=list)
    version: str | None = None
    model: str | None = None
    permission: str = "full"
    isolation: str = "clean"


class SkillInfo(Model):
    """A skill that was installed for the trial."""

    name: str
    sha256: str = Field(description="Over its installed files: path, mode and content.")
    role: Literal["under_test", "neighbour"] = "under_test"


class Record(Model):
    """One execution of one case with one profile, in one variant."""

    schema_version: str = RECORD_VERSION
    run_id: str
    suite: str
    suite_root: str = Field("", description="Relative to the workspace root where it can be.")
    case_id: str
    case: dict[str, Any] = Field(description="The case as it was run, defaults merged in.")
    engine: EngineInfo
    variant: Literal["with_skill", "without_skill"] = "with_skill"
    trial: int = 1
    attempt: int = Field(1, description="Above 1: an earlier attempt met an error and was retried.")
    execution_mode: Literal["multi_turn", "single_shot"] = "multi_turn"
    skills: list[SkillInfo] = Field(default_factory=list)
    started_at: str
    duration_ms: int
    session_id: str | None = None
    variables: dict[str, str] = Field(default_factory=dict)
    references: dict[str, FileState] = Field(
        default_factory=dict, description="Files of the suite that checks compare with, by path."
    )
    initial_files: dict[str, FileState] | None = Field(None, description="Before turn 1.")
    turns: list[TurnRecord] = Field(default_factory=list)
    notes: list[str] = Field(
        default_factory=list, description="Artifacts that could not be collected, and why."
    )
    skipped: str | None = Field(None, description="Why the whole case was not held.")
    error: TurnError | None = Field(None, description="What kept the first turn from starting.")

    def first_error(self) -> TurnError | None:
        """The trial's own error, else that of the first turn that has one."""
        if self.error is not None:
            return self.error
        return next((turn.error for turn in self.turns if turn.error is not None), None)
