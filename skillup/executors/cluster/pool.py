"""The workers of a run: who there is, who has room, and who has gone."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from skillup.errors import SkillupError
from skillup.executors.cluster.looking import Looked

_LOOK_SECONDS = 1.0
_LOOKS_AT_DOUBTED = 5
"""Each sends the suites anew; whoever cannot hold trials by then gets no more of them."""
_MORE_LOOKS = 2
"""After one of a worker that could not be asked, or could not answer."""
_ANSWER_SECONDS = 20.0
_WITHOUT_WORKERS_SECONDS = 60.0
"""How long a run waits for workers: at its start for the first, later for those that come again."""


@dataclass(slots=True, eq=False)
class Worker:
    """A worker that can hold trials, as many at once as it has threads."""

    address: str
    threads: int
    free: int
    gone: anyio.Event = field(default_factory=anyio.Event)
    doubted: bool = False
    """Something was lost there: it gets no more before it has been looked at again."""
    looks: int = 0
    """In vain, since it is doubted."""


class Pool:
    """Workers come and go while a run goes on; each is looked at before it gets anything."""

    def __init__(
        self,
        client: Any,
        look: Callable[[str], Awaitable[Looked]],
        resized: Callable[[int], None],
        without_workers_seconds: float = _WITHOUT_WORKERS_SECONDS,
    ) -> None:
        """`resized` is told how many threads there are, whenever that changes."""
        self._client = client
        self._look = look
        self._resized = resized
        self._patience = without_workers_seconds
        self.about: dict[str, Looked] = {}
        self._known: dict[str, Worker | None] = {}
        self._asked: list[Worker] = []
        """Those that are being looked at again."""
        self._changed = anyio.Event()
        self._looked = anyio.Event()

    @property
    def workers(self) -> list[Worker]:
        """Those that can hold trials now."""
        return [worker for worker in self._known.values() if worker is not None]

    async def open(self) -> None:
        """Look at all workers there are.

        Raises SkillupError if none of them, nor any that comes within a minute, can hold trials.
        """
        present = await self._present()
        with anyio.move_on_after(self._patience):
            while not present:
                await anyio.sleep(_LOOK_SECONDS)
                present = await self._present()
        if not present:
            raise SkillupError(
                f"the cluster has no workers, and none came within {self._patience:g} s",
                hint="start some: `dask worker ADDRESS`, or scale() of the cluster's deployer",
            )
        await self._take_in(present)
        if not self.workers:
            missing = "; ".join(f"{a}: {looked.problem}" for a, looked in self.about.items())
            raise SkillupError(
                f"no worker can hold these trials: {missing}",
                hint="install what is missing there; docs/nightly.md says what a worker needs",
            )

    async def watch(self) -> None:
        """Notice who comes and who goes, for ever.

        Raises SkillupError if the scheduler has gone, or if no worker has been left for a minute.
        """
        async with anyio.create_task_group() as group:
            deserted = anyio.current_time()
            while True:
                await anyio.sleep(_LOOK_SECONDS)
                present = await self._present()
                for address in [a for a in self._known if a not in present]:
                    self._drop(address)
                new = {a: n for a, n in present.items() if a not in self._known}
                if new:
                    self._known.update(dict.fromkeys(new))
                    group.start_soon(self._take_in, new)
                for worker in [w for w in self.workers if w.doubted and w not in self._asked]:
                    self._asked.append(worker)
                    group.start_soon(self._look_again, worker)
                looked, self._looked = self._looked, anyio.Event()
                looked.set()
                if self.workers:
                    deserted = anyio.current_time()
                elif anyio.current_time() - deserted > self._patience:
                    raise SkillupError(
                        f"no worker has been left for {self._patience:g} s{self._why_none()}",
                        hint="what has finished is kept: go on with `skillup run --resume`",
                    )

    def _why_none(self) -> str:
        left_out = [
            f"{address}: {self.about[address].problem}"
            for address, worker in self._known.items()
            if worker is None and address in self.about
        ]
        return f"; there are {'; '.join(left_out)}" if left_out else ""

    async def looked_again(self) -> None:
        """Wait until the scheduler has said anew who is there; else :meth:`watch` raises."""
        await self._looked.wait()
        await self._looked.wait()  # the first one may have been asked before

    def doubt(self, worker: Worker) -> None:
        """Something was lost there; it may have begun anew, with nothing of what it was sent."""
        worker.doubted = True
        self._tell()

    def leave_out(self, worker: Worker, why: str) -> None:
        """It gets no more trials of this run; those that it has go on."""
        if self._known.get(worker.address) is worker:
            self.about[worker.address] = Looked(why, {})
            self._known[worker.address] = None
            self._say_why_not(worker.address)
            self._tell()

    async def _look_again(self, worker: Worker) -> None:
        looked = await self._look(worker.address)
        self._asked.remove(worker)
        if looked.problem is None:
            worker.doubted, worker.looks = False, 0
            self._tell()
            return
        worker.looks += 1
        if not looked.passing or worker.looks == _LOOKS_AT_DOUBTED:
            self.leave_out(worker, looked.problem)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Worker]:
        """Wait for a free thread of the worker that has most of them free."""
        while True:
            free = [worker for worker in self.workers if worker.free > 0 and not worker.doubted]
            if free:
                break
            await self._changed.wait()
        worker = max(free, key=lambda w: w.free)
        worker.free -= 1
        try:
            yield worker
        finally:
            worker.free += 1
            self._tell()

    async def _present(self) -> dict[str, int]:
        """Threads by address. Raises SkillupError if the scheduler does not answer."""
        try:
            with anyio.fail_after(_ANSWER_SECONDS):
                found = await self._client.nthreads()
        except (OSError, TimeoutError, RuntimeError, AttributeError) as error:
            # Without a connection the client has no scheduler to ask, and says so in many ways.
            raise SkillupError(
                "the Dask scheduler does not answer any more",
                hint="what has finished is kept: go on with `skillup run --resume`",
            ) from error
        return dict(found)

    async def _take_in(self, present: dict[str, int]) -> None:
        async def ask(address: str, threads: int) -> None:
            async with limiter:
                looked = await self._look(address)
                for _ in range(_MORE_LOOKS):
                    if not looked.passing:
                        break
                    await anyio.sleep(_LOOK_SECONDS)
                    looked = await self._look(address)
                self.about[address] = looked
            if looked.problem is None:
                self._known[address] = Worker(address, threads, threads)
            else:
                self._known[address] = None

        limiter = anyio.CapacityLimiter(16)
        async with anyio.create_task_group() as group:
            for address, threads in present.items():
                group.start_soon(ask, address, threads)
        self._leave_out_those_without_login()
        if self.workers:
            self._tell()
            for address in present:
                self._say_why_not(address)

    def _leave_out_those_without_login(self) -> None:
        """Where others have one: a trial there would be an error for want of it."""
        doubts = {w.address: self.about[w.address].doubts() for w in self.workers}
        for address, missing in doubts.items():
            others = [doubts[other] for other in doubts if other != address]
            lacking = [p for p in missing if any(p not in other for other in others)]
            if lacking and not self._known_busy(address):
                why = f"{missing[lacking[0]]} (other workers have one)"
                self.about[address] = replace(self.about[address], problem=why)
                self._known[address] = None

    def _known_busy(self, address: str) -> bool:
        worker = self._known[address]
        return worker is not None and worker.free < worker.threads

    def _say_why_not(self, address: str) -> None:
        looked = self.about[address]
        if looked.problem is not None:
            line = f"worker {address}: {looked.problem}; it gets no trials"
        else:
            doubts = looked.doubts()
            if not doubts:
                return
            line = f"warning: worker {address}: {'; '.join(doubts.values())}"
        sys.stderr.write(" ".join(line.split()) + "\n")

    def _drop(self, address: str) -> None:
        worker = self._known.pop(address)
        if worker is not None:
            worker.gone.set()
            self._tell()

    def _tell(self) -> None:
        self._resized(max(1, sum(w.threads for w in self.workers if not w.doubted)))
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
