"""Trials on this machine, several at once, in one anyio task group."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import anyio

from skillup.engines.base import Availability, Engine
from skillup.engines.registry import get_engine
from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.retry import retry_reason
from skillup.judges import grade_record
from skillup.plan import Job, Plan
from skillup.process import ProcessRegister
from skillup.schema.grade import Grade
from skillup.schema.profile import Profile
from skillup.schema.record import Record
from skillup.store.run_directory import RunDirectory
from skillup.trial import TrialRequest, hold_trial, record_without_turns
from skillup.workspace.blobs import BlobStore


async def run_locally(
    plan: Plan, directory: RunDirectory, options: RunOptions, observer: RunObserver
) -> dict[str, Grade]:
    """Hold every job of `plan` that is not finished yet; the grades by job id.

    Each record and grade is on disk before `observer` hears of it. Cancelling ends the processes of
    running trials and leaves what has finished.
    """
    run = _Run(directory, options, observer)
    await run.look_at_engines(plan)
    run.take_over_finished(plan)
    limiter = anyio.CapacityLimiter(options.parallel)
    with ProcessRegister(directory.register_dir, options.run_id):
        async with anyio.create_task_group() as group:
            for job in plan.jobs:
                if job.id not in run.grades:
                    group.start_soon(run.hold, job, limiter, name=job.id)
    return {job.id: run.grades[job.id] for job in plan.jobs if job.id in run.grades}


class _Run:
    """The state that the trials of one run share."""

    def __init__(self, directory: RunDirectory, options: RunOptions, observer: RunObserver) -> None:
        self.directory = directory
        self.options = options
        self.observer = observer
        self.grades: dict[str, Grade] = {}
        self.done: dict[str, anyio.Event] = {}
        self.engines: dict[str, tuple[Engine, Availability]] = {}
        self.bad = 0

    async def look_at_engines(self, plan: Plan) -> None:
        """Ask each profile's engine once whether it can be run at all."""
        profiles: Mapping[str, Profile] = {job.profile.name: job.profile for job in plan.jobs}
        for name, profile in profiles.items():
            engine = get_engine(profile.engine)
            self.engines[name] = (engine, await engine.check(profile, self.options.environment))

    def take_over_finished(self, plan: Plan) -> None:
        """Trials that an earlier start of this run has finished are kept."""
        finished = self.directory.finished_jobs()
        for job in plan.jobs:
            self.done[job.id] = anyio.Event()
            if job.id in finished:
                self._conclude(job, self.directory.read_record(job.id), new=False)

    async def hold(self, job: Job, limiter: anyio.CapacityLimiter) -> None:
        """Wait for what `job` depends on, then for a free place, then hold it."""
        for needed in job.depends_on:
            if needed in self.done:
                await self.done[needed].wait()
        async with limiter:
            if self._is_enough():
                return
            unmet = self._unmet(job)
            self.observer.trial_started(job, 1)
            if unmet is not None:
                request = self._request(job, 1, Path())
                self._conclude(job, record_without_turns(request, skipped=unmet))
                return
            await self._attempts(job)

    def _is_enough(self) -> bool:
        limit = self.options.max_fail
        return limit is not None and self.bad >= limit

    def _unmet(self, job: Job) -> str | None:
        for needed in job.depends_on:
            grade = self.grades.get(needed)
            if grade is None:
                return f"depends on {needed.split('/')[0]}, which was not run"
            if grade.status != "PASS":
                return f"depends on {needed.split('/')[0]}, which ended as {grade.status}"
        return None

    async def _attempts(self, job: Job) -> None:
        problem = self.engines[job.profile.name][1].problem
        attempt = 1
        while True:
            # Outside of any project: agents read instructions from every parent directory.
            base = Path(tempfile.mkdtemp(prefix="skillup-"))
            request = self._request(job, attempt, base / "trial")
            try:
                if problem is not None:
                    record = record_without_turns(request, error=problem)
                else:
                    record = await hold_trial(request)
            finally:
                if not self.options.keep_scratch:
                    shutil.rmtree(base, ignore_errors=True)
            reason = retry_reason(record, job.loaded.case.retry_policy)
            if reason is None:
                self._conclude(job, record)
                return
            self.directory.set_attempt_aside(job.id, record)
            self.observer.trial_retried(job, record, reason)
            attempt += 1
            self.observer.trial_started(job, attempt)

    def _request(self, job: Job, attempt: int, scratch: Path) -> TrialRequest:
        engine, available = self.engines[job.profile.name]
        directory = self.directory.trial_directory(job.id)
        return TrialRequest(
            run_id=self.options.run_id,
            job=job,
            engine=engine,
            raw_dir=directory / "raw",
            files_dir=directory / "files",
            scratch=scratch,
            environment=self.options.environment,
            variables=self.options.variables,
            attempt=attempt,
            # The same job draws the same lots in every run; each of its trials draws its own.
            seed=zlib.crc32(job.id.encode()),
            engine_version=available.version,
            notify=self.observer.trial_event,
            mask=self.options.secrets.mask,
        )

    def _conclude(self, job: Job, record: Record, *, new: bool = True) -> None:
        """Record first, then judge; then let others know."""
        if new:
            self.directory.write_record(job.id, record)
        blobs = BlobStore(self.directory.trial_directory(job.id) / "files")
        grade = grade_record(record, blobs.read_state)
        if new:
            self.directory.write_grade(job.id, grade)
        self.grades[job.id] = grade
        self.bad += grade.status in ("FAIL", "ERROR")
        self.done[job.id].set()
        if new:
            self.observer.trial_finished(job, record, grade)
