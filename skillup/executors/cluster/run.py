"""A run whose trials are held by the workers of a Dask cluster."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from skillup import __version__
from skillup.engines.base import Availability
from skillup.engines.registry import get_engine
from skillup.executors.cluster.connection import connected
from skillup.executors.cluster.looking import Looked, look_at
from skillup.executors.cluster.on_worker import forget
from skillup.executors.cluster.parcel import Parcel
from skillup.executors.cluster.pool import Pool
from skillup.executors.cluster.venue import ClusterBackend
from skillup.executors.local import run_all
from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.run import Run
from skillup.plan import Plan
from skillup.process import ProcessRegister
from skillup.schema.grade import Grade
from skillup.store import RunDirectory

_FORGET_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where trials are held, and what is sent there."""

    scheduler: str
    """Its address."""
    program: str
    """The module whose ``main`` holds a unit of trials, in a process of its own."""
    request: Mapping[str, Any]
    """What makes the plan, as JSON-like data: the workers make it anew from the files."""
    files: Parcel
    parallel: int | None = None
    """At most so many units at once; None: one for each thread of the workers."""


async def run_on_cluster(
    cluster: Cluster,
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: RunObserver,
    grades: dict[str, Grade],
) -> None:
    """As :func:`skillup.executors.run_locally`, on the workers of `cluster`.

    Raises SkillupError before any trial if the scheduler does not answer, or no worker can hold
    the trials; later if scheduler or workers are gone for good.
    """
    run = Run(directory, options, observer, grades)
    # The digest is this run's own: what is laid out for it is removed with it.
    digest = f"{cluster.files.digest}-{uuid.uuid4().hex[:8]}"
    files = replace(cluster.files, digest=digest)
    asked = {
        "program": cluster.program,
        "version": __version__,
        "request": dict(cluster.request),
        "run_id": options.run_id,
        "jobs": [job.id for job in plan.jobs],
    }

    def resized(threads: int) -> None:
        run.admission.resize(min(threads, cluster.parallel or threads))

    with ProcessRegister(options.register_dir, own_process=options.own_process):
        await run.take_over_finished(plan)
        if all(job.id in grades for job in plan.jobs):
            return
        async with connected(cluster.scheduler) as client:

            async def look(address: str) -> Looked:
                return await look_at(client, address, asked, files)

            pool = Pool(client, look, resized)
            try:
                await pool.open()
                _take_engines(run, plan, pool)
                await _hold(run, plan, client, pool, asked, digest)
            finally:
                await _forget(client, pool, digest)


async def _hold(
    run: Run, plan: Plan, client: Any, pool: Pool, asked: Mapping[str, Any], digest: str
) -> None:
    venue = ClusterBackend(run, client, pool, asked, digest)
    async with anyio.create_task_group() as group:
        group.start_soon(pool.watch)
        await run_all(plan, run, venue)
        group.cancel_scope.cancel()


def _take_engines(run: Run, plan: Plan, pool: Pool) -> None:
    """As the workers have them: on this machine there need be none."""
    looked = next(pool.about[worker.address].about for worker in pool.workers)
    for profile in {job.profile.name: job.profile for job in plan.jobs}.values():
        version = looked["profiles"][profile.name]["version"]
        available = Availability(True, (), version=version)
        run.engines[profile.name] = (get_engine(profile.engine), available)


async def _forget(client: Any, pool: Pool, digest: str) -> None:
    """Have the workers remove what was laid out there."""
    addresses = [worker.address for worker in pool.workers]
    if not addresses:
        return
    with anyio.move_on_after(_FORGET_SECONDS, shield=True):
        try:
            await client.run(forget, digest, workers=addresses, on_error="ignore")
        except Exception:  # noqa: BLE001  what is left there is swept when its worker has ended
            return
