"""What the trials of one run share, wherever they are held: order, judging, when it is enough."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from skillup.engines.base import Availability, Engine
from skillup.engines.registry import get_engine
from skillup.errors import UsageError
from skillup.executors.attempts import recall_losses
from skillup.executors.early_stopping import EarlyStopping
from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.scheduler import Scheduler
from skillup.executors.shared_prefix import count_noted
from skillup.judges import grade, grade_record
from skillup.judges.evaluate import TurnJudge
from skillup.judges.usage import UsageTracker
from skillup.plan import Job, Plan
from skillup.ratelimit import Throttle
from skillup.schema.grade import Grade
from skillup.schema.profile import Profile
from skillup.schema.record import Checkpoint, Record, TurnError
from skillup.simulator.factory import USER, SimulatorPlace
from skillup.store import RunDirectory, TrialPlace
from skillup.trial import TrialEvent, TrialRequest, record_without_turns
from skillup.trial.artifacts import keep_references, reference_paths
from skillup.trial.request import SimulatedUserEngine
from skillup.workspace import BlobStore
from skillup.workspace.failures import refuse_without_room

NOT_JUDGED = "held, but not judged: --resume has it judged"
"""What is shown of a trial whose judges could not be asked any more."""


class Backend(Protocol):
    """Where trials are held: on this machine, or on others."""

    async def run(self, jobs: Sequence[Job]) -> None:
        """Run and conclude `jobs` (one, or a family), which wait for nothing but a free place."""
        ...

    async def skip(self, job: Job, reason: str) -> None:
        """Conclude a job that what it depends on keeps back."""
        ...


class Run:
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
        self.unplayable: dict[str, TurnError] = {}
        self.stopping = options.stopping
        self.deciding = options.deciding
        self.references: dict[str, dict[str, str | None]] = {}
        """By case and path, the SHA-256 of files that judging needs; as `run.json` has them."""
        self.admission = Scheduler(
            options.parallel,
            has_room=self.stopping.leaves_room,
        )

    async def look_at_engines(self, plan: Plan) -> None:
        """Ask each profile's engine once whether it can be run at all."""
        profiles: Mapping[str, Profile] = {job.profile.name: job.profile for job in plan.jobs}
        for name, profile in profiles.items():
            engine = get_engine(profile.engine)
            self.engines[name] = (engine, await engine.check(profile, self.options.environment))

    async def look_at_simulators(self, plan: Plan) -> None:
        """Find out whom nobody can play the user for."""
        simulators = self.options.simulators
        if simulators is not None:
            for job in plan.jobs:
                given, root = job.suite.suite.user_simulator, job.suite.root
                problem = await simulators.problem(job.loaded.case, given, root)
                if problem is not None:
                    self.unplayable[job.id] = problem

    async def take_over_finished(self, plan: Plan) -> None:
        """Trials that an earlier start of this run has finished are kept."""
        self.admission.expect(plan.jobs)
        count_noted(self.directory.events(), self.stopping)
        recall_losses(self.directory.events(), self.stopping)
        ungraded: list[Job] = []
        for job in plan.jobs:
            self.done[job.id] = anyio.Event()
            for attempt in self.directory.attempts(job.id):
                self.stopping.count_attempt(attempt)
            record = self.directory.finished_record(job.id)
            if record is None:
                continue
            known = self.directory.read_grade(job.id)
            if known is None or job.id in self.options.judge_again:
                ungraded.append(job)
            else:
                await self.conclude(job, record, known, new=False)
        await anyio.to_thread.run_sync(self._keep_references, plan)
        await self._judge_rest(ungraded)
        if self.deciding is not None:
            self._journal_decisions(self.deciding)

    def _keep_references(self, plan: Plan) -> None:
        """What trials are judged by, before any agent could change it.

        Raises UsageError if it is not what an earlier start of the run has found.
        """
        info, blobs = self.directory.run_info(), self.directory.blobs
        self.references = info.get("references") or {}
        for job in plan.jobs:
            case, name = job.loaded.case, case_of(job.id)
            # What was held whole is judged by what is kept with its record.
            if job.id in self.grades or self.directory.finished_record(job.id) is not None:
                continue
            variables = {**case.vars, **self.options.variables}
            kept = keep_references(case, job.suite.root, blobs, variables)
            for path in reference_paths(case, variables):
                sha = kept[path].sha256 if path in kept else None
                before = self.references.setdefault(name, {}).setdefault(path, sha)
                if before != sha:
                    raise _changed_reference(f"{path}, which {name} is judged by,", before, blobs)
        if self.references:
            self.directory.write_run_info({**info, "references": self.references})

    async def _judge_rest(self, jobs: Sequence[Job]) -> None:
        """Those that were held whole by an earlier start, which could not judge them."""
        limiter = anyio.CapacityLimiter(self.options.parallel)

        async def judge(job: Job) -> None:
            async with limiter:
                record = self.directory.read_record(job.id)
                before = self.directory.read_grade(job.id)
                if before is not None:
                    # What judges took for the grade that is replaced was taken.
                    record = record.model_copy(update={"judging": before.judging})
                # What it took to judge one without a grade is in no account yet.
                await self.conclude(job, record, new=False, goes_on=before is None)

        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(judge, job, name=job.id)

    def _journal_decisions(self, deciding: EarlyStopping) -> None:
        """Those that an earlier start came to and was killed before it could say so."""
        told = [
            event.items()
            for event in self.directory.events()
            if event.get("event") == "case_decided"
        ]
        for test in deciding.tests():
            about = test.about()
            if test.side != "undecided" and not any(about.items() <= event for event in told):
                self.directory.journal("case_decided", **about)

    async def hold(self, jobs: Sequence[Job], venue: Backend) -> None:
        """Wait for what `jobs`, one or a family, depend on; then have them held."""
        try:
            for needed in dict.fromkeys(name for job in jobs for name in job.depends_on):
                if needed in self.done:
                    await self.done[needed].wait()
            ready = [j for j in jobs if self._is_needed(j) and not await self._skipped(j, venue)]
            if ready:
                async with self.admission.place(ready):
                    # Others have ended meanwhile.
                    wanted = [job for job in ready if self._is_needed(job)]
                    if wanted and not self.is_enough():
                        await venue.run(wanted)
        finally:
            # Those that were not held any more (--max-fail) must not be waited for either.
            for job in jobs:
                self.done[job.id].set()

    def _is_needed(self, job: Job) -> bool:
        return self.deciding is None or self.deciding.needs(job)

    async def _skipped(self, job: Job, venue: Backend) -> bool:
        """Whether something that `job` depends on keeps it back; then it is concluded so."""
        unmet = self._unmet(job)
        if unmet is not None:
            await venue.skip(job, unmet)
        return unmet is not None

    async def skip(self, job: Job, reason: str) -> None:
        """Conclude a job that is not held; to be called when it has a place."""
        if not self.is_enough():
            self.observer.trial_started(job, 1)
            await self.conclude(job, record_without_turns(self.request(job, 1), skipped=reason))

    def is_enough(self) -> bool:
        """No more trials are to be started; `stopping.reason` says why."""
        return self.stopping.reason is not None

    def _unmet(self, job: Job) -> str | None:
        for needed in job.depends_on:
            grade = self.grades.get(needed)
            if grade is None:
                return f"depends on {case_of(needed)}, which was not run"
            if grade.status != "PASS":
                return f"depends on {case_of(needed)}, which ended as {grade.status}"
        return None

    def give_up(self, job: Job, record: Record, reason: str) -> None:
        """Keep the record of an attempt; the trial is tried again."""
        self.directory.write_attempt(job.id, record)
        self.stopping.count_attempt(record)
        self.observer.trial_retried(job, record, reason)

    def request(
        self, job: Job, attempt: int, place: TrialPlace | None = None, uncounted: int = 0
    ) -> TrialRequest:
        """Begin an attempt: its directories are made anew; those of `place` are gone on with.

        `uncounted` are the attempts before that no `retry_policy` counts.
        """
        engine, available = self.engines[job.profile.name]
        place = place or self.directory.begin_trial(job.id)
        return TrialRequest(
            run_id=self.options.run_id,
            job=job,
            engine=engine,
            raw_dir=place.raw,
            artifacts_dir=place.files,
            blobs=self.directory.blobs,
            scratch=place.scratch,
            environment=self.options.environment,
            secrets=self.options.secrets,
            variables=self.options.variables,
            attempt=attempt,
            seed=self._seed(job),
            engine_version=available.version,
            judge=TurnJudge(self.options.reader) if self.options.reader is not None else None,
            simulator=self._player(job, place, attempt),
            throttle=self._throttle(job, attempt),
            note_down=partial(self._note_down, job, uncounted),
            notify=self.observer.trial_event,
        )

    def _seed(self, job: Job) -> int:
        """The same job draws the same lots in every run of the same `--seed`."""
        own = f"{job.id}\n{self.options.seed}" if self.options.seed else job.id
        return zlib.crc32(own.encode())

    def _throttle(self, job: Job, attempt: int) -> Throttle:
        def tell(text: str) -> None:
            self.observer.trial_event(TrialEvent(job.id, "activity", text=text))

        def note(error: TurnError, times: int) -> None:
            self.directory.journal("message_refused", job=job.id, error=error.kind, times=times)

        return self.options.rate_limiter.of_agent(job.profile, tell, note, attempt=attempt)

    def _note_down(self, job: Job, uncounted: int, checkpoint: Checkpoint) -> None:
        noted = checkpoint.model_copy(update={"uncounted": uncounted})
        self.directory.write_checkpoint(job.id, noted)

    def _player(self, job: Job, place: TrialPlace, attempt: int) -> SimulatedUserEngine | None:
        simulators = self.options.simulators
        where = SimulatorPlace(place.scratch / USER, place.raw / USER, attempt, self._seed(job))
        return simulators.player(job, where) if simulators is not None else None

    def problem(self, job: Job) -> TurnError | None:
        """What keeps the trial from being held, or from being judged once it was."""
        case, reader = job.loaded.case, self.options.reader
        if case.input.transcript is None:  # else no agent is asked
            found = self.engines[job.profile.name][1].problem
            if found is not None:
                return found
        if job.id in self.unplayable:
            return self.unplayable[job.id]
        return reader.problem(case) if reader is not None else None

    async def conclude(
        self,
        job: Job,
        record: Record,
        known: Grade | None = None,
        *,
        new: bool = True,
        goes_on: bool = False,
        judged: bool = False,
    ) -> None:
        """Record first, then judge; then let others know. A grade that is `known` stands.

        `goes_on`: an earlier start may have begun to judge it. `judged`: where that could be done.
        Where a quota that is used up kept judges from it there is none, until the run goes on.
        """
        if new:
            with anyio.CancelScope(shield=True):  # the record is not lost meanwhile
                await anyio.to_thread.run_sync(self.directory.sync_blobs)
            self.directory.write_record(job.id, record)
            # As it is stored, secrets masked: so whoever judges it again finds the same.
            record = self.directory.read_record(job.id)
        left = judged and known is None
        graded = known if known or left else await self._grade(record, goes_on)
        if known is None and graded is not None and graded.status == "ERROR":
            # Where judges had no room it is graded when the run goes on; the record is kept.
            refuse_without_room(Path(tempfile.gettempdir()))
        if graded is None or (known is None and self._is_still_to_judge(record, graded)):
            self.directory.journal("trial_left", job=job.id)
            if new:
                self.observer.trial_event(TrialEvent(job.id, "activity", text=NOT_JUDGED))
            self.done[job.id].set()
            self.admission.ended(job)
            return
        if known is None or new:
            self.directory.write_grade(job.id, graded)
        self.grades[job.id] = graded
        self.stopping.count(record, graded)
        decided = self.deciding.count(job, graded) if self.deciding is not None else None
        if decided is not None and new:
            self.directory.journal("case_decided", **decided.about())
        self.done[job.id].set()
        self.admission.ended(job)
        if new:
            self.observer.trial_finished(job, record, graded)

    def _is_still_to_judge(self, record: Record, graded: Grade) -> bool:
        """Whether `graded` is only what came of the quota that ended the run."""
        stop = self.stopping.reason
        refused = graded.error is not None and graded.error.get("kind") == "judge"
        held = record.first_error() is None
        return stop is not None and stop.kind == "quota" and refused and held

    async def _grade(self, record: Record, goes_on: bool) -> Grade:
        read_file, reader = self.directory.blobs.read_state, self.options.reader
        if reader is None:
            return await anyio.to_thread.run_sync(grade_record, record, read_file)
        ledger = UsageTracker(of_grade=True, resumed=goes_on)
        return await grade(record, read_file, reader, usage=ledger)


def _changed_reference(what: str, before: str | None, blobs: BlobStore) -> UsageError:
    copy = blobs.path_of(before) if before else None  # a worker of a cluster has none
    back = f" (copy {copy} there)" if copy is not None and copy.exists() else ""
    return UsageError(
        f"{what} is not what it was when the run began: the rest of the run would be judged by it",
        hint=f"put it back as it was{back}, or start a new run; what was held, "
        "`skillup judge RUN --cases PATH` grades by the new file",
    )


def case_of(job_id: str) -> str:
    """A job id without profile, variant and trial; the case's own id may contain slashes."""
    return job_id.rsplit("/", 3)[0]
