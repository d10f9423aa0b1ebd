"""Trials on the workers of a cluster; the client keeps the order, the budgets and the run."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from skillup.executors.cluster.merging import Arrived, take_in
from skillup.executors.cluster.on_worker import hold
from skillup.executors.cluster.pool import Pool, Worker
from skillup.executors.cluster.telling import event_of
from skillup.executors.cluster.trial_parcel import unpack_trials
from skillup.executors.retry import retry_reason
from skillup.executors.run import Run
from skillup.plan import Job
from skillup.schema.grade import Stop
from skillup.schema.record import Record, TurnError
from skillup.trial import record_without_turns

LOSSES_ALLOWED = 3
"""So often a trial begins again because its worker was lost; then it is an error."""

_CANCEL_SECONDS = 5.0


class Lost(Exception):  # noqa: N818  it is no error but what happened
    """The worker has gone, or the process that held the trials was killed."""


class ClusterVenue:
    """:class:`skillup.executors.run.Venue`: each unit goes to one worker, whole."""

    def __init__(
        self, run: Run, client: Any, pool: Pool, asked: Mapping[str, Any], digest: str
    ) -> None:
        """`asked` is what each unit's process is asked; the jobs are added."""
        self._run = run
        self._client = client
        self._pool = pool
        self._asked = asked
        self._digest = digest
        self._units: dict[str, dict[str, Job]] = {}
        self._started: dict[str, int] = {}

    async def hold(self, jobs: Sequence[Job]) -> None:
        """Have the jobs held, again if they are lost, and conclude them."""
        losses = 0
        while True:
            async with self._pool.place() as worker:
                if self._run.is_enough():
                    return
                lost = await self._attempt(worker, jobs)
            if lost is None:
                return
            losses += 1
            self._run.stopping.note(f"worker {worker.address}: {lost}; trials there were lost")
            for job in jobs:
                self._run.directory.journal(
                    "trial_lost", job=job.id, worker=worker.address, reason=lost
                )
                self._run.observer.trial_lost(job, worker.address, lost)
            if losses > LOSSES_ALLOWED:
                message = (
                    f"its worker was lost {losses} times while it was held; last {worker.address}: "
                    f"{lost}"
                )
                for job in jobs:
                    await self._refuse(job, TurnError(kind="crash", message=message))
                return

    async def skip(self, job: Job, reason: str) -> None:
        """Conclude a job that what it depends on keeps back; no worker is needed for that."""
        await self._run.skip(job, reason)

    def told(self, event: tuple[float, Any]) -> None:
        """A worker says what goes on in one of the units."""
        message = event[1]
        jobs = self._units.get(message["unit"]) if isinstance(message, dict) else None
        if jobs is None:  # of another run, or over
            return
        try:
            said = json.loads(message["said"])
            if said["event"] == "started":
                self._tell_started(jobs[said["job"]], said["attempt"])
            elif said["of"]["job"] in jobs:
                self._run.observer.trial_event(event_of(said["of"]))
        except (KeyError, TypeError, ValueError):
            return  # no word of ours; it is for the eye only

    def _tell_started(self, job: Job, attempt: int) -> None:
        if self._started.get(job.id) != attempt:
            self._started[job.id] = attempt
            self._run.observer.trial_started(job, attempt)

    async def _attempt(self, worker: Worker, jobs: Sequence[Job]) -> str | None:
        """Hold the jobs on `worker`; how they were lost, None: they were not."""
        unit = uuid.uuid4().hex
        places = [self._run.directory.begin_trial(job.id) for job in jobs]
        for job in jobs:
            self._started.pop(job.id, None)
            self._run.directory.journal("trial_sent", job=job.id, worker=worker.address)
        self._units[unit] = {job.id: job for job in jobs}
        try:
            answer = await self._on(worker, unit, jobs)
            lost: str | None = None
            # What has arrived is finished: it is kept, even if the run ends in this moment.
            with anyio.CancelScope(shield=True):
                self._units.pop(unit)
                lost = await self._conclude(answer, jobs, places[0].scratch)
            return lost  # noqa: RET504  a scope may swallow what is raised in it
        except Lost as what:
            return str(what)
        finally:
            self._units.pop(unit, None)
            for job in jobs:
                self._run.directory.remove_scratch(job.id)

    async def _on(self, worker: Worker, unit: str, jobs: Sequence[Job]) -> Mapping[str, Any]:
        """What the worker answers. Raises Lost."""
        asked = {**self._asked, "unit": unit, "jobs": [job.id for job in jobs]}
        future = self._client.submit(
            hold,
            asked,
            self._digest,
            key=f"skillup-{unit}",
            workers=[worker.address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        answer: Mapping[str, Any] | None = None
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as group:

                async def leave_with_the_worker() -> None:
                    await worker.gone.wait()
                    group.cancel_scope.cancel()

                group.start_soon(leave_with_the_worker)
                try:
                    answer = await future
                except Exception as error:  # noqa: BLE001  whatever the other side or Dask raised
                    failure = error
                group.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self._client.cancel([future], force=True)
            future.release()
        if failure is not None:
            said = " ".join(str(failure).split())
            raise Lost(f"{type(failure).__name__}: {said[:300]}") from failure
        if answer is None:
            raise Lost("the worker has gone")
        if answer["code"] < 0 or answer["stopped"]:
            how = "was stopped" if answer["stopped"] else f"was killed (signal {-answer['code']})"
            raise Lost(f"the process that held it {how}")
        return answer

    async def _conclude(
        self, answer: Mapping[str, Any], jobs: Sequence[Job], scratch: Path
    ) -> str | None:
        end = answer["end"]
        if end is None:
            # It ended by itself before it could hold anything: so it would everywhere.
            message = f"the worker's skillup failed: {answer['said'] or 'it said nothing'}"
            for job in jobs:
                await self._refuse(job, TurnError(kind="internal", message=message))
            return None
        arrived = await anyio.to_thread.run_sync(self._take_in, answer["trials"], jobs, scratch)
        for trial in arrived:
            await self._take_over(trial)
        if end.get("stop") is not None:
            self._run.stopping.stop(Stop.model_validate(end["stop"]))
        unfinished = any(trial.record is None for trial in arrived)
        if unfinished and end.get("stop") is None:
            return "it was not finished there"
        return None

    def _take_in(self, trials: bytes, jobs: Sequence[Job], scratch: Path) -> list[Arrived]:
        with tempfile.TemporaryDirectory(dir=scratch) as laid_out:
            unpack_trials(trials, Path(laid_out))
            options = self._run.options
            return take_in(Path(laid_out), jobs, self._run.directory, options.secrets)

    async def _take_over(self, trial: Arrived) -> None:
        job = trial.job
        for record in trial.attempts:
            reason = retry_reason(record, job.loaded.case.retry_policy) or "error"
            self._run.give_up(job, record, reason)
            self._run.directory.journal("trial_started", job=job.id)
        if trial.record is not None:
            self._tell_started(job, trial.record.attempt)
            await self._run.conclude(job, trial.record, trial.grade)

    async def _refuse(self, job: Job, error: TurnError) -> None:
        record: Record = record_without_turns(self._run.request(job, 1), error=error)
        self._run.directory.remove_scratch(job.id)
        self._tell_started(job, 1)
        await self._run.conclude(job, record)
