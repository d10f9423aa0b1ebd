"""What runs in a Dask worker: it keeps the suites, and runs trials in processes of their own.

Not in the worker's own process: there other people's tasks start processes, too, which skillup's
care for its own (it adopts orphans, and ends those that nobody else can have left) must not touch.
Functions here are called by name from the client's side, which may be another version of skillup:
what :func:`prepare` takes and gives must not change.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillup import __version__
from skillup.executors.cluster.bundle import pack_run, unpack
from skillup.executors.orphans import end_what_was_left
from skillup.process.spawn import start_apart
from skillup.store.scratch import remove_tree

NO_ROOM = 75
"""Exit code of a process whose machine has no room on its disk (``EX_TEMPFAIL`` of sysexits.h)."""
ANSWER_FILE = "answer.json"
"""What the process says at its end; beside it is the directory `run`."""

_PROGRAM = (sys.executable, "-P", "-m", "skillup.app.cluster_unit")
_POLL_SECONDS = 0.2
_STOP_SECONDS = 30.0
_places: dict[str, tuple[Path, bytes]] = {}
"""By run, where its trials run, and its files: each trial has them laid out anew, since an
agent may have changed what it was judged by (S8)."""


async def prepare(run: str, version: str, files: bytes, dask_worker: Any) -> str | None:
    """Keep the files of the run for its trials; why none can be run here."""
    if version != __version__:
        return f"it has skillup {__version__}, not {version}"
    # Dask removes its local directory once the worker has gone, however it went.
    place = tempfile.mkdtemp(prefix="skillup-", dir=dask_worker.local_directory)
    _places[run] = Path(place).resolve(), files
    return None


async def forget(run: str) -> None:
    """Remove what :func:`prepare` laid out."""
    place, _ = _places.pop(run, (None, b""))
    if place is not None:
        await asyncio.to_thread(remove_tree, place)


def run_trials(request: dict[str, Any]) -> dict[str, Any]:
    """Run ``request["jobs"]``, which are one trial or share turns; a Dask task.

    The answer: ``{"trials": archive of the run directory, "stop": why its run has stopped,
    "errors": what it may be the worker's fault that they met, by kind}``; ``{"failed": what the
    process printed}`` where it would fail on every worker; or ``{"lost": why, "unfit": whether the
    worker is to get no more}`` where another attempt may do better.
    """
    from distributed import get_worker

    worker = get_worker()
    key = str(worker.get_current_task())

    def is_needed() -> bool:
        """Whether someone still waits for the task: Dask does not say that nobody does."""
        if worker.status.name not in ("init", "running", "paused", "closing_gracefully"):
            return False
        task = worker.state.tasks.get(key)
        return task is not None and task.state in ("executing", "long-running")

    end_what_was_left()
    if request["run"] not in _places:
        return {"lost": "it has begun anew", "anew": True}
    place, files = _places[request["run"]]
    directory: Path | None = None
    try:
        directory = Path(tempfile.mkdtemp(prefix="trials-", dir=place))
        unpack(files, directory / "root")
        code, output = _run_program(request, directory, is_needed)
        if code < 0:
            end_what_was_left()  # it could not end its agents
            return {"lost": f"the process that ran it was killed (signal {-code})"}
        if code == NO_ROOM:
            return {"lost": output or "its disk has no room left", "unfit": True}
        if code != 0:
            return {"failed": output or f"exit code {code}"}
        answer = json.loads((directory / ANSWER_FILE).read_text())
        return {**answer, "trials": pack_run(directory / "run", f"{directory}/root".encode())}
    except OSError as error:
        unfit = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return {"lost": f"{type(error).__name__}: {error}", "unfit": unfit}
    finally:
        if directory is not None:
            with suppress(OSError):  # where the process was killed, workspaces are still there
                remove_tree((directory / "run" / "scratch").readlink())
            remove_tree(directory)


def _run_program(
    request: dict[str, Any], directory: Path, is_needed: Callable[[], bool]
) -> tuple[int, str]:
    """Exit code (negative: a signal) and the last line on stderr of the process that does it.

    Once it is not needed any more it gets SIGINT, and then SIGKILL.
    """
    message = {**request, "parent": os.getpid(), "directory": str(directory)}
    kill_at = float("inf")
    with tempfile.TemporaryFile(dir=directory) as stderr:
        process = start_apart(_PROGRAM, cwd=directory, stderr=stderr)
        assert process.stdin is not None
        with suppress(OSError), process.stdin as stdin:
            stdin.write(json.dumps(message).encode())
        while process.poll() is None:
            if time.monotonic() > kill_at:
                process.kill()
            elif kill_at == float("inf") and not is_needed():
                kill_at = time.monotonic() + _STOP_SECONDS
                process.send_signal(signal.SIGINT)
            time.sleep(_POLL_SECONDS)
        stderr.seek(0)
        last = stderr.read().decode(errors="replace").strip().rpartition("\n")[2].strip()
    return process.returncode, last[:300]
