"""Starting a process: the only file of skillup that does.

``subprocess.Popen`` rather than the event loop's own spawning: the waiting is left to us, which is
what makes exact CPU times and adopted orphans possible.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TypeAlias

from skillup.process.request import ProcessRequest
from skillup.process.tree import (
    OWNER_VARIABLE,
    TRIAL_VARIABLE,
    ProcessRow,
    ProcessTree,
    owner_id,
    read_row,
    starting,
)

Child: TypeAlias = subprocess.Popen[bytes]


class StartError(Exception):
    """The process could not be started; the message says why, in one sentence. Data to callers."""


def start(request: ProcessRequest, marker: str) -> tuple[Child, ProcessTree]:
    """Starts the process in a session of its own, with unbuffered pipes that are ours to close.

    Raises :class:`StartError`.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Inherited from whoever started us; the kernel would throw exit statuses away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
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
        pid = popen.pid
        main = read_row(pid) or ProcessRow(pid, "", False, os.getpid(), pid, 0.0, 0)
        return popen, ProcessTree(f"{TRIAL_VARIABLE}={marker}", main=main)


def start_apart(argv: tuple[str, ...], *, cwd: Path, stderr: IO[bytes]) -> Child:
    """Starts another skillup, which looks after its own processes; it is the caller's to end.

    Nothing is adopted, watched or ended in this process. Raises OSError.
    """
    pipe = subprocess.PIPE
    return subprocess.Popen(
        argv, cwd=cwd, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True
    )


def _why_not_started(
    error: OSError | ValueError, program: str, cwd: Path, env: Mapping[str, str]
) -> str:
    if not isinstance(error, OSError):
        return f"{program}: an argument or variable cannot be passed on: {error}"
    if not cwd.is_dir():
        what = "is not a directory" if cwd.exists() else "does not exist"
        return f"the working directory {cwd} {what}"
    if error.errno == errno.ENOENT:
        path = env.get("PATH", os.defpath)
        found = cwd / program if "/" in program else shutil.which(program, os.F_OK, path)
        if found is None:
            return f"{program}: no such program on the PATH"
        if not Path(found).exists():
            return f"{program}: no such file"
        return f"{program}: the interpreter that its first line names does not exist"
    if error.errno == errno.EACCES:
        return f"{program}: the file is not executable"
    return f"{program}: {error.strerror or error}"
