"""Ending processes in named steps: SIGINT, SIGTERM, SIGKILL, each with time to obey."""

from __future__ import annotations

import json
import os
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skillup.process.tree import (
    OWNER_VARIABLE,
    ProcessRow,
    ProcessTree,
    adopt_orphans,
    now_as_started,
    owner_id,
    read_row,
    running_trees,
    same_process,
)

_KILL_ROUNDS = 10  # each finds what was forked while the round before was killing
_KILL_PATIENCE_SECONDS = 0.5
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1
_CLOCK_TOLERANCE_SECONDS = 0.02


class TreeEnding:
    """Signals the living members of a tree until none is left.

    Iterated, it yields how long to sleep, so that the same steps serve a running event loop and
    plain code. Then ``leftover`` are those that were signalled when the main process had already
    ended: they outlived it. ``survivors`` did not even go at SIGKILL (stuck in the kernel, or not
    ours to signal). ``settle_seconds`` is what the tree gets to end by itself.
    """

    def __init__(
        self, tree: ProcessTree, grace_seconds: float, *, settle_seconds: float = 0.0
    ) -> None:
        self.leftover: tuple[ProcessRow, ...] = ()
        self.survivors: tuple[ProcessRow, ...] = ()
        self._tree = tree
        kill = (signal.SIGKILL, _KILL_PATIENCE_SECONDS)
        self._steps: list[tuple[signal.Signals | None, float]] = [
            (None, settle_seconds),
            (signal.SIGINT, grace_seconds),
            (signal.SIGTERM, grace_seconds),
            *[kill] * _KILL_ROUNDS,
        ]

    def __iter__(self) -> Iterator[float]:
        tree = self._tree
        outlived: dict[tuple[int, float], ProcessRow] = {}
        alive = tree.living()
        for number, patience in self._steps:
            if number is not None:
                for row in alive:
                    _send(row, number)
                if tree.main is None or all(row.key != tree.main.key for row in alive):
                    outlived |= {row.key: row for row in alive}
                    self.leftover = tuple(outlived.values())
            deadline = time.monotonic() + patience
            pause = _FIRST_PAUSE_SECONDS
            while alive and time.monotonic() < deadline:
                yield pause
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                alive = tree.living()
            if not alive:
                return
        self.survivors = tuple(alive)


def kill_at_once(tree: ProcessTree) -> None:
    """The last resort when there is no time for steps, blocking."""
    _end(tree, 0.0)


def kill_running() -> None:
    """SIGKILL for every running turn of this process; whoever supervises them sees them end."""
    for tree in list(running_trees):
        kill_at_once(tree)


def _send(row: ProcessRow, number: signal.Signals) -> None:
    """Signals exactly this process, never one that has got its pid since."""
    # Another user's process (a setuid helper) answers PermissionError: it then counts as survivor.
    with suppress(ProcessLookupError, PermissionError):
        if same_process(row):
            os.kill(row.pid, number)


# After a skillup that was killed: finding and ending the processes it could not end itself.


@contextmanager
def process_register(register_dir: Path, *, own_process: bool = False) -> Iterator[None]:
    """Meanwhile this process is known as a live owner, so that nobody ends its processes.

    ``register_dir`` is made if need be. ``own_process``: nobody else starts processes in this one,
    so that orphans may be adopted meanwhile. Raises OSError if the file cannot be written.
    """
    row, since = read_row(os.getpid()), now_as_started()
    pid, started = os.getpid(), row.started if row else 0.0
    # Of which machine: directories are shared between machines.
    owner = {"pid": pid, "started": started, "owner": owner_id(), "host": platform.node()}
    register_dir.mkdir(parents=True, exist_ok=True)
    file = register_dir / f"{pid}-{started:.2f}.json"
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(json.dumps(owner), encoding="utf-8")
    unfinished.replace(file)
    if own_process:
        adopt_orphans(enabled=True)
    try:
        yield
    finally:
        survivors: tuple[ProcessRow, ...] = ()
        if not running_trees:
            # A turn takes only orphans that cannot be another's; those that hid from their parents
            # and from the marker while several turns ran are nobody's until all have ended.
            assignment = f"{OWNER_VARIABLE}={owner_id()}"
            tree = ProcessTree(assignment, started_after=since, takes_orphans=True)
            survivors = _end(tree, 2.0).survivors
        if not survivors:
            file.unlink(missing_ok=True)
        if own_process:
            adopt_orphans(enabled=False)


def end_leftovers(register_dir: Path, *, grace_seconds: float = 2.0) -> list[ProcessRow]:
    """Ends what dead owners left, in the same steps as at the end of a turn; returns what it ended.

    Blocks for as long as that takes; call it before the event loop runs. Files of live owners, of
    other machines and of unknown form are left alone. A file whose processes could not all be ended
    stays for the next start.
    """
    ended: list[ProcessRow] = []
    for file in sorted(register_dir.glob("*.json")):
        try:
            owner: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            pid, started = int(owner["pid"]), float(owner["started"])
            assignment, host = f"{OWNER_VARIABLE}={owner['owner']}", owner["host"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        row = read_row(pid)
        is_alive = (
            row is not None
            and not row.zombie
            and abs(row.started - started) < _CLOCK_TOLERANCE_SECONDS
        )
        if is_alive or host != platform.node():
            continue
        ending = _end(ProcessTree(assignment, started_after=started), grace_seconds)
        ended += ending.leftover
        if not ending.survivors:
            file.unlink(missing_ok=True)
    return ended


def _end(tree: ProcessTree, grace_seconds: float) -> TreeEnding:
    ending = TreeEnding(tree, grace_seconds)
    for pause in ending:
        time.sleep(pause)
    return ending
