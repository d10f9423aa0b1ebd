"""A large run, judged by rules in several processes at once.

What is unusual about a trial (a damaged record, a case that cannot be read, a check that a judge
reads), and whatever a process cannot say, is left to the caller. So grades, notes and errors, and
their order, are those of one process alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

from skillup.schema.grade import Grade

FEWEST = 1500
"""Trials from which on starting processes pays."""
NOT_CHOSEN = "not chosen"
LEFT_OUT = "left out"
_CHUNK = 32
_CHUNKS_AHEAD = 4
"""For each process: what it has found is in memory until it is asked for."""

Place = tuple[str, Path]
"""A trial's job id and directory."""
Found = Grade | str | None
"""Its grade, a word above, or nothing: the caller has to look."""

Regrade = Callable[[Place], Found]
_judge: Regrade
"""Of a process of the pool."""


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux: a process may be held to some of them
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def grades_of(
    places: Sequence[Place], workers: int, make: Callable[..., Regrade], arguments: Sequence[Any]
) -> Generator[tuple[Place, Found], None, None]:
    """In order. Close the generator to end the processes.

    Each of them judges by ``make(*arguments)``, which has to be picklable.
    """
    chunks = deque(places[at : at + _CHUNK] for at in range(0, len(places), _CHUNK))
    try:
        pool = ProcessPoolExecutor(
            workers,
            get_context("fork" if sys.platform == "linux" else "spawn"),
            initializer=_start,
            initargs=(make, arguments),
        )
    except (OSError, ImportError):  # no shared memory here
        yield from ((place, None) for place in places)
        return
    waiting: deque[tuple[Sequence[Place], Future[list[str | None]]]] = deque()
    try:
        while chunks or waiting:
            while chunks and len(waiting) < workers * _CHUNKS_AHEAD:
                chunk = chunks.popleft()
                waiting.append((chunk, _submitted(pool, chunk)))
            chunk, future = waiting.popleft()
            try:
                found = future.result()
            except BrokenProcessPool:
                found = [None] * len(chunk)
            for place, text in zip(chunk, found, strict=True):
                is_grade = text is not None and text.startswith("{")
                yield place, Grade.model_validate_json(text) if is_grade and text else text
    finally:
        for process in list((pool._processes or {}).values()):  # noqa: SLF001 - no other way
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, chunk: Sequence[Place]) -> Future[list[str | None]]:
    try:
        return pool.submit(_judged, chunk)
    except (BrokenProcessPool, OSError):
        future: Future[list[str | None]] = Future()
        future.set_result([None] * len(chunk))
        return future


def _judged(chunk: Sequence[Place]) -> list[str | None]:
    return [_as_text(_judge(place)) for place in chunk]


def _as_text(found: Found) -> str | None:
    try:
        return found.model_dump_json(by_alias=True) if isinstance(found, Grade) else found
    except ValueError:  # half of a character
        return None


def _start(make: Callable[..., Regrade], arguments: Sequence[Any]) -> None:
    """In a process of the pool, before its first chunk."""
    global _judge
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it, too
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    _judge = make(*arguments)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
