"""Trials on the workers of a cluster; the client keeps the order, the budgets and the run."""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from pydantic import ValidationError

from skillup.executors.attempts import LEFT, set_aside_unused, with_note
from skillup.executors.cluster.merging import Arrived, take_in
from skillup.executors.cluster.pool import Pool, Worker
from skillup.executors.cluster.trial_parcel import unpack_trials
from skillup.executors.cluster.unit import Disconnected, Lost, Unit
from skillup.executors.retry import retry_reason
from skillup.executors.run import Run
from skillup.plan import Job
from skillup.schema.record import Record, TurnError
from skillup.trial import TrialEvent, record_without_turns

LOSSES_ALLOWED = 3
"""So often a trial begins again because its worker was lost; then it is an error."""
LOSSES_BEFORE_IT_BEGAN = 10
"""The same where the worker was lost before the trial had begun, which cannot be its doing."""


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
        self._units: dict[str, Unit] = {}
        self._started: dict[str, int] = {}
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
                    lost, began = await self._attempt(worker, jobs)
                except Disconnected:
                    lost, began = None, True
                else:
                    if lost is None:
                        return
            if lost is None:
                await self._wait_for_the_scheduler(jobs)
                continue
            self._tell_lost(jobs, worker, lost)
            losses[began] += 1
            if losses[True] > LOSSES_ALLOWED or losses[False] > LOSSES_BEFORE_IT_BEGAN:
                message = (
                    f"its worker was lost {sum(losses)} times while it was held; last "
                    f"{worker.address}: {lost}"
                )
                for job in jobs:
                    await self._refuse(job, TurnError(kind="crash", message=message))
                return

    def _tell_lost(self, jobs: Sequence[Job], worker: Worker, lost: str) -> None:
        self._run.stopping.note(f"worker {worker.address}: {lost}; trials there were lost")
        for job in jobs:
            self._run.directory.journal(
                "trial_lost", job=job.id, worker=worker.address, reason=lost
            )
            self._run.observer.trial_lost(job, worker.address, lost)

    async def _wait_for_the_scheduler(self, jobs: Sequence[Job]) -> None:
        """Until it answers again; if it does not, the pool ends the run."""
        lost = "the connection to the scheduler broke"
        self._run.stopping.note(f"{lost}: trials that were running then began again")
        for job in jobs:
            self._run.directory.journal("trial_lost", job=job.id, reason=lost)
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

    async def _attempt(self, worker: Worker, jobs: Sequence[Job]) -> tuple[str | None, bool]:
        """Hold the jobs on `worker`; how they were lost (None: not), and whether one had begun.

        Raises Disconnected.
        """
        for job in jobs:
            self._begin_anew(job)
        places = [self._run.directory.begin_trial(job.id) for job in jobs]
        for job in jobs:
            self._started.pop(job.id, None)
            self._run.directory.journal("trial_sent", job=job.id, worker=worker.address)
        unit = Unit(self._run, self._client, worker, jobs, self._tell_started)
        self._units[unit.id] = unit
        try:
            answer = await unit.hold(self._asked, self._digest, self.told)
            lost: str | None = None
            # What has arrived is finished: it is kept, even if the run ends in this moment.
            with anyio.CancelScope(shield=True):
                self._units.pop(unit.id)
                lost = await self._conclude(answer, jobs, places[0].scratch)
            return lost, True  # a scope may swallow what is raised in it
        except Lost as what:
            return str(what), unit.began
        finally:
            self._units.pop(unit.id, None)
            for job in jobs:
                self._run.directory.remove_scratch(job.id)

    def _begin_anew(self, job: Job) -> None:
        """A trial that an earlier start of the run left: no worker can see where its session is."""
        noted = self._run.directory.read_checkpoint(job.id)
        if noted is not None:
            self._run.stopping.count_attempt(noted.record)
            why = "its session is not on the worker that holds it now"
            self._notes[job.id] = set_aside_unused(self._run.directory, job, noted, why)

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
        try:
            arrived = await anyio.to_thread.run_sync(self._take_in, answer["trials"], jobs, scratch)
        except (tarfile.TarError, zlib.error, EOFError, ValidationError) as error:
            return f"what it sent back is not whole: {' '.join(str(error).split())[:300]}"
        for trial in arrived:
            await self._take_over(trial)
        unfinished = any(trial.record is None for trial in arrived)
        # Its trials were left only if their provider wants nothing more of the whole run.
        return "it was not finished there" if unfinished and not self._run.is_enough() else None

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
            record = with_note(trial.record, self._notes.get(job.id))
            await self._run.conclude(job, record, trial.grade)
            return
        if trial.checkpoint is not None:
            # Its session is gone; what it took and how far it came is told when it is held again.
            self._run.directory.write_checkpoint(job.id, trial.checkpoint)
        if self._run.is_enough():
            self._run.directory.journal("trial_left", job=job.id)
            self._run.observer.trial_event(TrialEvent(job.id, "activity", text=LEFT))

    async def _refuse(self, job: Job, error: TurnError) -> None:
        record: Record = record_without_turns(self._run.request(job, 1), error=error)
        self._run.directory.remove_scratch(job.id)
        self._tell_started(job, 1)
        await self._run.conclude(job, record)
