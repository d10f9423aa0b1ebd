"""Starting a process: the only file of skillup that does, and the only one that knows how.

``subprocess.Popen`` rather than the event loop's own spawning: it does the same fork, and leaves
the waiting to us, which is what makes exact CPU times and adopted orphans possible.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, cast

from skillup.process.request import ProcessRequest
from skillup.process.tree import (
    OWNER_VARIABLE,
    TRIAL_VARIABLE,
    ProcessRow,
    ProcessTree,
    keep_exit_statuses,
    owner_id,
    read_row,
    starting,
)

Apart: TypeAlias = subprocess.Popen[bytes]


class StartError(Exception):
    """The process could not be started; the message says why, in one sentence. Data to callers."""


@dataclass(slots=True)
class Child:
    """A started process that nobody has waited for yet.

    The pipes are unbuffered and ours to close; ``stdin`` is None if there is nothing to write (the
    child then reads from the null device).
    """

    pid: int
    tree: ProcessTree
    stdin: IO[bytes] | None
    stdout: IO[bytes]
    stderr: IO[bytes]
    popen: subprocess.Popen[bytes]


def start(request: ProcessRequest, marker: str) -> Child:
    """Starts the process in a session of its own. Raises :class:`StartError`."""
    keep_exit_statuses()
    env = {**request.env, TRIAL_VARIABLE: marker, OWNER_VARIABLE: owner_id()}
    with starting:
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
            raise StartError(_why_not_started(error, request.argv[0], request.cwd, env)) from error
        main = read_row(popen.pid) or _unseen(popen.pid)
        tree = ProcessTree(main, f"{TRIAL_VARIABLE}={marker}".encode())
    stdout, stderr = cast("IO[bytes]", popen.stdout), cast("IO[bytes]", popen.stderr)
    return Child(popen.pid, tree, popen.stdin, stdout, stderr, popen)


def start_apart(argv: tuple[str, ...], *, cwd: Path, stderr: IO[bytes]) -> Apart:
    """Starts another skillup, which looks after its own processes; it is the caller's to end.

    For programs that are not skillup's own: nothing is adopted, watched or ended in this process.
    Raises OSError.
    """
    return subprocess.Popen(
        argv,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )


def _unseen(pid: int) -> ProcessRow:
    """What we know of our own child where the table does not show it."""
    return ProcessRow(pid, "", False, os.getpid(), pid, pid, 0.0, 0.0, 0)


def _why_not_started(
    error: OSError | ValueError, program: str, cwd: Path, env: Mapping[str, str]
) -> str:
    if not isinstance(error, OSError):
        return f"{program}: an argument or variable cannot be passed on: {error}"
    if error.errno == errno.E2BIG:
        return f"{program}: the arguments and variables are longer than the system allows"
    if not cwd.is_dir():
        what = "is not a directory" if cwd.exists() else "does not exist"
        return f"the working directory {cwd} {what}"
    if error.errno == errno.EACCES and not os.access(cwd, os.X_OK):
        return f"the working directory {cwd} may not be entered"
    path = cwd / program if "/" in program else None
    found = path if path else shutil.which(program, os.F_OK, env.get("PATH", os.defpath))
    if error.errno == errno.ENOENT:
        if found is None:
            return f"{program}: no such program on the PATH"
        if not Path(found).exists():
            return f"{program}: no such file"
        return f"{program}: the interpreter that its first line names does not exist"
    if error.errno == errno.EACCES:
        return f"{program}: the file is not executable"
    if error.errno == errno.ENOEXEC:
        return f"{program}: neither a program for this system nor a script with a #! line"
    return f"{program}: {os.strerror(error.errno) if error.errno else error}"
