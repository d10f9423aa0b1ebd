"""How a run is asked for, who observes it, and what its trials share, wherever they run."""

from __future__ import annotations

import sys
import tempfile
import traceback
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio.to_thread

from skillup.dataclass import frozen
from skillup.engines.base import AddressedEngine, Availability, Engine
from skillup.engines.registry import engine_of
from skillup.errors import UsageError
from skillup.executors.retries import Attempt
from skillup.executors.scheduler import Scheduler, Unit, units_of
from skillup.executors.stopping import EarlyStopping, StopPolicy
from skillup.plan import Job, Plan
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import Secrets
from skillup.sandbox.base import NoBoxError
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.line import TrialLine, line_of
from skillup.schema.record import Checkpoint, Record, TurnError
from skillup.schema.suite import as_played
from skillup.store import RunDirectory, TrialPlace
from skillup.store.scratch import user_directory
from skillup.trial.artifacts import keep_references, reference_paths
from skillup.trial.request import TrialEvent, TrialRequest
from skillup.trial.run import record_without_turns
from skillup.workspace.disk import do_beside, refuse_without_room

if TYPE_CHECKING:
    from skillup.gateway.server import Gateway
    from skillup.judges.evaluate import TurnJudge
    from skillup.judges.router import JudgeRouter
    from skillup.simulator import SimulatorFactory

FinishedTrial = tuple[Job, Record, Grade]  # What is to be reported
Backend = Callable[[Sequence[Job]], Awaitable[None]]
"""Runs and concludes jobs (one, or a family), on this machine or on others."""


@frozen
class RunOptions:
    """How a plan is run."""

    run_id: str
    environment: Mapping[str, str]  # The user's own environment
    secrets: Secrets
    parallel: int = 4  # Trials at once
    stopping: StopPolicy = field(default_factory=StopPolicy)
    """When no more trials are started; afterwards, why none were."""
    deciding: EarlyStopping | None = None
    """Which trials need not be run (`--until-decided`); None: all of them are."""
    rate_limiter: RateLimiter = field(default_factory=partial(RateLimiter, 0.0))
    """How rate limits and overload are waited out; as it is: they are errors at once."""
    variables: Mapping[str, str] = field(default_factory=dict)
    last_judged: Mapping[str, str] = field(default_factory=dict)
    """By job when its case was; those that wait longest begin first (a budget may end the run)."""
    seed: int = 0
    """Of what scripted engines draw; each trial draws its own. 0: the same in every run."""
    register_dir: Path = field(default_factory=partial(user_directory, "processes"))
    """Where this process is known as a live owner of the agents it starts."""
    own_process: bool = False  # Nobody else starts processes in this one; see `process_register`
    reader: JudgeRouter | None = None
    """Answers what only a judge can evaluate; None: such checks are errors."""
    simulators: SimulatorFactory | None = None
    """Knows who plays simulated users; None: nobody, and cases that need one are errors."""
    judge_again: Collection[str] = ()  # Finished jobs whose grade does not stand (`--retry-errors`)
    keep_traffic: bool = False  # Keep what passes between agents and their models
    keep_scratch: bool = False  # Leave workspaces and homes in place after their trial


class RunObserver(Protocol):
    """Sees everything as it happens. If it raises, the run goes on without it."""

    def trial_started(self, job: Job, attempt: int) -> None:
        """A trial's workspace is about to be made."""

    def trial_event(self, event: TrialEvent) -> None:
        """Something happened in a trial."""

    def trial_finished(self, job: Job, record: Record, grade: Grade) -> None:
        """A trial's record and grade are on disk."""

    def trial_retried(self, job: Job, record: Record, reason: str) -> None:
        """A trial met an error and runs again."""


