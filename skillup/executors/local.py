"""Trials on this machine, several at once, in one anyio task group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio

from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.run import Backend, Run
from skillup.executors.scheduler import SafeObserver
from skillup.executors.shared_prefix import counted_turns, run_family, with_relatives
from skillup.plan import Job, Plan
from skillup.process import ProcessRegister
from skillup.schema.grade import Grade
from skillup.store import RunDirectory


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
    run = Run(directory, options, observer, grades)
    with ProcessRegister(options.register_dir, own_process=options.own_process):
        await run.look_at_engines(plan)
        await run.look_at_simulators(plan)
        await run.take_over_finished(plan)
        await run_all(plan, run, _Here(run, anyio.CapacityLimiter(options.parallel)))


async def run_all(plan: Plan, run: Run, venue: Backend) -> None:
    """Have every job held that has no grade yet, families together.

    Raises SkillupError if the observer fails: the trials that run then are ended.
    """
    async with anyio.create_task_group() as group:
        run.observer = guarded = SafeObserver(run.observer, group.cancel_scope.cancel)
        for jobs in families(_unfinished(plan, run)):
            group.start_soon(run.hold, jobs, venue, name=jobs[0].id)
    guarded.refuse()


def _unfinished(plan: Plan, run: Run) -> list[Job]:
    """The jobs to hold; the rest of a family knows who of it has finished."""
    jobs = [job for job in plan.jobs if job.id not in run.grades]
    split = {job.family for job in jobs if job.family}
    counted: dict[str, list[int]] = {}
    for job in plan.jobs:
        if job.family in split and job.id in run.grades:
            record = run.directory.finished_record(job.id)
            turns = counted_turns(record) if record is not None else None
            if turns is not None:
                counted[job.id] = turns
    return with_relatives(jobs, plan.jobs, counted) if counted else jobs


class _Here:
    """This machine: each trial takes a place of the limiter while it is held."""

    def __init__(self, run: Run, limiter: anyio.CapacityLimiter) -> None:
        self._run = run
        self._limiter = limiter

    async def run(self, jobs: Sequence[Job]) -> None:
        await run_family(self._run, jobs, self._limiter)

    async def skip(self, job: Job, reason: str) -> None:
        async with self._limiter:
            await self._run.skip(job, reason)


def families(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs that may share turns, together; any other by itself; in their order."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.family or job.id, []).append(job)
    return list(found.values())
