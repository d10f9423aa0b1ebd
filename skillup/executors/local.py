"""Trials on this machine, several at once, in one anyio task group."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import anyio

from skillup.engines.base import Availability, Engine
from skillup.engines.registry import get_engine
from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.retry import retry_reason
from skillup.judges import grade, grade_record
from skillup.judges.settling import LiveJudge
from skillup.plan import Job, Plan
from skillup.process import ProcessRegister
from skillup.schema.grade import Grade
from skillup.schema.profile import Profile
from skillup.schema.record import Record, TurnError
from skillup.store import RunDirectory
from skillup.trial import TrialRequest, hold_trial, record_without_turns


async def run_locally(
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: RunObserver,
    grades: dict[str, Grade],
) -> None:
    """Hold every job of `plan` that is not finished yet; `grades`, by job id, fills up meanwhile.

    Each record and grade is on disk before `observer` hears of it. Cancelling ends the processes of
    running trials and leaves what has finished.
    """
    run = _Run(directory, options, observer, grades)
    with ProcessRegister(options.register_dir):
        await run.look_at_engines(plan)
        await run.take_over_finished(plan)
        limiter = anyio.CapacityLimiter(options.parallel)
        async with anyio.create_task_group() as group:
            for job in plan.jobs:
                if job.id not in grades:
                    group.start_soon(run.hold, job, limiter, name=job.id)


class _Run:
    """The state that the trials of one run share."""

    def __init__(
        self,
        directory: RunDirectory,
        options: RunOptions,
        observer: RunObserver,
        grades: dict[str, Grade],
    ) -> None:
        self.directory = directory
        self.options = options
        self.observer = observer
        self.grades = grades
        self.done: dict[str, anyio.Event] = {}
        self.engines: dict[str, tuple[Engine, Availability]] = {}
        self.bad = 0

    async def look_at_engines(self, plan: Plan) -> None:
        """Ask each profile's engine once whether it can be run at all."""
        profiles: Mapping[str, Profile] = {job.profile.name: job.profile for job in plan.jobs}
        for name, profile in profiles.items():
            engine = get_engine(profile.engine)
            self.engines[name] = (engine, await engine.check(profile, self.options.environment))

    async def take_over_finished(self, plan: Plan) -> None:
        """Trials that an earlier start of this run has finished are kept."""
        finished = self.directory.finished_jobs()
        for job in plan.jobs:
            self.done[job.id] = anyio.Event()
            if job.id in finished:
                record = self.directory.read_record(job.id)
                await self._conclude(job, record, self.directory.read_grade(job.id), new=False)

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
                request = self._request(job, 1)
                await self._conclude(job, record_without_turns(request, skipped=unmet))
                return
            await self._attempts(job)

    def _is_enough(self) -> bool:
        limit = self.options.max_fail
        return limit is not None and self.bad >= limit

    def _unmet(self, job: Job) -> str | None:
        for needed in job.depends_on:
            grade = self.grades.get(needed)
            if grade is None:
                return f"depends on {_case_of(needed)}, which was not run"
            if grade.status != "PASS":
                return f"depends on {_case_of(needed)}, which ended as {grade.status}"
        return None

    async def _attempts(self, job: Job) -> None:
        problem = self._problem(job)
        attempt = 1
        while True:
            request = self._request(job, attempt)
            try:
                if problem is not None:
                    record = record_without_turns(request, error=problem)
                else:
                    record = await hold_trial(request)
            finally:
                if not self.options.keep_scratch:
                    self.directory.remove_scratch(job.id)
            reason = retry_reason(record, job.loaded.case.retry_policy)
            if reason is None:
                await self._conclude(job, record)
                return
            self.directory.write_attempt(job.id, record)
            self.observer.trial_retried(job, record, reason)
            attempt += 1
            self.observer.trial_started(job, attempt)

    def _request(self, job: Job, attempt: int) -> TrialRequest:
        engine, available = self.engines[job.profile.name]
        place = self.directory.begin_trial(job.id)
        return TrialRequest(
            run_id=self.options.run_id,
            job=job,
            engine=engine,
            raw_dir=place.raw,
            artifacts_dir=place.files,
            blobs=self.directory.blobs,
            scratch=place.scratch,
            environment=self.options.environment,
            variables=self.options.variables,
            attempt=attempt,
            # The same job draws the same lots in every run; each of its trials draws its own.
            seed=zlib.crc32(job.id.encode()),
            engine_version=available.version,
            judge=LiveJudge(self.options.reader) if self.options.reader is not None else None,
            notify=self.observer.trial_event,
        )

    def _problem(self, job: Job) -> TurnError | None:
        """What keeps the trial from being held, or from being judged once it was."""
        case, reader = job.loaded.case, self.options.reader
        if case.input.transcript is None:  # else no agent is asked
            found = self.engines[job.profile.name][1].problem
            if found is not None:
                return found
        return reader.problem(case) if reader is not None else None

    async def _conclude(
        self, job: Job, record: Record, known: Grade | None = None, *, new: bool = True
    ) -> None:
        """Record first, then judge; then let others know. A grade that is `known` stands."""
        if new:
            self.directory.write_record(job.id, record)
        graded = known or await self._grade(record)
        if known is None:
            self.directory.write_grade(job.id, graded)
        self.grades[job.id] = graded
        self.bad += graded.status in ("FAIL", "ERROR")
        self.done[job.id].set()
        if new:
            self.observer.trial_finished(job, record, graded)

    async def _grade(self, record: Record) -> Grade:
        read_file, reader = self.directory.blobs.read_state, self.options.reader
        if reader is None:
            return grade_record(record, read_file)
        return await grade(record, read_file, reader)


def _case_of(job_id: str) -> str:
    """A job id without profile, variant and trial; the case's own id may contain slashes."""
    return job_id.rsplit("/", 3)[0]
