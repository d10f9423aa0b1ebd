"""Ending processes in named steps: SIGINT, SIGTERM, SIGKILL, each with time to obey.

The steps are a generator that yields how long to wait, so that the same steps serve a running event
loop and the plain code that cleans up after a killed skillup.
"""

from __future__ import annotations

import json
import math
import os
import platform
import signal
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

import anyio

from skillup.process.request import Leftover
from skillup.process.tree import (
    OWNER_VARIABLE,
    ProcessRow,
    ProcessTree,
    adopt_orphans,
    now_as_started,
    owner_id,
    read_row,
    same_process,
)

Answer = TypeVar("Answer")

_KILL_ROUNDS = 10  # each finds what was forked while the round before was killing
_KILL_PATIENCE_SECONDS = 0.5
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1


def ending_steps(
    tree: ProcessTree, grace_seconds: float
) -> Generator[float, None, list[ProcessRow]]:
    """Signals the living members until none is left.

    Returns those that were signalled when the main process had already ended: they outlived it.
    Before every signal the tree is listed anew. Processes that do not even go at SIGKILL (stuck in
    the kernel, or not ours to signal) remain: ask ``tree.living()``.
    """
    outlived: dict[tuple[int, float], ProcessRow] = {}
    kills = [signal.SIGKILL] * _KILL_ROUNDS
    for step in (signal.SIGINT, signal.SIGTERM, *kills):
        alive = tree.living()
        for row in alive:
            send(row, step)
        if tree.main is None or all(row.key != tree.main.key for row in alive):
            outlived.update((row.key, row) for row in alive)
        patience = _KILL_PATIENCE_SECONDS if step is signal.SIGKILL else grace_seconds
        if (yield from gone_within(tree, patience)):
            break
    return list(outlived.values())


def gone_within(tree: ProcessTree, seconds: float) -> Generator[float, None, bool]:
    """Whether the tree is gone by itself within ``seconds``; returns as soon as it is."""
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while tree.living():
        if time.monotonic() >= deadline:
            return False
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
    return True


def send(row: ProcessRow, number: signal.Signals) -> None:
    """Signals exactly this process, never one that has got its pid since."""
    # Another user's process (a setuid helper) answers PermissionError: it then counts as survivor.
    with suppress(ProcessLookupError, PermissionError):
        if same_process(row):
            os.kill(row.pid, number)


def kill_at_once(tree: ProcessTree) -> None:
    """The last resort when there is no time for steps: SIGKILL until nobody is left, blocking."""
    for _ in range(_KILL_ROUNDS):
        alive = tree.living()
        if not alive:
            return
        for row in alive:
            send(row, signal.SIGKILL)
        time.sleep(_FIRST_PAUSE_SECONDS)


def kill_running() -> None:
    """SIGKILL for every turn that is being held here; whoever supervises them sees them end."""
    for tree in ProcessTree.all_running():
        kill_at_once(tree)


async def walk(steps: Generator[float, None, Answer]) -> Answer:
    """Takes the steps in a running event loop."""
    while True:
        try:
            pause = next(steps)
        except StopIteration as end:
            return cast("Answer", end.value)
        await anyio.sleep(pause)


def walk_blocking(steps: Generator[float, None, Answer]) -> Answer:
    """Takes the steps where no event loop runs."""
    while True:
        try:
            pause = next(steps)
        except StopIteration as end:
            return cast("Answer", end.value)
        time.sleep(pause)


def as_leftovers(rows: list[ProcessRow]) -> tuple[Leftover, ...]:
    """Rows as they are reported."""
    return tuple(Leftover(row.pid, row.name) for row in rows)


# After a skillup that was killed: finding and ending the processes it could not end itself.

_CLOCK_TOLERANCE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class _Owner:
    """The content of a register file; ``host`` because directories are shared between machines."""

    pid: int
    started: float
    owner: str
    host: str

    def is_alive(self) -> bool:
        row = read_row(self.pid)
        if row is None or row.zombie:
            return False
        return abs(row.started - self.started) < _CLOCK_TOLERANCE_SECONDS


class ProcessRegister:
    """A context in which this process is known as a live owner, so that nobody ends its processes.

    ``register_dir`` is made if need be. ``own_process``: nobody else starts processes in this one,
    so that orphans may be adopted meanwhile (:mod:`skillup.process.tree`). Raises OSError if the
    file cannot be written.
    """

    def __init__(self, register_dir: Path, *, own_process: bool = False) -> None:
        self._directory = register_dir
        self._own_process = own_process
        self._file: Path | None = None
        self._since = math.inf

    def __enter__(self) -> Self:
        row = read_row(os.getpid())
        self._since = now_as_started()
        owner = _Owner(os.getpid(), row.started if row else 0.0, owner_id(), platform.node())
        self._directory.mkdir(parents=True, exist_ok=True)
        self._file = self._directory / f"{owner.pid}-{owner.started:.2f}.json"
        unfinished = self._file.with_suffix(".tmp")
        unfinished.write_text(json.dumps(asdict(owner)), encoding="utf-8")
        unfinished.replace(self._file)
        if self._own_process:
            adopt_orphans(wanted=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        survivors = end_adopted(self._since)
        if self._file is not None and not survivors:
            self._file.unlink(missing_ok=True)
        if self._own_process:
            adopt_orphans(wanted=False)


def end_adopted(since: float, *, grace_seconds: float = 2.0) -> list[Leftover]:
    """Ends what bears our owner id, and the orphans that came to us since then, after all turns.

    A turn takes only orphans that cannot be another's; those that hid from their parents and from
    the marker while several turns were held are nobody's until all have ended. Blocks; returns
    those that could not be ended. Does nothing while a turn is held.
    """
    if ProcessTree.any_running():
        return []
    assignment = f"{OWNER_VARIABLE}={owner_id()}".encode()
    tree = ProcessTree(None, assignment, started_after=since, takes_orphans=True)
    if not tree.living():
        return []
    walk_blocking(ending_steps(tree, grace_seconds))
    return list(as_leftovers(tree.living()))


def end_leftovers(register_dir: Path, *, grace_seconds: float = 2.0) -> list[Leftover]:
    """Ends what dead owners left, in the same steps as at the end of a turn; returns what it ended.

    Blocks for as long as that takes; call it before the event loop runs. Files of live owners, of
    other machines and of unknown form are left alone. A file whose processes could not all be ended
    stays for the next start.
    """
    ended: list[Leftover] = []
    for file in sorted(register_dir.glob("*.json")):
        owner = _read(file)
        if owner is None or owner.host != platform.node() or owner.is_alive():
            continue
        assignment = f"{OWNER_VARIABLE}={owner.owner}".encode()
        tree = ProcessTree(None, assignment, started_after=owner.started)
        ended += as_leftovers(walk_blocking(ending_steps(tree, grace_seconds)))
        if not tree.living():
            file.unlink(missing_ok=True)
    return ended


def _read(file: Path) -> _Owner | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return _Owner(int(data["pid"]), float(data["started"]), str(data["owner"]), data["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
