"""A run whose trials are held one at a time, when somebody asks for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio

from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.run import Run, case_of
from skillup.executors.scheduler import SafeObserver
from skillup.executors.shared_prefix import run_family
from skillup.plan import Job, Plan
from skillup.schema.grade import Grade
from skillup.store import RunDirectory

Claim = Callable[[Job], AbstractAsyncContextManager[Grade | None]]
"""While within, nobody else holds the trial; the grade, if somebody else has held it."""


def unclaimed(_: Job) -> AbstractAsyncContextManager[None]:
    """For a process that is the only one to hold the plan."""
    return nullcontext()


class Stepwise:
    """What :func:`run_locally` does for a whole plan, step by step; in one event loop.

    The caller keeps this process registered (ProcessRegister) meanwhile. `grades`, by job id, fills
    up as trials are held.
    """

    def __init__(
        self,
        plan: Plan,
        directory: RunDirectory,
        options: RunOptions,
        observer: RunObserver,
        grades: dict[str, Grade],
        claim: Claim = unclaimed,
    ) -> None:
        """`claim` is asked before a trial is held: other processes may hold the same plan."""
        self._claim = claim
        self._plan = plan
        self._jobs = {job.id: job for job in plan.jobs}
        self._grades = grades
        self._observer = observer
        self._run = Run(directory, options, observer, grades)
        self._one = anyio.Semaphore(1)

    async def open(self) -> None:
        """Look at what all trials need; once, before the first."""
        await self._run.look_at_engines(self._plan)
        await self._run.look_at_simulators(self._plan)
        await self._run.take_over_finished(self._plan)

    async def hold(self, job: Job) -> Grade | None:
        """The trial's grade; it is held unless it has been, after those that it depends on.

        None: the run has stopped, see :attr:`stopped`. Raises SkillupError where the run's
        directory fails, or the observer. Cancelling ends the trial's processes; the trial stays
        unfinished.
        """
        async with self._one:
            with anyio.CancelScope() as scope:
                self._run.observer = guarded = SafeObserver(self._observer, scope.cancel)
                await self._hold(job)
            guarded.refuse()
        return self._grades.get(job.id)

    def why_not_held(self, job: Job) -> str | None:
        """Of a job that was asked for and has no grade; None: nobody can say."""
        needed = self._needed_and_not_run(job)
        return f"depends on {case_of(needed)}, which was not run" if needed is not None else None

    def _needed_and_not_run(self, job: Job) -> str | None:
        """Of the plan; a job that needs what was broken off is as unfinished as that."""
        names = (name for name in job.depends_on if name in self._jobs)
        return next((name for name in names if name not in self._grades), None)

    @property
    def stopped(self) -> str | None:
        """Why no more trials are held; None: they are."""
        reason = self._run.stopping.reason
        return reason.message if reason is not None else None

    async def _hold(self, job: Job) -> None:
        waiting = [job]
        while waiting:
            current = waiting[-1]
            needed = [
                self._jobs[name]
                for name in current.depends_on
                if name in self._jobs and not self._run.done[name].is_set()
            ]
            if needed:
                waiting.extend(reversed(needed))
                continue
            waiting.pop()
            if self._needed_and_not_run(current) is not None:
                self._run.done[current.id].set()
            if not self._run.done[current.id].is_set():
                async with self._claim(current) as known:
                    if known is None:
                        await self._run.hold([current], _Alone(self._run))
                    else:
                        self._grades[current.id] = known
                        self._run.done[current.id].set()


class _Alone:
    """One trial takes all there is."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def run(self, jobs: Sequence[Job]) -> None:
        await run_family(self._run, jobs, anyio.CapacityLimiter(1))

    async def skip(self, job: Job, reason: str) -> None:
        await self._run.skip(job, reason)
