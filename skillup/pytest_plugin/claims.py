"""With pytest-xdist: each trial is held by one worker, and known to the others that need it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from skillup.app.xdist import WORKERS
from skillup.plan import Job
from skillup.schema.grade import Grade
from skillup.store import RunDirectory
from skillup.store.files import make_directory
from skillup.store.lock import BeingWrittenError, RunLock
from skillup.store.runs import runs_in

_CLAIMS = "claims"
_LOOK_AGAIN_SECONDS = 0.1


class Claims:
    """What the workers of a session have to agree on, by files: nothing else do they share."""

    def __init__(self, run: Path, worker: str) -> None:
        """`run`: the session's run directory; `worker`: such as ``gw0``."""
        self.run = run
        self.own = run / WORKERS / worker
        self._others = run / WORKERS

    @asynccontextmanager
    async def claim(self, job: Job) -> AsyncIterator[Grade | None]:
        """While within, no other worker holds the trial; its grade, if one of them has.

        Who comes second waits. Nobody waits while others wait for him: what a trial depends on is
        held before the trial is claimed. Raises RunDirectoryError.
        """
        folder = self._others / _CLAIMS
        make_directory(folder)
        name = hashlib.sha256(job.id.encode(errors="surrogatepass")).hexdigest()
        lock = await _taken(folder / name)
        try:
            yield self._known(job.id)
        finally:
            lock.release()

    def _known(self, job_id: str) -> Grade | None:
        for name in runs_in(self._others):
            grade = RunDirectory.open(self._others / name).read_grade(job_id)
            if grade is not None:
                return grade
        return None


async def _taken(path: Path) -> RunLock:
    while True:
        try:
            return RunLock(path)
        except BeingWrittenError:
            # A blocking wait could not be left at Ctrl-C.
            await anyio.sleep(_LOOK_AGAIN_SECONDS)
