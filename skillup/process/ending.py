"""Ending processes in named steps: SIGINT, SIGTERM, SIGKILL, each with time to obey.

The steps are a generator that yields how long to wait, so that the same steps serve a running event
loop and the plain code that cleans up after a killed skillup.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator
from contextlib import suppress
from typing import TypeVar, cast

import anyio

from skillup.process.request import Leftover
from skillup.process.table import Row, same_process
from skillup.process.tree import ProcessTree

Answer = TypeVar("Answer")

_KILL_ROUNDS = 10  # each finds what was forked while the round before was killing
_KILL_PATIENCE_SECONDS = 0.5
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1


def ending_steps(tree: ProcessTree, grace_seconds: float) -> Generator[float, None, list[Row]]:
    """Signals the living members until none is left.

    Returns those that were signalled when the main process had already ended: they outlived it.
    Before every signal the tree is listed anew. Processes that do not even go at SIGKILL (stuck in
    the kernel, or not ours to signal) remain: ask ``tree.living()``.
    """
    outlived: dict[tuple[int, float], Row] = {}
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


def send(row: Row, number: signal.Signals) -> None:
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


def as_leftovers(rows: list[Row]) -> tuple[Leftover, ...]:
    """Rows as they are reported."""
    return tuple(Leftover(row.pid, row.name) for row in rows)
