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
from contextlib import suppress
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
    try:
        context = get_context("fork" if sys.platform == "linux" else "spawn")
        pool = ProcessPoolExecutor(workers, context, _start, (make, arguments))
    except (OSError, ImportError):  # no shared memory here
        yield from ((place, None) for place in places)
        return
    chunks = deque(places[at : at + _CHUNK] for at in range(0, len(places), _CHUNK))
    waiting: deque[tuple[Sequence[Place], Future[list[str | None]] | None]] = deque()
    try:
        while chunks or waiting:
            while chunks and len(waiting) < workers * _CHUNKS_AHEAD:
                chunk = chunks.popleft()
                try:
                    waiting.append((chunk, pool.submit(_judged, chunk)))
                except (BrokenProcessPool, OSError):
                    waiting.append((chunk, None))
            chunk, future = waiting.popleft()
            found: list[str | None] = [None] * len(chunk)
            with suppress(BrokenProcessPool):
                found = future.result() if future is not None else found
            for place, text in zip(chunk, found, strict=True):
                is_grade = text is not None and text.startswith("{")
                yield place, Grade.model_validate_json(text) if is_grade and text else text
    finally:
        for process in list((pool._processes or {}).values()):  # noqa: SLF001 - no other way
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


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


def _judged(chunk: Sequence[Place]) -> list[str | None]:
    texts: list[str | None] = []
    for found in map(_judge, chunk):
        try:
            texts.append(
                found.model_dump_json(by_alias=True) if isinstance(found, Grade) else found
            )
        except ValueError:  # half of a character
            texts.append(None)
    return texts
