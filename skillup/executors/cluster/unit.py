"""A unit: trials that are held together on one worker, and what is said while they are held."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from skillup.errors import SkillupError
from skillup.executors.cluster.answering import Answering
from skillup.executors.cluster.on_worker import TOPIC, hold, pass_in, send
from skillup.executors.cluster.pool import Worker
from skillup.executors.cluster.spawned import NO_ROOM
from skillup.executors.cluster.telling import event_of
from skillup.executors.run import Run, case_of
from skillup.executors.shared_prefix import note_shared
from skillup.plan import Job
from skillup.workspace.failures import FULL

_CANCEL_SECONDS = 5.0
_PAUSES_SECONDS = (1.0, 3.0, 0.0)
"""After each time that an answer could not be brought to the worker."""


class Disconnected(Exception):  # noqa: N818  it is no error but what happened
    """The connection to the scheduler broke; Dask takes back all tasks of a client then."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a unit ended."""

    lost: str | None
    """Why not all of its trials can have been held: the worker has gone, or its process died."""
    last_word: bool = False
    """The process has ended as it should. If not, and nothing was lost, it could hold nothing."""
    said: str = ""
    """The end of its stderr."""
    no_room: bool = False
    """It was lost because the worker's disk is full."""
    trials: bytes = b""
    """What has not been sent before, as :mod:`~skillup.executors.cluster.merging` takes it in."""


class Unit:
    """One attempt at having `jobs` held on `worker`."""

    def __init__(
        self,
        run: Run,
        client: Any,
        worker: Worker,
        jobs: Sequence[Job],
        started: Callable[[Job, int], None],
        arrived: Callable[[Job, bytes], Awaitable[bool]],
        there: Collection[str],
    ) -> None:
        """`started` is told when the worker begins a trial, or a new attempt at one.

        `arrived` gets a trial that has finished while others go on, and says whether it is whole;
        `there` are the blobs and answers that have come already.
        """
        self.id = uuid.uuid4().hex
        self._run = run
        self._client = client
        self._worker = worker
        self._jobs = {job.id: job for job in jobs}
        self._tell_started = started
        self._arrived = arrived
        self._there = there
        self._taken: set[str] = set()
        self._one_by_one = anyio.Lock()
        self._group: TaskGroup | None = None
        self._answering: Answering | None = None
        self._lost: str | None = None
        self.began = False
        """A trial was begun there: whatever happened since may be that trial's doing."""

    async def hold(
        self, asked: Mapping[str, Any], digest: str, told: Callable[[Any], None]
    ) -> Ended:
        """Have it held; `told` hears what all of the run's units say. Raises Disconnected."""
        # What they are judged by: an agent may have changed it there.
        known = self._run.references
        files = {"references": {case: known.get(case, {}) for case in map(case_of, self._jobs)}}
        # Once more each time: a client that had to connect anew is not told of anything any more.
        self._client.subscribe_topic(TOPIC.format(digest=digest), told)
        future = self._client.submit(
            hold,
            {**asked, **files, "unit": self.id, "jobs": [*self._jobs], "counted": self._counted()},
            digest,
            key=f"skillup-{self.id}",
            workers=[self._worker.address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        answer: Mapping[str, Any] | None = None
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                self._answering = Answering(
                    self._run, self._jobs, group, self._bring, self._settled
                )
                group.start_soon(self._leave_with_the_worker)
                try:
                    answer = await future
                except Exception as error:  # noqa: BLE001  whatever the other side or Dask raised
                    failure = error
                group.cancel_scope.cancel()
        finally:
            self._group = self._answering = None
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self._client.cancel([future], force=True)
            future.release()
        if failure is not None:
            said = " ".join(str(failure).split())
            if "scheduler-connection-lost" in said:
                raise Disconnected from failure
            full = isinstance(failure, OSError) and failure.errno in FULL
            return Ended(f"{type(failure).__name__}: {said[:300]}", no_room=full)
        if answer is None:
            return Ended(self._lost or "the worker has gone")
        lost: str | None = None
        if answer["code"] < 0 or answer["stopped"]:
            how = "was stopped" if answer["stopped"] else f"was killed (signal {-answer['code']})"
            lost = f"the process that held it {how}"
        elif answer["code"] == NO_ROOM:
            lost = _last_line(answer["said"]) or "its disk has no room left"
        elif answer["end"] is None and self.began:
            lost = f"the process that held it failed: {_last_line(answer['said'])}"
        full = answer["code"] == NO_ROOM
        return Ended(lost, answer["end"] is not None, answer["said"], full, answer["trials"])

    def _counted(self) -> dict[str, list[int]]:
        """Of the jobs' families, what has finished, and the turns that each of those counts."""
        known = (relative for job in self._jobs.values() for relative in job.relatives)
        return {one.id: list(one.counts) for one in known if one.counts is not None}

    def told(self, said: str) -> None:
        """The process that holds the trials has said something, in a line of JSON."""
        if self._group is None or self._answering is None:
            return
        try:
            message = json.loads(said)
            if message["event"] == "asked":
                self._answering.asked(message)
            elif message["event"] == "started":
                self._started(self._jobs[message["job"]], message["attempt"])
            elif message["event"] == "finished":
                if len(self._jobs) > 1:  # else it comes in a moment, with the end
                    self._group.start_soon(self._fetch, self._jobs[message["job"]])
            elif message["event"] == "shared":
                self._note_shared(message["costs"])
            elif message["of"]["job"] in self._jobs:
                self._run.observer.trial_event(event_of(message["of"]))
        except (KeyError, TypeError, ValueError):
            return  # no word of ours

    def _started(self, job: Job, attempt: int) -> None:
        self.began = True
        if self._answering is not None and attempt == 1:
            self._answering.begins(job.id)
        self._tell_started(job, attempt)

    async def _settled(self) -> None:
        """Wait for what has finished and is under way."""
        async with self._one_by_one:
            pass

    def _note_shared(self, costs: Mapping[str, Any]) -> None:
        try:
            note_shared(self._run.directory, self._run.stopping, costs)
        except SkillupError as error:
            # Dask would keep it to itself.
            assert self._group is not None
            self._group.start_soon(_fail, error)

    async def _fetch(self, job: Job) -> None:
        """A trial has finished; were the worker lost, it would be held once more for nothing."""
        async with self._one_by_one:
            there = [*self._there, *self._taken]
            try:
                data = await self._client.run(
                    send, self.id, job.id, there, workers=[self._worker.address]
                )
            except Exception:  # noqa: BLE001  whatever the other side or Dask raised
                return  # it comes with the end, if the worker has not gone
            trial = data.get(self._worker.address)
            if trial is not None:
                with anyio.CancelScope(shield=True):
                    if await self._arrived(job, trial):
                        self._taken.add(job.id)

    async def _bring(self, line: str) -> None:
        """To the process; where that cannot be done the unit is lost."""
        said = ""
        for pause in _PAUSES_SECONDS:
            try:
                await self._client.run(pass_in, self.id, line, workers=[self._worker.address])
                return
            except Exception as error:  # noqa: BLE001  whatever the other side or Dask raised
                said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            await anyio.sleep(pause)
        self._leave(f"it could not be answered: {said}")

    async def _leave_with_the_worker(self) -> None:
        await self._worker.gone.wait()
        self._leave("the worker has gone")

    def _leave(self, why: str) -> None:
        self._lost = why
        if self._group is not None:
            self._group.cancel_scope.cancel()


def _last_line(said: str) -> str:
    return said.rpartition("\n")[2].strip()[:300]


async def _fail(error: SkillupError) -> None:
    raise error
