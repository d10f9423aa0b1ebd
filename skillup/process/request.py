"""What goes into a process and what comes out: plain data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

OnLine: TypeAlias = Callable[[bytes], Awaitable[None] | None]
"""Called with each line, without its newline; what it returns is awaited before the next line."""

Redact: TypeAlias = Callable[[bytes], bytes]
"""Masks secrets in one line."""

EndedBy: TypeAlias = Literal[
    "exit", "answered", "timeout", "cancelled", "output_limit", "not_started"
]
"""``answered``: it had said all it would, and did not end within the grace for that."""


class Leftover(NamedTuple):
    """A process that was still there when it should not have been."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """One process to run to its end.

    ``env`` is the whole environment; only the two variables of :mod:`skillup.process.tree` are
    added. ``marker`` is what descendants inherit as ``SKILLUP_TRIAL_MARKER`` and are recognised by:
    two processes that run at the same time must not share one. An empty marker is replaced by a
    fresh one.

    ``stdin`` is written whole and then closed; a child that does not read it is no error.
    ``stdout_path`` and ``stderr_path`` receive raw copies as the output comes, cut only by
    ``max_output_bytes`` (per stream). A line over ``max_line_bytes`` is delivered cut to that
    length and counted; with ``redact`` it is cut in the raw copy too, because what is never held
    whole cannot be masked whole.
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
    """Asked after each line: whether the process has said all, so that it should end by itself."""
    answered_grace_seconds: float = 5.0
    redact: Redact | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("argv is empty: it must at least name the program")


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How a process ended. Byte counts are of what the process wrote, before masking.

    ``exit_code`` and ``signal`` exclude each other; both are None if the process never started, or
    if it could not be ended (then ``survivors`` names it). ``start_error`` says in one sentence why
    a process did not start. ``leftover`` are descendants that outlived the process and had to be
    ended; ``survivors`` are those that could not be. ``stderr_tail`` is about the last 8 KiB.

    ``peak_memory_bytes`` is the largest sampled sum of resident memory over the whole tree (shared
    pages count once per process); None if the process ended before the first sample.
    ``cpu_seconds`` is user plus system time as the kernel accounts it when processes are waited
    for: the process, the descendants it waited for, and on Linux those it left to us. Elsewhere
    what descendants that outlived it used is as of their last sample.
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
    """What a short helper command said; undecodable bytes are replaced."""

    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool
    start_error: str | None
