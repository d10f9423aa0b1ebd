"""One turn as one process: start it, feed its lines to a parser, say what went wrong with it."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from skillup.engines.base import TrialContext, TurnRequest
from skillup.engines.failures import Cli, Failure, shortened, turn_error
from skillup.engines.transcript import ParsedTurn
from skillup.process import ProcessOutcome, ProcessRequest, run_process
from skillup.process.secrets import Secrets
from skillup.schema.record import ProcessInfo, TurnError

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
class HeldTurn:
    """A turn's process, its events, and the first thing that went wrong with either."""

    parsed: ParsedTurn
    error: TurnError | None
    process: ProcessInfo | None
    notices: tuple[str, ...] = ()


async def hold_turn(
    cli: Cli,
    invocation: Invocation,
    parser: EventParser,
    turn: TurnRequest,
    trial: TrialContext,
    explain: Callable[[ProcessOutcome], Failure | None],
    on_line: Callable[[], None] = lambda: None,
) -> HeldTurn:
    """Runs the turn's process to its end.

    `explain` says what the CLI's stderr means where its events do not say it; `on_line` is called
    before a line is masked, if there are secrets. Raw copies of both
    streams are written to the trial's ``raw_dir``.
    """
    if not _is_real_directory(trial.workspace):
        what = f"the workspace {trial.workspace} is gone or was replaced; the agent was not called"
        return HeldTurn(ParsedTurn(), turn_error(cli, "setup", what), None)
    program = invocation.argv[0]
    if not is_there(program, invocation.env, trial.workspace):
        missing = turn_error(cli, "engine_not_found", f"there is no program `{program}`")
        return HeldTurn(ParsedTurn(), missing, None)
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
    return HeldTurn(parsed, error, _process_info(invocation, outcome), tuple(notices))


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
