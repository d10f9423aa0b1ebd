"""Trials on this machine: a whole plan, or one trial at a time."""

from __future__ import annotations

from functools import partial
from typing import cast

import anyio

from skillup.executors.options import RunObserver, SafeObserver
from skillup.executors.run import Run, case_of
from skillup.executors.shared_prefix import run_family
from skillup.plan import Job
from skillup.process import process_register
from skillup.schema.grade import Grade


async def run_locally(run: Run) -> None:
    """Run every job of the plan that is not finished yet.

    Cancelling ends the processes of running trials and leaves what has finished.
    """
    with process_register(run.options.register_dir, own_process=run.options.own_process):
        await run.check_engines()
        await run.take_over_finished()
        await run.run_all(partial(run_family, run))


class Stepwise:
    """What :func:`run_locally` does for a whole plan, one trial at a time; in one event loop.

    The caller keeps this process registered (process_register) meanwhile.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._observer = run, run.observer
        self._jobs = {job.id: job for job in run.plan.jobs}
        self._broken: set[str] = set()
        self._one = anyio.Semaphore(1)

    async def open(self) -> None:
        """Look at what all trials need; once, before the first."""
        await self._run.check_engines()
        await self._run.take_over_finished()

    async def run(self, job: Job) -> Grade | None:
        """The trial's grade; it runs unless it has, after those that it depends on.

        None: the run has stopped, see :attr:`stopped`. Raises SkillupError where the run's
        directory fails, or the observer. Cancelling ends the trial's processes; the trial stays
        unfinished.
        """
        async with self._one:
            with anyio.CancelScope() as scope:
                safe = SafeObserver(self._observer, scope.cancel)
                self._run.observer = cast(RunObserver, safe)
                await self._run_in_order(job)
            safe.raise_failure()
        return self._run.grades.get(job.id)

    async def _run_in_order(self, job: Job) -> None:
        if job.id in self._run.grades or job.id in self._broken:
            return
        # Should it be broken off, it is not begun again, nor is what needs it.
        self._broken.add(job.id)
        for name in self._needed(job):
            await self._run_in_order(self._jobs[name])
        if not self._needed(job):
            await self._run.run_unit([job], partial(run_family, self._run))

    def _needed(self, job: Job) -> list[str]:
        """Those of the plan that it depends on and that have no grade."""
        grades = self._run.grades
        return [name for name in job.depends_on if name in self._jobs and name not in grades]

    def why_not_run(self, job: Job) -> str | None:
        """Of a job that was asked for and has no grade; None: nobody can say."""
        needed = self._needed(job)
        return f"depends on {case_of(needed[0])}, which was not run" if needed else None

    @property
    def stopped(self) -> str | None:
        """Why no more trials run; None: they do."""
        reason = self._run.stopping.reason
        return reason.message if reason is not None else None
