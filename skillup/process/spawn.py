"""Starting a process: the only file of skillup that does.

``subprocess.Popen`` rather than the event loop's own spawning: the waiting is left to us, which is
what makes adopted orphans possible.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Literal, TypeAlias

from skillup.frozen import frozen
from skillup.process.tree import (
    OWNER_VARIABLE,
    TRIAL_VARIABLE,
    ProcessRow,
    ProcessTree,
    owner_id,
    read_row,
)

OnLine: TypeAlias = Callable[[bytes], object]
"""Called with each line, without its newline."""

EndedBy: TypeAlias = Literal[
    "exit", "answered", "timeout", "cancelled", "output_limit", "not_started"
]
"""``answered``: its answer was complete, and it did not exit within the grace for that."""


@frozen
class ProcessRequest:
    """One process to run to its end.

    ``env`` is the whole environment; only the two variables of :mod:`skillup.process.tree` are
    added. Descendants are recognised by ``marker``: two processes that run at the same time must
    not share one; an empty one is replaced by a fresh one. ``stdin`` is written whole and closed.

    ``stdout_path`` and ``stderr_path`` receive raw copies as the output comes, cut only by
    ``max_output_bytes`` (per stream).
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""
    timeout_seconds: float | None = None
    stdout_path: Path | None = None
    stderr_path: Path | None = None
    max_output_bytes: int = 128 << 20
    marker: str = ""
    grace_seconds: float = 2.0
    has_answered: Callable[[], bool] | None = None
    """Called after each line: whether the answer is complete, so that the process should exit."""
    redact: Callable[[bytes], bytes] | None = None
    """Masks secrets in one line."""


@frozen
class ProcessOutcome:
    """How a process ended.

    ``exit_code`` and ``signal`` exclude each other; both are None if the process never started
    (``start_error`` says why) or could not be ended. ``leftover`` are descendants that outlived
    the process and were ended; ``survivors`` are those that could not be. ``stderr_tail`` is about
    the last 8 KiB.
    """

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy
    start_error: str | None = None
    duration_ms: int = 0
    stderr_tail: str = ""
    leftover: tuple[ProcessRow, ...] = ()
    survivors: tuple[ProcessRow, ...] = ()


@frozen
class CompletedOutput:
    """The output of a short helper command; undecodable bytes are replaced."""

    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool
    start_error: str | None


Child: TypeAlias = subprocess.Popen[bytes]


def start(request: ProcessRequest, marker: str) -> tuple[Child, ProcessTree] | str:
    """Starts the process in a session of its own, with unbuffered pipes that are ours to close.

    A text says why it could not be started, in one sentence.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Inherited from whoever started us; the kernel would throw exit statuses away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    env = {**request.env, TRIAL_VARIABLE: marker, OWNER_VARIABLE: owner_id()}
    try:
        popen = subprocess.Popen(
            request.argv,
            cwd=request.cwd,
            env=env,
            stdin=subprocess.PIPE if request.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return _why_not_started(error, request.argv[0], request.cwd)
    pid = popen.pid
    main = read_row(pid) or ProcessRow(pid, "", False, os.getpid(), pid, 0.0)
    return popen, ProcessTree(f"{TRIAL_VARIABLE}={marker}", main=main)


def start_apart(argv: tuple[str, ...], *, cwd: Path, stderr: IO[bytes]) -> Child:
    """Starts another skillup, which looks after its own processes; it is the caller's to end.

    Nothing is adopted, watched or ended in this process. Raises OSError.
    """
    pipe = subprocess.PIPE
    return subprocess.Popen(
        argv, cwd=cwd, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True
    )


def _why_not_started(error: OSError | ValueError, program: str, cwd: Path) -> str:
    if not isinstance(error, OSError):
        return f"{program}: an argument or variable cannot be passed on: {error}"
    if not cwd.is_dir():
        what = "is not a directory" if cwd.exists() else "does not exist"
        return f"the working directory {cwd} {what}"
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"{program}: no such program on the PATH"
        if (cwd / program).exists():
            return f"{program}: the interpreter that its first line names does not exist"
    return f"{program}: {error.strerror or error}"
