"""What runs in a Dask worker: it lays out the suites, and starts the processes that hold trials.

Functions here are called by name from the client's side, which may be another version of skillup:
:func:`look` and what it takes and gives must not change.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from skillup import __version__
from skillup.executors.cluster.parcel import unpack
from skillup.executors.cluster.spawned import Finished, run_apart
from skillup.executors.cluster.trial_parcel import pack_trials
from skillup.executors.cluster.worker_log import log_no_messages
from skillup.executors.orphans import end_what_was_left
from skillup.judges.scratch import judge_scratch
from skillup.store.scratch import remove_tree

TOPIC = "skillup-{digest}"
"""Of the events by which a worker says what goes on in a trial; a run's client hears its own."""

_LOOKING_SECONDS = 100.0
_KEPT_SECONDS = 24 * 3600.0
_lock = threading.Lock()


@dataclass(slots=True)
class _Place:
    """Where the suites of a run are laid out, in this process."""

    path: Path
    stack: ExitStack
    running: int = 0
    used: float = 0.0
    forgotten: bool = False


@dataclass(slots=True)
class _Unit:
    """Trials that are being held."""

    run: Path
    """Where they are written."""
    prefix: str
    """What took the place of `/`."""
    lines: SimpleQueue[bytes | None] = field(default_factory=SimpleQueue)
    """What its process gets."""
    there: set[str] = field(default_factory=set)
    """Of trials, blobs and answers, those that the client has already."""


_places: dict[str, _Place] = {}
_units: dict[str, _Unit] = {}


async def look(asked: dict[str, Any], digest: str, files: bytes) -> dict[str, Any]:
    """Say which skillup this is, and, if it is the right one, what the plan's profiles lack here.

    `asked`: what :mod:`skillup.app.cluster_unit` is asked, with `program` (its name) and `version`.
    The answer: ``{"version", "python", "host"}`` and, with the same version, ``{"profiles": {name:
    {"version", "problem", "doubt"}}}``, ``{"error": why the plan cannot be made}`` or ``{"killed":
    the signal that ended whoever looked}``.
    """
    log_no_messages()
    about = {
        "version": __version__,
        "python": platform.python_version(),
        "host": platform.node(),
    }
    if asked["version"] != __version__:
        return about
    return about | await asyncio.to_thread(_look, asked, digest, files)


def _look(asked: dict[str, Any], digest: str, files: bytes) -> dict[str, Any]:
    end_what_was_left()
    _forget_abandoned()
    place = _make_place(digest, files)
    said: list[dict[str, Any]] = []
    request = asked | {
        "mode": "look",
        "parent": os.getpid(),
        "root": str(place / "root"),
    }
    ended = run_apart(
        asked["program"],
        json.dumps(request).encode(),
        lambda line: said.extend(filter(None, [_event(line)])),
        lambda: True,
        _LOOKING_SECONDS,
    )
    if ended.code == 0 and said:
        return said[-1]
    if ended.code < 0 and not ended.stopped:
        return {"killed": -ended.code}
    late = f"no answer within {_LOOKING_SECONDS:g} s"
    return {"error": late if ended.stopped else ended.said or f"exit code {ended.code}"}


def hold(asked: dict[str, Any], digest: str) -> dict[str, Any]:
    """Hold a unit of trials; a Dask task.

    The answer: ``{"code", "said", "stopped"}`` of the process that held them, ``"end"``, its last
    word (None: it had none), and ``"trials"``, the archive of what it has written.
    """
    from distributed import get_worker

    worker = get_worker()
    key = str(worker.get_current_task())
    end_what_was_left()
    end: dict[str, Any] | None = None

    def pass_on(line: bytes) -> None:
        nonlocal end
        event = _event(line)
        if event is not None and event["event"] == "end":
            end = event
        elif event is not None:
            # As text: an agent may say what Dask's own coding of messages has no bytes for.
            said = {"unit": asked["unit"], "said": json.dumps(event)}
            worker.log_event(TOPIC.format(digest=digest), said)

    with _in_use(digest) as place, _unit_directory(place) as directory:
        unit = _units[asked["unit"]] = _Unit(directory / "run", str(place / "root"))
        try:
            ended = _hold(asked, unit, pass_on, lambda: _is_wanted(worker, key))
            # Where the process was killed, too: some of its trials may have finished.
            wanted = [job for job in asked["jobs"] if job not in unit.there]
            trials = pack_trials(unit.run, unit.prefix, wanted, unit.there)
        finally:
            del _units[asked["unit"]]
    return {
        "code": ended.code,
        "said": ended.said,
        "stopped": ended.stopped,
        "end": end,
        "trials": trials,
    }


