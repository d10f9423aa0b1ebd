"""What goes into a process and what comes out: plain data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

OnLine: TypeAlias = Callable[[bytes], Awaitable[None] | None]
"""Called with each line, without its newline; what it returns is awaited before the next line."""

EndedBy: TypeAlias = Literal[
    "exit", "answered", "timeout", "cancelled", "output_limit", "not_started"
]
"""``answered``: its answer was complete, and it did not exit within the grace for that."""


class Leftover(NamedTuple):
    """A process that was still there when it should not have been."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """One process to run to its end.

    ``env`` is the whole environment; only the two variables of :mod:`skillup.process.tree` are
    added. Descendants are recognised by ``marker``: two processes that run at the same time must
    not share one; an empty one is replaced by a fresh one. ``stdin`` is written whole and closed.

    ``stdout_path`` and ``stderr_path`` receive raw copies as the output comes, cut only by
    ``max_output_bytes`` (per stream). A line over ``max_line_bytes`` is delivered cut to that
    length and counted; with ``redact`` it is cut in the raw copy too, because what is never in
    memory as a whole cannot be masked.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""
    timeout_seconds: float | None = None
    stdout_path: Path | None = None
    stderr_path: Path | None = None
    max_output_bytes: int = 256 << 20
    max_line_bytes: int = 128 << 20
    marker: str = ""
    grace_seconds: float = 2.0
    has_answered: Callable[[], bool] | None = None
    """Called after each line: whether the answer is complete, so that the process should exit."""
    answered_grace_seconds: float = 5.0
    redact: Callable[[bytes], bytes] | None = None
    """Masks secrets in one line."""

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("argv is empty: it must at least name the program")


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How a process ended. Byte counts are of what the process wrote, before masking.

    ``exit_code`` and ``signal`` exclude each other; both are None if the process never started
    (``start_error`` says why) or could not be ended. ``leftover`` are descendants that outlived
    the process and were ended; ``survivors`` are those that could not be. ``stderr_tail`` is about
    the last 8 KiB.

    ``peak_memory_bytes`` is the largest sampled sum of resident memory over the whole tree; None
    if the process ended before the first sample. ``cpu_seconds`` is user plus system time of the
    process and the descendants that were waited for.
    """

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy
    start_error: str | None = None
    duration_ms: int = 0
    stderr_tail: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated_lines: int = 0
    peak_memory_bytes: int | None = None
    cpu_seconds: float | None = None
    leftover: tuple[Leftover, ...] = ()
    survivors: tuple[Leftover, ...] = ()


@dataclass(frozen=True, slots=True)
class CompletedOutput:
    """The output of a short helper command; undecodable bytes are replaced."""

    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool
    start_error: str | None