class SafeObserver:
    """Passes on what happens to `observer`, until that fails once: the run goes on unseen."""

    def __init__(self, observer: RunObserver) -> None:
        """Its methods are those of :class:`RunObserver`, and never raise."""
        self._failed = False
        for name in ("trial_started", "trial_event", "trial_finished", "trial_retried"):
            setattr(self, name, partial(self._call, getattr(observer, name)))

    def _call(self, method: Callable[..., None], *about: Any) -> None:
        if self._failed:
            return
        try:
            method(*about)
        # Whatever it is; a console of rich's leaves by SystemExit when nobody reads it.
        except (Exception, SystemExit) as failure:  # noqa: BLE001
            self._failed = True
            last = traceback.extract_tb(failure.__traceback__)[-1]
            where = f"{last.filename}:{last.lineno}, in {last.name}"
            text = f"warning: the run goes on, but what shows it failed: {failure!r} ({where})"
            with suppress(OSError):
                sys.stderr.write(text + "\n")


class Run:
    """The state that the trials of one run share."""

    def __init__(
        self,
        plan: Plan,
        directory: RunDirectory,
        options: RunOptions,
        observer: RunObserver,
        lines: dict[str, TrialLine],
    ) -> None:
        """`lines`, by job id, fills up as trials finish."""
        self.plan, self.directory, self.options = plan, directory, options
        self.observer, self.lines = cast(RunObserver, SafeObserver(observer)), lines
        self.engines: dict[str, tuple[Engine, Availability]] = {}
        self.stopping, self.deciding = options.stopping, options.deciding
        self.limiter = anyio.Semaphore(options.parallel, fast_acquire=True)
        """Of trials that run on this machine."""
        self.references: dict[str, dict[str, str | None]] = {}
        """By case and path, the SHA-256 of files that judging needs; as the run has them."""
        self._problems: dict[tuple[int, str], TurnError] = {}
        """Of judges and simulated users: by identity of `LoadedCase.like`, and by profile."""
        self.scheduler = Scheduler((), {}, options.parallel, self.stopping.has_room)
        self._gateway: Gateway | None = None

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[None]:
        """While this lasts agents reach their models through a gateway, where one can."""
        asked = any(job.suite.suite.environment.allowed_egress for job in self.plan.jobs)
        engines = (engine for engine, _ in self.engines.values())
        if not asked and not any(isinstance(engine, AddressedEngine) for engine in engines):
            yield
            return
        from skillup.gateway.server import open_gateway

        options = self.options
        async with open_gateway(options.environment, options.keep_traffic) as opened:
            self._gateway = opened
            yield

    async def check_engines(self) -> None:
        """Ask engines, judges and simulated users once whether they can run at all."""
        for profile in {job.profile.name: job.profile for job in self.plan.jobs}.values():
            engine = engine_of(profile)
            available = await engine.check(profile, self.options.environment)
            self.engines[profile.name] = (engine, available)
        known = self.options.environment
        environments = [job.suite.suite.environment for job in self.plan.jobs]
        for asked, image in {(one.asked(known), one.image) for one in environments}:
            if asked == "none":
                continue
            from skillup.sandbox.opening import choose

            with suppress(NoBoxError):  # which each trial says
                kind, found = choose(asked, image)
                if kind == "none":
                    self.stopping.note(f"{found.version}; trials run on the machine, as it is")
        simulators, reader = self.options.simulators, self.options.reader
        if reader is None:
            return
        jobs = {(id(job.loaded.like), job.profile.name): job for job in self.plan.jobs}
        for key, job in jobs.items():
            case, suite, problem = job.loaded.like, job.suite, None
            if simulators is not None:
                given = suite.suite.user_simulator
                problem = await simulators.problem(case, given, suite.root)
            problem = problem or await reader.problem(case, suite.root, job.profile.name)
            if problem is not None:
                self._problems[key] = problem

    async def take_over_finished(self) -> None:
        """Trials that an earlier start of this run has finished are kept."""
        ungraded: list[Job] = []
        finished = self.directory.finished_jobs()
        for job in self.plan.jobs:
            if not self.directory.was_begun(job.id):
                continue
            for attempt in self.directory.attempts(job.id):
                self.stopping.count(attempt, None)
            record = self.directory.finished_record(job.id)
            if record is None:
                if job.id in finished:  # by a record that is damaged: it runs anew
                    self.directory.take_back(job.id)
                continue
            known = self.directory.read_grade(job.id)
            if known is None or job.id in self.options.judge_again:
                ungraded.append(job)
            else:
                await self.store(job, record, known, new=False)
        await anyio.to_thread.run_sync(self._keep_references)
        await self._judge_rest(ungraded)

    def _keep_references(self) -> None:
        """What trials are judged by, before any agent could change it.

        Raises UsageError if an earlier start of the run found something else.
        """
        forms = {id(job.loaded.like): job.loaded.like for job in self.plan.jobs}
        own = self.options.variables
        naming = {id(one) for one in forms.values() if reference_paths(one, {**one.vars, **own})}
        if not naming:
            return
        info, blobs = self.directory.run_info(), self.directory.blobs
        self.references = info.get("references") or {}
        finished = self.directory.finished_jobs()
        for job in self.plan.jobs:
            # What ran whole is judged by what is kept with its record.
            if id(job.loaded.like) not in naming or job.id in self.lines or job.id in finished:
                continue
            case, name = job.loaded.case, case_of(job.id)
            variables = {**case.vars, **own}
            kept = keep_references(case, job.suite.root, blobs, variables)
            for path in reference_paths(case, variables):
                sha = kept[path].sha256 if path in kept else None
                before = self.references.setdefault(name, {}).setdefault(path, sha)
                if before == sha:
                    continue
                raise UsageError(
                    f"{path}, which {name} is judged by, is not what it was when the run began: "
                    "the rest of the run would be judged by it",
                    hint="put it back as it was, or start a new run; what was run, "
                    "`skillup judge RUN --cases PATH` grades by the new file",
                )
        if self.references:
            self.directory.write_run_info({**info, "references": self.references})

    async def _judge_rest(self, jobs: Sequence[Job]) -> None:
        """Those that an earlier start ran whole and could not judge."""

        async def judge(job: Job) -> None:
            async with self.limiter:
                record = self.directory.read_record(job.id)
                before = self.directory.read_grade(job.id)
                if before is not None:
                    # What judges used for the grade that is replaced was used.
                    record = record.model_copy(update={"judging": before.judging})
                await self.store(job, record, new=False)

        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(judge, job, name=job.id)

    async def run_all(self, backend: Backend) -> None:
        """Run what has no grade, families together, as the scheduler orders, until it is enough."""
        jobs = [job for job in self.plan.jobs if job.id not in self.lines]
        judged = self.options.last_judged
        ordered = sorted(self.plan.jobs, key=lambda job: judged.get(job.id, ""))
        order = {job.id: place for place, job in enumerate(ordered)}
        places = self.scheduler.places
        self.scheduler = Scheduler(units_of(jobs), order, places, self.stopping.has_room)

        async def run(unit: Unit) -> None:
            try:
                await self.run_unit(unit, backend)
            finally:
                self.scheduler.release(unit)

        async with anyio.create_task_group() as group:
            while not self.scheduler.empty and not self.is_enough():
                unit = self.scheduler.next()
                if unit is None:
                    await self.scheduler.changed()
                else:
                    group.start_soon(run, unit, name=unit[0].id)

    async def run_unit(self, unit: Sequence[Job], backend: Backend) -> None:
        """Have jobs run, but those that need not be, or that what they depend on keeps back."""
        ready: list[Job] = []
        for job in unit:
            if self.is_enough() or (self.deciding is not None and not self.deciding.needs(job)):
                continue
            unmet = self.unmet(job)
            if unmet is None:
                ready.append(job)
                continue
            self.observer.trial_started(job, 1)
            await self.conclude(job, record_without_turns(self.request(job), skipped=unmet))
        if ready and not self.is_enough():
            await backend(ready)

    def unmet(self, job: Job) -> str | None:
        """Of what the job depends on; None: nothing keeps it back."""
        for needed in job.depends_on:
            line = self.lines.get(needed)
            if line is None:
                return f"depends on {case_of(needed)}, which was not run"
            if line.status != "PASS":
                return f"depends on {case_of(needed)}, which ended as {line.status}"
        return None

    def is_enough(self) -> bool:
        """No more trials are to be started; `stopping.reason` says why."""
        return self.stopping.reason is not None

    async def give_up(self, job: Job, record: Record, reason: str) -> None:
        """Keep the record of an attempt; the trial is tried again."""
        await self._keep(job, record, state="retried")
        self.stopping.count(record, None)
        self.observer.trial_retried(job, record, reason)

    async def _keep(self, job: Job, record: Record, **state: Any) -> Record:
        made = None
        if not _is_short(record):
            with anyio.CancelScope(shield=True):  # what has ended is kept
                make = self.directory.stored_form
                made = await anyio.to_thread.run_sync(make, job.id, record)
        return self.directory.write_record(job.id, record, made, **state)

    def leave(self, job: Job) -> None:
        """Say that the run, whose other trials may go on, does not go on with one that began."""
        self.directory.journal("trial_left", job=job.id)
        self._show(job, "left where it was: --resume goes on with it")

    def _show(self, job: Job, text: str) -> None:
        self.observer.trial_event(TrialEvent(job.id, "activity", text=text))

    def request(
        self, job: Job, attempt: Attempt | None = None, place: TrialPlace | None = None
    ) -> TrialRequest:
        """Begin an attempt: its directories are made anew; those of `place` are gone on with."""
        attempt = attempt or Attempt()
        engine, available = self.engines[job.profile.name]
        # A CLI keeps what it knows of a place at the user's home, where that is not the trial's.
        unique = job.profile.isolation == "shared" or self.options.keep_scratch
        place = place or self.directory.begin_trial(job.id, unique=unique)
        options, simulators = self.options, self.options.simulators
        # The same job draws the same lots in every run of the same `--seed`.
        seed = zlib.crc32((f"{job.id}\n{options.seed}" if options.seed else job.id).encode())
        simulator = None
        if simulators is not None:
            lot = f"{job.suite.name}/{job.loaded.id}/{options.seed}"  # of no engine, no variant
            played = as_played(job.loaded.case, job.trial, lot)
            if played is not job.loaded.case:
                job = replace(job, loaded=replace(job.loaded, like=played, items=None))
            from skillup.simulator import USER

            own = {"streams": place.streams.below(USER), "attempt": attempt.number, "seed": seed}
            simulator = simulators.player(job, options.seed, place.scratch / USER, **own)

        def write(checkpoint: Checkpoint) -> None:
            update = {"uncounted": attempt.uncounted}
            self.directory.write_checkpoint(job.id, checkpoint.model_copy(update=update))

        throttle = options.rate_limiter.of_agent(job.profile, partial(self._show, job))
        return TrialRequest(
            run_id=options.run_id,
            job=job,
            engine=engine,
            streams=place.streams,
            keep_artifact=place.keep_artifact,
            blobs=self.directory.blobs,
            scratch=place.scratch,
            environment=options.environment,
            secrets=options.secrets,
            variables=options.variables,
            attempt=attempt.number,
            seed=seed,
            engine_version=available.version,
            judge=self.turn_judge(),
            simulator=simulator,
            throttle=throttle,
            checkpoint=write,
            notify=self.observer.trial_event,
            gateway=self._gateway,
            command=available.command,
        )

    def turn_judge(self) -> TurnJudge | None:
        """Who is asked while a conversation goes on; None: nobody can be."""
        if self.options.reader is None:
            return None
        from skillup.judges.evaluate import TurnJudge

        return TurnJudge(self.options.reader)

    def problem(self, job: Job) -> TurnError | None:
        """What keeps the trial from running, or from being judged once it ran."""
        if job.loaded.like.input.transcript is None:  # else no agent is asked
            found = self.engines[job.profile.name][1].problem
            inside = job.suite.suite.environment.command and found
            if found is not None and not (inside and found.kind == "engine_not_found"):
                return found
        return self._problems.get((id(job.loaded.like), job.profile.name))

    async def conclude(
        self, job: Job, record: Record, known: Grade | None = None, *, judged: bool = False
    ) -> None:
        """:meth:`store`, then :meth:`report`."""
        finished = await self.store(job, record, known, judged=judged)
        if finished is not None:
            await self.report(finished)

    async def store(
        self,
        job: Job,
        record: Record,
        known: Grade | None = None,
        *,
        new: bool = True,
        judged: bool = False,
    ) -> FinishedTrial | None:
        """Record first, then judge; the trial counts, and another may begin in its place.

        A grade that is `known` stands; with `judged` it is not judged here. Where a quota that is
        used up kept judges from it there is no grade until the run goes on. None: nothing is new.
        """
        case = None
        if new:
            # As it is stored, secrets masked: so whoever judges it again finds the same.
            stored = await self._keep(job, record)
            case, record = job.loaded.case if stored is record else None, stored
        graded = known if known or judged else await self._grade(record, case)
        if known is None and graded is not None and graded.status == "ERROR":
            # Where judges had no room it is graded when the run goes on; the record is kept.
            refuse_without_room(Path(tempfile.gettempdir()))
        if graded is None or (known is None and self._was_refused(record, graded)):
            self.directory.journal("trial_left", job=job.id)
            if new:
                self._show(job, "run, but not judged: --resume has it judged")
            self.scheduler.finish(job.id)
            return None
        if known is None or new:
            graded = self.directory.write_grade(job.id, graded)
        self.lines[job.id] = line_of(graded)
        self.stopping.count(record, graded)
        decided = self.deciding.count(job, graded) if self.deciding is not None else None
        if decided is not None:
            self.directory.journal("case_decided", **decided.about())
        self.scheduler.finish(job.id)
        return (job, record, graded) if new else None

    async def report(self, finished: FinishedTrial) -> None:
        """Let others know of the trial, once it is on the disk."""
        with anyio.CancelScope(shield=True):  # what is there is shown, too
            await self.directory.committed()
        self.observer.trial_finished(*finished)

    def _was_refused(self, record: Record, graded: Grade) -> bool:
        """Whether `graded` is only what came of the quota that ended the run."""
        stop = self.stopping.reason
        refused = graded.error is not None and graded.error.get("kind") == "judge"
        whole = record.first_error() is None
        return stop is not None and stop.kind == "quota" and refused and whole

    async def _grade(self, record: Record, case: Case | None) -> Grade:
        """By the `case` of the record; None: it is read from there."""
        from skillup.judges import grade, grade_record  # not needed before an agent has ended

        read_file, reader = self.directory.blobs.read_state, self.options.reader
        if reader is None:
            work = partial(grade_record, record, read_file, case=case)
            return await do_beside(_is_short(record), work)
        return await grade(record, read_file, reader, case=case)


def _is_short(record: Record) -> bool:
    """Whether it is graded in less time than a change of threads takes, or not much more."""
    turns = list(record.executed())
    size = sum(len(turn.response) + 1000 * len(turn.transcript) for turn in turns)
    files = (turns[-1].files if turns else None) or record.initial_files or {}
    return len(files) < 100 and size + sum(state.size for state in files.values()) < 100_000


def case_of(job_id: str) -> str:
    """A job id without profile, variant and trial; the case's own id may contain slashes."""
    return job_id.rsplit("/", 3)[0]
