"""One turn as one process: start it, feed its lines to a parser, say what went wrong with it."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from skillup.engines.base import ItemWatcher, Progress, TrialContext, TurnRequest
from skillup.engines.failures import Cli, Failure, shortened, turn_error
from skillup.process import ProcessOutcome, ProcessRequest, run_process
from skillup.redaction.secrets import Secrets
from skillup.schema.check_specs import ToolKind
from skillup.schema.record import (
    ProcessInfo,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnError,
    Usage,
)

# What the parsers of event streams have in common: items in order, and what a turn came to.

_CONTENT_CHARACTERS = 1 << 20
_UNKNOWN_CHARACTERS = 500
# Those that come after are in the raw stream alone: a flood of them would fill the memory.
_UNKNOWN_KEPT = 1000
# Deeper data could be read, and neither be checked nor written into a record.
_DEEPEST = 100
_LARGEST_COUNT = 1 << 53
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(slots=True)
class ParsedTurn:
    """A turn as its event stream tells it."""

    session_id: str | None = None
    response: str = ""
    items: list[TranscriptItem] = field(default_factory=list)
    usage: Usage | None = None
    cost_usd: float | None = None
    model: str | None = None
    version: str | None = None
    notices: list[str] = field(default_factory=list)
    unknown_events: int = 0
    unread_lines: int = 0
    finished: bool = False
    """The stream holds the event that ends a turn."""
    failure: Failure | None = None


class Transcript:
    """Collects a turn's items. Nothing it is given makes it raise."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        self.items: list[TranscriptItem] = []
        self.notices: list[str] = []
        self.unknown = 0
        self.unread = 0
        self._progress = progress
        whoever: object = progress
        self._watcher = whoever if isinstance(whoever, ItemWatcher) else None

    def _add(self, item: TranscriptItem) -> None:
        self.items.append(item)
        if self._watcher is not None:
            self._watcher.item(item)

    def message(self, text: str, agent: str | None = None) -> None:
        """Something the agent (or a sub-agent) said."""
        if text:
            self._add(TranscriptItem(type="message", text=text, agent=agent))
            self._progress("writes")

    def reasoning(self, text: str, agent: str | None = None) -> None:
        """Something the agent thought."""
        if text:
            self._add(TranscriptItem(type="reasoning", text=text, agent=agent))
            self._progress("thinks")

    def call(
        self,
        call_id: str,
        name: str,
        kind: ToolKind,
        arguments: Mapping[str, Any],
        agent: str | None = None,
    ) -> None:
        """A tool is called."""
        call = ToolCall(id=call_id, name=name, kind=kind, arguments=dict(arguments))
        self._add(TranscriptItem(type="tool_call", tool_call=call, agent=agent))
        first = next((value for value in arguments.values() if isinstance(value, str)), "")
        self._progress(f"{name} {' '.join(first.split())[:60]}".rstrip())

    def result(
        self,
        call_id: str,
        status: Literal["success", "error", "unknown"],
        content: str,
        agent: str | None = None,
    ) -> None:
        """A tool has answered."""
        if len(content) > _CONTENT_CHARACTERS:
            left_out = len(content) - _CONTENT_CHARACTERS
            content = f"{content[:_CONTENT_CHARACTERS]}\n… {left_out} characters left out …"
        result = ToolResult(call_id=call_id, status=status, content=content)
        self._add(TranscriptItem(type="tool_result", tool_result=result, agent=agent))

    def notice(self, text: str) -> None:
        """A warning that is no failure."""
        if text and text not in self.notices:
            self.notices.append(text)
            self._add(TranscriptItem(type="notice", text=text))

    def unknown_event(self, event: Any) -> None:
        """An event that we do not understand: counted, and kept in short.

        A text is a line that is no JSON. With a brace in it, it may be an event that got cut, or
        mixed with something else: what it told is not known.
        """
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        if isinstance(event, str) and ("{" in text or "}" in text):
            self.unread += 1
        else:
            self.unknown += 1
        if self.unknown + self.unread > _UNKNOWN_KEPT:
            return
        text = f"unknown event: {text[:_UNKNOWN_CHARACTERS]}"
        self._add(TranscriptItem(type="notice", text=text))