def pass_in(unit: str, line: str) -> None:
    """Give a line to the process that holds the unit, if it still does."""
    known = _units.get(unit)
    if known is not None:
        known.lines.put(line.encode())


async def send(unit: str, job: str, there: Collection[str]) -> bytes | None:
    """One trial of the unit, which has finished, while others go on; None: it is over.

    `there` are the trials, blobs and answers that the client has already.
    """
    known = _units.get(unit)
    if known is None:
        return None
    known.there.update(there)
    return await asyncio.to_thread(pack_trials, known.run, known.prefix, [job], known.there)


def forget(digest: str) -> None:
    """Remove what was laid out, as soon as nobody works with it any more."""
    with _lock:
        known = _places.pop(digest, None)
        if known is None:
            return
        known.forgotten = True
        idle = not known.running
    if idle:
        known.stack.close()


@contextmanager
def _in_use(digest: str) -> Iterator[Path]:
    """Where the suites are; they stay there meanwhile."""
    with _lock:
        known = _places.get(digest)
        if known is None:  # its client was not heard of for a day
            raise LookupError("the suites are not here any more")
        known.running += 1
    try:
        yield known.path
    finally:
        with _lock:
            known.running -= 1
            known.used = time.monotonic()
            last = known.forgotten and not known.running
        if last:
            known.stack.close()


@contextmanager
def _unit_directory(place: Path) -> Iterator[Path]:
    unit = Path(tempfile.mkdtemp(prefix="unit-", dir=place))
    try:
        yield unit
    finally:
        # Where the process was killed, its trials' workspaces are still there.
        with suppress(OSError):
            remove_tree((unit / "run" / "scratch").readlink())
        remove_tree(unit)


def _hold(
    asked: dict[str, Any],
    unit: _Unit,
    on_line: Callable[[bytes], None],
    wanted: Callable[[], bool],
) -> Finished:
    request = asked | {
        "mode": "hold",
        "parent": os.getpid(),
        "root": unit.prefix,
        "directory": str(unit.run),
    }
    said = json.dumps(request).encode()
    ended = run_apart(asked["program"], said, on_line, wanted, more=unit.lines)
    if ended.code < 0:  # it could not end its agents
        end_what_was_left()
    return ended


def _event(line: bytes) -> dict[str, Any] | None:
    """None: some library has printed something."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _is_wanted(worker: Any, key: str) -> bool:
    """Whether someone still waits for the task; Dask does not tell a task that nobody does."""
    if worker.status.name not in ("init", "running", "paused", "closing_gracefully"):
        return False
    task = worker.state.tasks.get(key)
    return task is not None and task.state in ("executing", "long-running")


def _make_place(digest: str, files: bytes) -> Path:
    """A directory of this process with the files below `root/`; swept by others if it is killed."""
    with _lock:
        if digest not in _places:
            with ExitStack() as stack:
                place = Path(stack.enter_context(judge_scratch())).resolve()
                (place / "root").mkdir()
                unpack(files, place / "root")
                _places[digest] = _Place(place, stack.pop_all())
        _places[digest].used = time.monotonic()
        return _places[digest].path


def _forget_abandoned() -> None:
    """What clients that were killed could not have removed; a worker may live for months."""
    now = time.monotonic()
    with _lock:
        old = [
            digest
            for digest, place in _places.items()
            if not place.running and now - place.used > _KEPT_SECONDS
        ]
    for digest in old:
        forget(digest)
