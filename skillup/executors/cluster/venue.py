"""Trials on the workers of a cluster; the client keeps the order, the budgets and the run."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from pydantic import ValidationError

from skillup.executors.attempts import leave, note_loss, retry_reason, set_aside_unused, with_note
from skillup.executors.cluster.merging import Arrived, Merging
from skillup.executors.cluster.pool import Pool, Worker
from skillup.executors.cluster.unit import Disconnected, Unit
from skillup.executors.run import Run
from skillup.executors.shared_prefix import counted_turns, without_finished
from skillup.plan import Job
from skillup.schema.record import Record, TurnError
from skillup.trial import record_without_turns

LOSSES_ALLOWED = 3
"""So often a trial begins again because its worker was lost; then it is an error."""
LOSSES_BEFORE_IT_BEGAN = 10
"""The same where the worker was lost before the trial had begun, which cannot be its doing."""


@dataclass(frozen=True, slots=True)
class _Loss:
    """Of trials that were sent to a worker."""

    why: str
    began: bool
    """One of them had begun."""
    no_room: bool
    """The worker's disk is full."""


class ClusterBackend:
    """:class:`skillup.executors.run.Backend`: each unit goes to one worker, whole."""

    def __init__(
        self, run: Run, client: Any, pool: Pool, asked: Mapping[str, Any], digest: str
    ) -> None:
        """`asked` is what each unit's process is asked; the jobs are added."""
        self._run = run
        self._client = client
        self._pool = pool
        self._asked = asked
        self._digest = digest
        self._units: dict[str, Unit] = {}
        self._started: dict[str, int] = {}
        self._counted: dict[str, list[int]] = {}
        """Of trials that have finished here, the turns that each counts."""
        self._notes: dict[str, str] = {}
        """For records, by job."""

    async def hold(self, jobs: Sequence[Job]) -> None:
        """Have the jobs held, again if they are lost, and conclude them."""
        losses = [0, 0]
        while True:
            async with self._pool.place() as worker:
                if self._run.is_enough():
                    return
                try:
                    loss = await self._attempt(worker, jobs)
                except Disconnected:
                    loss = None
                else:
                    if loss is None:
                        return
            jobs = self._rest(jobs)
            if not jobs:
                return
            if loss is None:
                await self._wait_for_the_scheduler(jobs)
                continue
            lost = loss.why
            self._tell_lost(jobs, worker, lost)
            if loss.no_room:
                # The worker's trouble, and not the trial's: elsewhere there is room.
                self._pool.leave_out(worker, lost)
                continue
            self._pool.doubt(worker)
            losses[loss.began] += 1
            if losses[True] > LOSSES_ALLOWED or losses[False] > LOSSES_BEFORE_IT_BEGAN:
                message = (
                    f"its worker was lost {sum(losses)} times while it was held; last "
                    f"{worker.address}: {lost}"
                )
                for job in jobs:
                    await self._refuse(job, TurnError(kind="crash", message=message))
                return

    def _rest(self, jobs: Sequence[Job]) -> list[Job]:
        """Those that have not finished; they know what others of their family have."""
        finished = [job.id for job in jobs if job.id in self._run.grades]
        return without_finished(jobs, {name: self._counted.get(name) for name in finished})

    def _tell_lost(self, jobs: Sequence[Job], worker: Worker, lost: str) -> None:
        names = [job.id for job in jobs]
        note_loss(self._run.directory, self._run.stopping, names, lost, worker.address)
        for job in jobs:
            self._run.observer.trial_lost(job, worker.address, lost)

    async def _wait_for_the_scheduler(self, jobs: Sequence[Job]) -> None:
        """Until it answers again; if it does not, the pool ends the run."""
        lost = "the connection to the scheduler broke"
        note_loss(self._run.directory, self._run.stopping, [job.id for job in jobs], lost)
        await self._pool.looked_again()

    async def skip(self, job: Job, reason: str) -> None:
        """Conclude a job that what it depends on keeps back; no worker is needed for that."""
        await self._run.skip(job, reason)

    def told(self, event: tuple[float, Any]) -> None:
        """A process on a worker has said something."""
        message = event[1]
        unit = self._units.get(message["unit"]) if isinstance(message, dict) else None
        if unit is not None:  # else it is of another run, or over
            unit.told(message["said"])

    def _tell_started(self, job: Job, attempt: int) -> None:
        if self._started.get(job.id) != attempt:
            self._started[job.id] = attempt
            self._run.observer.trial_started(job, attempt)

    async def _attempt(self, worker: Worker, jobs: Sequence[Job]) -> _Loss | None:
        """Hold the jobs on `worker`; how some of them were lost. Raises Disconnected."""
        for job in jobs:
            self._begin_anew(job)
        places = [self._run.directory.begin_trial(job.id) for job in jobs]
        for job in jobs:
            self._started.pop(job.id, None)
            self._run.directory.journal("trial_sent", job=job.id, worker=worker.address)
        merging = Merging(self._run.directory, self._run.options.secrets)

        async def take_in(data: bytes, some: Sequence[Job], *, whole: bool) -> str | None:
            return await self._take_in(merging, data, some, places[0].scratch, whole=whole)

        async def arrived(job: Job, data: bytes) -> bool:
            return await take_in(data, [job], whole=False) is None

        unit = Unit(
            self._run, self._client, worker, jobs, self._tell_started, arrived, merging.there
        )
        self._units[unit.id] = unit
        try:
            ended = await unit.hold(self._asked, self._digest, self.told)
            lost = ended.lost
            # What has arrived is finished: it is kept, even if the run ends in this moment.
            with anyio.CancelScope(shield=True):
                self._units.pop(unit.id)
                rest = [job for job in jobs if job.id not in self._run.grades]
                if lost is None and not ended.last_word:
                    # It ended by itself before it could hold anything: so it would everywhere.
                    said = ended.said or "it said nothing"
                    await self._refuse_all(rest, f"the worker's skillup failed: {said}")
                elif ended.trials:
                    torn = await take_in(ended.trials, rest, whole=lost is None)
                    lost = lost or torn or self._unfinished(rest)
            # Not within the scope, which may swallow what is raised in it.
            return _Loss(lost, unit.began, ended.no_room) if lost is not None else None
        finally:
            self._units.pop(unit.id, None)
            for job in jobs:
                self._run.directory.remove_scratch(job.id)

    def _unfinished(self, jobs: Sequence[Job]) -> str | None:
        # Trials were left only if their provider wants nothing more of the whole run.
        left = any(job.id not in self._run.grades for job in jobs) and not self._run.is_enough()
        return "it was not finished there" if left else None

    def _begin_anew(self, job: Job) -> None:
        """A trial that an earlier start of the run left: no worker can see where its session is."""
        noted = self._run.directory.read_checkpoint(job.id)
        if noted is not None:
            self._run.stopping.count_attempt(noted.record)
            why = "its session is not on the worker that holds it now"
            self._notes[job.id] = set_aside_unused(self._run.directory, job, noted, why)

    async def _take_in(
        self, merging: Merging, data: bytes, jobs: Sequence[Job], scratch: Path, *, whole: bool
    ) -> str | None:
        """Conclude what has come; why it is of no use, if it is not."""
        try:
            arrived = await anyio.to_thread.run_sync(
                partial(merging.take_in, data, jobs, scratch, whole=whole)
            )
        except (tarfile.TarError, zlib.error, EOFError, ValidationError) as error:
            return f"what it sent back is not whole: {' '.join(str(error).split())[:300]}"
        for trial in arrived:
            await self._take_over(trial)
        return None

    async def _take_over(self, trial: Arrived) -> None:
        job = trial.job
        for record in trial.attempts:
            reason = retry_reason(record, job.loaded.case.retry_policy) or "error"
            self._run.give_up(job, record, reason)
            self._run.directory.journal("trial_started", job=job.id)
        if trial.record is not None:
            self._tell_started(job, trial.record.attempt)
            record = with_note(trial.record, self._notes.get(job.id))
            turns = counted_turns(record)
            if turns is not None:
                self._counted[job.id] = turns
            await self._run.conclude(job, record, trial.grade)
            return
        if trial.checkpoint is not None:
            # Its session is gone; what it took and how far it came is told when it is held again.
            self._run.directory.write_checkpoint(job.id, trial.checkpoint)
        if self._run.is_enough() and job.id in self._started:
            leave(self._run, job)

    async def _refuse_all(self, jobs: Sequence[Job], why: str) -> None:
        for job in jobs:
            await self._refuse(job, TurnError(kind="internal", message=why))

    async def _refuse(self, job: Job, error: TurnError) -> None:
        record: Record = record_without_turns(self._run.request(job, 1), error=error)
        self._run.directory.remove_scratch(job.id)
        self._tell_started(job, 1)
        await self._run.conclude(job, record)