def read_event(line: bytes) -> dict[str, Any] | str | None:
    """The JSON object of a line; its text if it is none; None if it is blank."""
    if not line.strip():
        return None
    try:
        # NaN and Infinity are no JSON, and could not be written as such again.
        event = json.loads(line, parse_constant=str)
        if _ESCAPED_SURROGATE.search(line):
            event = _without_lone_surrogates(event)
        if line.count(b"{") + line.count(b"[") > _DEEPEST:
            event = _without_depths(event, _DEEPEST)
    except (ValueError, RecursionError):
        event = None
    return event if isinstance(event, dict) else line.decode(errors="replace")


def _without_depths(value: Any, room: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if room == 0:
        return "… nested too deep …"
    if isinstance(value, dict):
        return {key: _without_depths(item, room - 1) for key, item in value.items()}
    return [_without_depths(item, room - 1) for item in value]


def _without_lone_surrogates(value: Any) -> Any:
    """Half of a character cannot be written as UTF-8; agents cut texts in such places."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {
            _without_lone_surrogates(key): _without_lone_surrogates(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without_lone_surrogates(item) for item in value]
    return value


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """The value if it is a text; "" for nothing; else its JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_count(value: Any) -> int | None:
    """The value if it is a whole number that can be a count of something."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT:
        return value
    return None


def as_amount(value: Any) -> float | None:
    """The value if it is a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= _LARGEST_COUNT or not math.isfinite(value):
        return None
    return float(value)


def content_text(content: Any) -> str:
    """The text of a message's or a tool result's content: a text, or a list of blocks."""
    if not isinstance(content, list):
        return as_text(content)
    parts = []
    for block in content:
        if isinstance(block, dict) and not isinstance(block.get("text"), str):
            parts.append(f"[{as_text(block.get('type')) or 'block'}]")
        else:
            parts.append(block["text"] if isinstance(block, dict) else as_text(block))
    return "\n".join(parts)


_LAST_LINES = 4
_LINE_CHARACTERS = 500


class EventParser(Protocol):
    """Turns lines of an event stream into a turn. Pure: no files, no clock, never raises."""

    @property
    def closed(self) -> bool:
        """Whether the event that ends a turn has come, and nothing of another turn after it."""
        ...

    def feed(self, line: bytes) -> None:
        """Take the next line, without its newline."""
        ...

    def result(self) -> ParsedTurn:
        """What the lines so far came to."""
        ...


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a CLI is started for one turn."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdin: bytes
    secrets: Secrets


@dataclass(frozen=True, slots=True)
class ProcessTurn:
    """A turn's process, its events, and the first thing that went wrong with either."""

    parsed: ParsedTurn
    error: TurnError | None
    process: ProcessInfo | None
    notices: tuple[str, ...] = ()


async def run_turn(
    cli: Cli,
    invocation: Invocation,
    parser: EventParser,
    turn: TurnRequest,
    trial: TrialContext,
    explain: Callable[[ProcessOutcome], Failure | None],
    on_line: Callable[[], None] = lambda: None,
) -> ProcessTurn:
    """Runs the turn's process to its end.

    `explain` says what the CLI's stderr means where its events do not say it; `on_line` is called
    before a line is masked, if there are secrets. Raw copies of both
    streams are written to the trial's ``raw_dir``.
    """
    if not _is_real_directory(trial.workspace):
        what = f"the workspace {trial.workspace} is gone or was replaced; the agent was not called"
        return ProcessTurn(ParsedTurn(), turn_error(cli, "setup", what), None)
    program = invocation.argv[0]
    if not is_there(program, invocation.env, trial.workspace):
        missing = turn_error(cli, "engine_not_found", f"there is no program `{program}`")
        return ProcessTurn(ParsedTurn(), missing, None)
    trial.raw_dir.mkdir(parents=True, exist_ok=True)
    stem = turn.stem or f"turn-{turn.number:02d}"
    last_lines: deque[bytes] = deque(maxlen=_LAST_LINES)

    def take(line: bytes) -> None:
        last_lines.append(line[:_LINE_CHARACTERS])
        parser.feed(line)

    def redact(line: bytes) -> bytes:
        on_line()  # it may learn of secrets
        return invocation.secrets.mask_bytes(line)

    outcome = await run_process(
        ProcessRequest(
            argv=invocation.argv,
            cwd=trial.workspace,
            env=invocation.env,
            stdin=invocation.stdin,
            timeout_seconds=turn.timeout_seconds,
            stdout_path=trial.raw_dir / f"{stem}.stdout.jsonl",
            stderr_path=trial.raw_dir / f"{stem}.stderr.txt",
            marker=trial.marker,
            has_answered=lambda: parser.closed,
            redact=redact if invocation.secrets else None,
        ),
        take,
    )
    parsed = parser.result()
    error: TurnError | None = None
    failure = _failure(outcome, parsed, turn, explain)
    if failure is not None:
        mask = invocation.secrets.mask
        evidence = mask(_evidence(failure, outcome, last_lines, parsed))
        error = turn_error(cli, failure.kind, mask(failure.said), evidence)
    notices = [f"process {left.pid} ({left.name}) could not be ended" for left in outcome.survivors]
    if outcome.ended_by == "answered":
        notices.append(f"{cli.name} did not end by itself after its answer, and was ended")
    return ProcessTurn(parsed, error, _process_info(invocation, outcome), tuple(notices))


def _is_real_directory(workspace: Path) -> bool:
    """Whether it still is where it was made: through a link an agent would work somewhere else."""
    return workspace.is_dir() and workspace.resolve() == workspace


def is_there(program: str, env: Mapping[str, str], cwd: Path) -> bool:
    """Whether the program exists, on the PATH or as a path relative to `cwd`."""
    if "/" in program:
        return (cwd / program).exists()
    return shutil.which(program, path=env.get("PATH")) is not None


def _failure(
    outcome: ProcessOutcome,
    parsed: ParsedTurn,
    turn: TurnRequest,
    explain: Callable[[ProcessOutcome], Failure | None],
) -> Failure | None:
    """The first thing that went wrong, in the order of what explains the rest."""
    if outcome.ended_by == "not_started":
        return Failure("engine_not_usable", outcome.start_error or "it did not start")
    if outcome.ended_by == "timeout":
        limit = turn.limit or f"{turn.timeout_seconds:g} s"
        return Failure("timeout", f"no answer within {limit}; it was ended")
    if outcome.ended_by == "output_limit":
        return Failure("output_limit", "it wrote more output than is allowed, and was ended")
    if parsed.failure is not None:
        return parsed.failure
    if outcome.ended_by == "answered" and parsed.finished:
        return None
    if outcome.signal is not None:
        return Failure("crash", f"it was killed by signal {outcome.signal}")
    if outcome.exit_code != 0:
        return explain(outcome) or _unexplained_exit(outcome, parsed)
    if not parsed.finished:
        return explain(outcome) or Failure(
            "protocol", "it ended with exit code 0 but without the event that ends a turn"
        )
    return None


def _unexplained_exit(outcome: ProcessOutcome, parsed: ParsedTurn) -> Failure:
    if outcome.exit_code in (126, 127) and not parsed.items:
        return Failure("engine_not_usable", f"it did not start: {_last_line(outcome.stderr_tail)}")
    said = _last_line(outcome.stderr_tail)
    what = f"it ended with exit code {outcome.exit_code}" + " after its answer" * parsed.finished
    return Failure("crash", f"{what}: {said}" if said else what)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _evidence(
    failure: Failure, outcome: ProcessOutcome, last_lines: deque[bytes], parsed: ParsedTurn
) -> str:
    parts = [failure.said] if len(failure.said) > 300 else []
    parts += parsed.notices[-3:]
    if outcome.stderr_tail.strip():
        parts.append(f"stderr: {shortened(outcome.stderr_tail, 1500)}")
    if last_lines:
        lines = "\n".join(line.decode(errors="replace") for line in last_lines)
        parts.append(f"last lines of stdout:\n{lines}")
    return "\n".join(parts)


def _process_info(invocation: Invocation, outcome: ProcessOutcome) -> ProcessInfo:
    return ProcessInfo(
        argv=[invocation.secrets.mask(argument) for argument in invocation.argv],
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        ended_by=outcome.ended_by,
        peak_memory_bytes=outcome.peak_memory_bytes,
        cpu_seconds=outcome.cpu_seconds,
        leftover_processes=len(outcome.leftover),
        truncated_lines=outcome.truncated_lines,
    )
