"""Other processes that judge shares of a large run, and say line by line what they have found."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

import anyio
from anyio.from_thread import start_blocking_portal

import skillup
from skillup.process import ProcessRequest, run_process

_MODULE = "skillup.app.rejudge.worker"
_LINES_AHEAD = 4
"""How far a worker may be ahead of who listens: what it has said is held in memory."""


class Crew:
    """Workers, each with a request of its own; they end with their work, or at :meth:`close`.

    A worker that cannot start, or fails, has no more lines: that is all one sees of it.
    """

    def __init__(self, requests: Sequence[bytes]) -> None:
        self._lines: list[SimpleQueue[bytes | None]] = [SimpleQueue() for _ in requests]
        self._ended = [False for _ in requests]
        self._room: dict[int, anyio.Semaphore] = {}
        self._loop = start_blocking_portal()
        self._portal = self._loop.__enter__()
        self._tasks = [
            self._portal.start_task_soon(self._work, number, request)
            for number, request in enumerate(requests)
        ]
        self._closed = False

    def line(self, number: int) -> bytes | None:
        """The worker's next line, waited for; None: there will be none any more."""
        if self._ended[number]:
            return None
        line = self._lines[number].get()
        if line is None:
            self._ended[number] = True
        else:
            self._portal.start_task_soon(self._room[number].release)
        return line

    def close(self) -> None:
        """Ends those that are still at work; may be called again."""
        if self._closed:
            return
        self._closed = True
        for task in self._tasks:
            task.cancel()
        self._loop.__exit__(None, None, None)

    async def _work(self, number: int, request: bytes) -> None:
        room = self._room[number] = anyio.Semaphore(_LINES_AHEAD)

        async def take(line: bytes) -> None:
            self._lines[number].put(line)
            await room.acquire()

        try:
            await run_process(_process(request), take)
        finally:
            self._lines[number].put(None)


def _process(request: bytes) -> ProcessRequest:
    # It imports this skillup and no other, and nothing that happens to lie in the user's folder.
    here = str(Path(skillup.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))
    return ProcessRequest(
        argv=(sys.executable, "-P", "-m", _MODULE),
        cwd=Path.cwd(),
        env={**os.environ, "PYTHONPATH": path},
        stdin=request,
    )
