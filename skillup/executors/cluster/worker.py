"""What runs in a Dask worker: it lays out the suites, and runs trials in processes of their own.

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

import skillup
from skillup import __version__
from skillup.executors.cluster.bundle import pack_run, unpack
from skillup.executors.orphans import end_what_was_left
from skillup.process.spawn import start_apart
from skillup.store.scratch import remove_tree

NO_ROOM = 75
"""Exit code of a process whose machine has no room on its disk (``EX_TEMPFAIL`` of sysexits.h)."""
ANSWER_FILE = "answer.json"
"""What the process says at its end; beside it is the directory `run`."""

_CHECK_SECONDS = 100.0
_POLL_SECONDS = 0.2
_STOP_SECONDS = 30.0
_ASK_SECONDS = 10.0
_PROGRAM = "import sys; sys.path.insert(0, {here!r}); from {module} import main; sys.exit(main())"
_places: dict[str, tuple[Path, bytes]] = {}
"""By run, where its trials run, and its files: each trial has them laid out anew, since an
agent may have changed what it was judged by (S8)."""


class TrialsLostError(Exception):
    """The process that ran the trials was killed, or had no room."""


def run_name(run: str) -> str:
    """Of the resource that workers which can run the trials of a run have, and of its events."""
    return f"skillup-{run}"


async def prepare(request: dict[str, Any], files: bytes, dask_worker: Any) -> dict[str, Any]:
    """Lay out the suites, and look whether the plan can be run here.

    The answer: ``{"version", "threads", "problem": why not, "doubt": why maybe not}``.
    """
    about = {"version": __version__, "threads": dask_worker.state.nthreads, "doubt": None}
    if request["version"] != __version__:
        return {**about, "problem": f"it has skillup {__version__}, not {request['version']}"}
    return {**about, **await asyncio.to_thread(_prepare, request, files, dask_worker)}


def _prepare(request: dict[str, Any], files: bytes, worker: Any) -> dict[str, Any]:
    end_what_was_left()
    # Dask removes its local directory once the worker has gone, however it went.
    place = Path(tempfile.mkdtemp(prefix="skillup-", dir=worker.local_directory)).resolve()
    try:
        unpack(files, place / "root")
        check = {**request, "mode": "check"}
        code, problem = _run_program(check, place, lambda: True, _CHECK_SECONDS)
        if code == 0:
            answer: dict[str, Any] = json.loads((place / ANSWER_FILE).read_text())
            remove_tree(place / "root")
            _places[request["run"]] = place, files
            return answer
    except OSError as error:
        problem = str(error)
    remove_tree(place)
    return {"problem": problem or "it could not check what it has"}


async def grant(run: str, places: int, dask_worker: Any) -> None:
    """Let the worker have so many trials of the run at once; Dask gives none to the others."""
    await dask_worker.set_resources(**{run_name(run): places})


async def _withdraw(run: str, worker: Any) -> None:
    """Have Dask give the worker no more trials of the run; what it was given already runs."""
    resources = {**worker.state.total_resources, run_name(run): 0}
    await worker.scheduler.set_resources(resources=resources, worker=worker.contact_address)


async def forget(run: str, dask_worker: Any) -> None:
    """Remove what :func:`prepare` laid out."""
    place, _ = _places.pop(run, (None, b""))
    if place is not None:
        await grant(run, 0, dask_worker)
        await asyncio.to_thread(remove_tree, place)


def run_trials(request: dict[str, Any]) -> dict[str, Any]:
    """Run ``request["jobs"]``, which are one trial or share turns; a Dask task.

    The answer: ``{"trials": archive of the run directory, "stop": why its run has stopped}``, or
    ``{"failed": what the process printed}`` where it would fail on every worker.
    Raises TrialsLostError where another worker, or another attempt, may do better.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    key, topic = str(worker.get_current_task()), run_name(request["run"])
    about = {"jobs": request["jobs"], "worker": worker.address}

    def lost(why: str, *, full: bool = False) -> TrialsLostError:
        if full:
            with suppress(OSError, TimeoutError):
                sync(worker.loop, _withdraw, request["run"], worker, callback_timeout=_ASK_SECONDS)
        worker.log_event(topic, {**about, "event": "lost", "reason": why, "full": full})
        return TrialsLostError(f"{worker.address}: {why}")

    def is_needed() -> bool:
        """Whether someone still waits for the task: Dask does not say that nobody does."""
        if worker.status.name not in ("init", "running", "paused", "closing_gracefully"):
            return False
        task = worker.state.tasks.get(key)
        return task is not None and task.state in ("executing", "long-running")

    worker.log_event(topic, {**about, "event": "started"})
    end_what_was_left()
    place, files = _places[request["run"]]
    directory: Path | None = None
    try:
        directory = Path(tempfile.mkdtemp(prefix="trials-", dir=place))
        root = directory / "root"
        unpack(files, root)
        code, output = _run_program({**request, "mode": "run"}, directory, is_needed)
        if code < 0:
            end_what_was_left()  # it could not end its agents
            raise lost(f"the process that ran it was killed (signal {-code})")
        if code == NO_ROOM:
            raise lost(output or "its disk has no room left", full=True)
        if code != 0:
            return {"failed": output or f"exit code {code}"}
        stop = json.loads((directory / ANSWER_FILE).read_text())
        return {"trials": pack_run(directory / "run", str(root).encode()), "stop": stop}
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise lost(f"{type(error).__name__}: {error}", full=full) from error
    finally:
        if directory is not None:
            with suppress(OSError):  # where the process was killed, workspaces are still there
                remove_tree((directory / "run" / "scratch").readlink())
            remove_tree(directory)


def _run_program(
    request: dict[str, Any],
    directory: Path,
    is_needed: Callable[[], bool],
    seconds: float = float("inf"),
) -> tuple[int, str]:
    """Exit code (negative: a signal) and the last line on stderr of the process that does it.

    Once it is not needed any more, or `seconds` have passed, it gets SIGINT, and then SIGKILL.
    """
    here = Path(skillup.__file__).parent.parent
    paths = {"root": str(directory / "root"), "directory": str(directory)}
    message = {**request, "parent": os.getpid(), **paths}
    argv = (sys.executable, "-P", "-c", _PROGRAM.format(here=str(here), module=request["program"]))
    deadline, kill_at = time.monotonic() + seconds, float("inf")
    with tempfile.TemporaryFile(dir=directory) as stderr:
        process = start_apart(argv, cwd=here, stderr=stderr)
        assert process.stdin is not None
        with suppress(OSError), process.stdin as stdin:
            stdin.write(json.dumps(message).encode())
        while process.poll() is None:
            now = time.monotonic()
            if now > kill_at:
                process.kill()
            elif kill_at == float("inf") and (now > deadline or not is_needed()):
                kill_at = now + _STOP_SECONDS
                process.send_signal(signal.SIGINT)
            time.sleep(_POLL_SECONDS)
        stderr.seek(0)
        last = stderr.read().decode(errors="replace").strip().rpartition("\n")[2].strip()
    return process.returncode, last[:300]
