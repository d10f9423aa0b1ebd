"""A unit: trials that are held together on one worker, and what is said while they are held."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from skillup.executors.cluster.on_worker import TOPIC, hold, pass_in
from skillup.executors.cluster.pool import Worker
from skillup.executors.cluster.telling import event_of
from skillup.executors.run import Run
from skillup.plan import Job
from skillup.schema.record import TurnError
from skillup.trial.request import Patience

_CANCEL_SECONDS = 5.0
_PAUSES_SECONDS = (1.0, 3.0, 0.0)
"""After each time that an answer could not be brought to the worker."""


class Lost(Exception):  # noqa: N818  it is no error but what happened
    """The worker has gone, or the process that held the trials was killed."""


class Disconnected(Exception):  # noqa: N818  nor is this
    """The connection to the scheduler broke; Dask takes back all tasks of a client then."""


class Unit:
    """One attempt at having `jobs` held on `worker`."""

    def __init__(
        self,
        run: Run,
        client: Any,
        worker: Worker,
        jobs: Sequence[Job],
        started: Callable[[Job, int], None],
    ) -> None:
        """`started` is told when the worker begins a trial, or a new attempt at one."""
        self.id = uuid.uuid4().hex
        self._run = run
        self._client = client
        self._worker = worker
        self._jobs = {job.id: job for job in jobs}
        self._started = started
        self._patiences: dict[tuple[str, int], Patience] = {}
        self._group: TaskGroup | None = None
        self._lost: str | None = None
        self.began = False
        """A trial was begun there: whatever happened since may be that trial's doing."""

    async def hold(
        self, asked: Mapping[str, Any], digest: str, told: Callable[[Any], None]
    ) -> Mapping[str, Any]:
        """What the worker answers in the end; `told` hears what all units say.

        Raises Lost, Disconnected.
        """
        # Once more each time: a client that had to connect anew is not told of anything any more.
        self._client.subscribe_topic(TOPIC, told)
        future = self._client.submit(
            hold,
            {**asked, "unit": self.id, "jobs": list(self._jobs), "counted": self._counted()},
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
                group.start_soon(self._leave_with_the_worker)
                try:
                    answer = await future
                except Exception as error:  # noqa: BLE001  whatever the other side or Dask raised
                    failure = error
                group.cancel_scope.cancel()
        finally:
            self._group = None
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self._client.cancel([future], force=True)
            future.release()
        if failure is not None:
            said = " ".join(str(failure).split())
            if "scheduler-connection-lost" in said:
                raise Disconnected from failure
            raise Lost(f"{type(failure).__name__}: {said[:300]}") from failure
        if answer is None:
            raise Lost(self._lost or "the worker has gone")
        if answer["code"] < 0 or answer["stopped"]:
            how = "was stopped" if answer["stopped"] else f"was killed (signal {-answer['code']})"
            raise Lost(f"the process that held it {how}")
        return answer

    def _counted(self) -> dict[str, list[int]]:
        """Of the jobs' families, what has finished, and the turns that each of those counts."""
        known = (relative for job in self._jobs.values() for relative in job.relatives)
        return {one.id: list(one.counts) for one in known if one.counts is not None}

    def told(self, said: str) -> None:
        """The process that holds the trials has said something, in a line of JSON."""
        try:
            message = json.loads(said)
            if message["event"] == "asked":
                self._asked(message)
            elif message["event"] == "started":
                self.began = True
                self._started(self._jobs[message["job"]], message["attempt"])
            elif message["of"]["job"] in self._jobs:
                self._run.observer.trial_event(event_of(message["of"]))
        except (KeyError, TypeError, ValueError):
            return  # no word of ours

    def _asked(self, message: Mapping[str, Any]) -> None:
        patience = self._patience(message["job"], message["attempt"])
        if message["what"] == "accepted":
            patience.accepted()
        elif message["what"] == "ready":
            self._answer(message["number"], patience.ready)
        elif message["what"] == "refused":
            error = TurnError.model_validate(message["error"])
            self._answer(message["number"], partial(patience.refused, error, message["times"]))

    def _patience(self, job: str, attempt: int) -> Patience:
        key = (job, attempt)
        if key not in self._patiences:
            self._patiences[key] = self._run.patience(self._jobs[job], attempt)
        return self._patiences[key]

    def _answer(self, number: int, find_out: Callable[[], Any]) -> None:
        async def answer() -> None:
            line = json.dumps({"number": number, "given": await find_out()})
            await self._bring(line)

        if self._group is not None:
            self._group.start_soon(answer)

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
