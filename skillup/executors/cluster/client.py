"""The client's side: it submits trials to Dask's workers, and takes in what comes back.

Order, dependencies, budgets and early stopping are those of any run (:class:`Run`); as many trials
are submitted at once as the workers have threads, for a trial that only waits there would be one
more that a budget can not keep back. Which worker gets a trial, and that it runs again where its
worker is lost, is up to Dask.
"""

from __future__ import annotations

import logging
import re
import sys
import tarfile
import uuid
import warnings
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import ValidationError

from skillup import __version__
from skillup.engines.base import Availability
from skillup.engines.registry import get_engine
from skillup.errors import SkillupError, UsageError
from skillup.executors.attempts import set_aside_unused
from skillup.executors.cluster import worker
from skillup.executors.cluster.bundle import lay_out_run
from skillup.executors.options import RunObserver, RunOptions
from skillup.executors.retries import retry_reason, with_note
from skillup.executors.run import Run, case_of
from skillup.plan import Job, Plan
from skillup.process import ProcessRegister
from skillup.schema.grade import Grade, Stop
from skillup.schema.record import TurnError
from skillup.store import RunDirectory
from skillup.store.trials import (
    GRADE_FILE,
    RECORD_FILE,
    DamagedRecordError,
    load_grade,
    load_record,
)
from skillup.trial import record_without_turns

LOSSES_ALLOWED = 3
"""So often a trial runs again because its worker was lost; then that is its error."""

_CONNECT_SECONDS = 15
_CLOSE_SECONDS = 5
_PREPARE_SECONDS = 150.0
_WITHOUT_WORKERS_SECONDS = 60.0
"""How long a run waits for workers: at its start for the first, later for those that come again."""
_COPIED_EVENTS = frozenset({"message_refused", "trial_forked"})
_DAMAGED = (tarfile.TarError, zlib.error, EOFError, ValidationError, DamagedRecordError)
_GO_ON = "what has finished is kept: go on with `skillup run --resume`"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where trials run, and what is sent there."""

    scheduler: str
    """Its address."""
    program: str
    """The module whose ``main`` runs trials in a process of its own."""
    request: Mapping[str, Any]
    """What makes the plan, as JSON-like data: the workers make it anew from the files."""
    files: bytes
    parallel: int | None = None
    """At most so many trials at once; None: one for each thread of the workers."""


def check_address(scheduler: str) -> None:
    """Raises UsageError if it cannot be the address of a scheduler."""
    parts = urlsplit(scheduler)
    try:
        right = parts.scheme in ("tcp", "tls", "ucx", "ws", "wss") and parts.hostname and parts.port
    except ValueError:
        right = False
    if not right:
        raise UsageError(
            f"--scheduler {scheduler}: no address of a Dask scheduler",
            hint="it looks like tcp://host:8786; the scheduler says it when it starts",
        )


async def run_on_cluster(
    cluster: Cluster,
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: RunObserver,
    grades: dict[str, Grade],
) -> None:
    """As :func:`skillup.executors.run_locally`, on the workers of `cluster`.

    Raises SkillupError before any trial if the scheduler does not answer, or no worker can run the
    trials; later if scheduler or workers are gone for good.
    """
    run = Run(plan, directory, options, observer, grades)
    with ProcessRegister(options.register_dir, own_process=options.own_process):
        await run.take_over_finished()
        if all(job.id in grades for job in plan.jobs):
            return
        async with _connected(cluster.scheduler) as client, anyio.create_task_group() as group:
            backend = _DaskBackend(run, client, cluster, group)
            try:
                versions = await backend.open()
                for profile in {job.profile.name: job.profile for job in plan.jobs}.values():
                    # As the workers have them: on this machine there need be none.
                    available = Availability(True, (), version=versions[profile.name])
                    run.engines[profile.name] = (get_engine(profile.engine), available)
                await run.run_all(backend.run, [job for job in plan.jobs if job.id not in grades])
            finally:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await backend.close()
            group.cancel_scope.cancel()


class _DaskBackend:
    """Workers that can run trials of this run have a resource of its name, one for each thread.

    Trials that share turns are one task.
    """

    def __init__(self, run: Run, client: Any, cluster: Cluster, group: TaskGroup) -> None:
        self._run, self._client, self._group, self._cluster = run, client, group, cluster
        self._jobs = {job.id: job for job in run.plan.jobs}
        self._order = {job_id: place for place, job_id in enumerate(self._jobs)}
        self._id = uuid.uuid4().hex  # of this start alone
        self._name = worker.run_name(self._id)
        self._request = {
            "run": self._id,
            "run_id": run.options.run_id,
            "version": __version__,
            "program": cluster.program,
            "request": dict(cluster.request),
        }
        self._workers: dict[str, dict[str, Any]] = {}
        """By address, what those answered that are there."""
        self._ready: set[str] = set()
        self._changed = anyio.Event()
        self._running_at: dict[str, str] = {}
        """By job, the worker that began it last."""

    async def open(self) -> dict[str, str | None]:
        """Find workers; the versions of the profiles' CLIs.

        Raises SkillupError if no worker, nor any that comes within a minute, can run the trials.
        """
        self._client.subscribe_topic("all", self._cluster_changed)
        self._client.subscribe_topic(self._name, self._task_event)
        async with anyio.create_task_group() as group:
            for address in await self._client.nthreads():
                group.start_soon(self._prepare, address)
        with anyio.move_on_after(0 if self._workers else _WITHOUT_WORKERS_SECONDS):
            while not self._ready:
                await self._changed.wait()
        others_have_one = bool(self._ready)
        for address, about in self._workers.items():
            if not about["doubt"]:
                continue
            if others_have_one:
                _warn(
                    f"worker {address}: {about['doubt']} (other workers have one); "
                    "it gets no trials"
                )
            else:  # a login may be where skillup does not look
                _warn(f"warning: worker {address}: {about['doubt']}")
                await self._grant(address)
        if not self._workers:
            raise SkillupError(
                f"the cluster has no workers, and none came within {_WITHOUT_WORKERS_SECONDS:g} s",
                hint="start some: `dask worker ADDRESS`, or scale() of the cluster's deployer",
            )
        if not self._ready:
            raise SkillupError(
                f"no worker can run these trials: {self._problems()}",
                hint="install what is missing there; docs/cluster.md says what a worker needs",
            )
        self._group.start_soon(self._watch)
        versions: dict[str, str | None] = self._workers[min(self._ready)]["versions"]
        return versions

    async def close(self) -> None:
        """Have the workers remove what was laid out there."""
        workers = [*self._workers]
        await self._client.run(worker.forget, self._id, workers=workers, on_error="ignore")

    async def run(self, jobs: Sequence[Job]) -> None:
        """Have the jobs run, and conclude them."""
        directory, notes = self._run.directory, dict[str, str]()
        scratch = Path()
        for job in jobs:
            checkpoint = directory.read_checkpoint(job.id)
            if checkpoint is not None:
                self._run.stopping.count(checkpoint.record, None)
                why = "its session is not on the worker that runs it now"
                notes[job.id] = set_aside_unused(directory, job, checkpoint, why)
            scratch = directory.begin_trial(job.id).scratch
            directory.journal("trial_sent", job=job.id)
        try:
            answer = await self._answer(jobs)
            # What has come is finished: it is kept, even if the run ends in this moment.
            with anyio.CancelScope(shield=True):
                if isinstance(answer, TurnError):
                    await self._fail(jobs, answer)
                else:
                    await self._take_in(answer, jobs, scratch, notes)
        finally:
            for job in jobs:
                directory.remove_scratch(job.id)

    async def _answer(self, jobs: Sequence[Job]) -> dict[str, Any] | TurnError:
        """What :func:`~skillup.executors.cluster.worker.run_trials` says, or why nothing came."""
        from distributed.scheduler import KilledWorker

        known = self._run.references  # an agent may have changed what they are judged by
        request = {
            **self._request,
            "jobs": [job.id for job in jobs],
            "references": {case_of(job.id): known.get(case_of(job.id), {}) for job in jobs},
        }
        error: Exception | None = None
        for _ in range(LOSSES_ALLOWED + 1):
            future = self._client.submit(
                worker.run_trials,
                request,
                key=f"{self._name}-{uuid.uuid4().hex}",
                resources={self._name: 1},
                priority=-self._order[jobs[0].id],
                retries=LOSSES_ALLOWED,
                pure=False,
            )
            try:
                answer: dict[str, Any] | None = await self._unless_stranded(future)
            except (worker.TrialsLostError, KilledWorker) as lost:
                error = lost
                break
            except Exception as failure:
                raise SkillupError(_failure(failure), hint=_GO_ON) from failure
            finally:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await self._client.cancel([future], force=True)
            if answer is not None and "failed" in answer:
                what = f"the worker's skillup failed: {answer['failed']}"
                return TurnError(kind="internal", message=what)
            if answer is not None:
                return answer
        message = f"its worker was lost {LOSSES_ALLOWED + 1} times while it ran; last: {error}"
        return TurnError(kind="crash", message=message)

    async def _unless_stranded(self, future: Any) -> dict[str, Any] | None:
        """What the task yields; None if all workers had gone and others came.

        Dask does not look again at tasks that no worker could take when a worker becomes able to.
        """
        answer: dict[str, Any] | None = None
        failure: Exception | None = None

        async def result() -> None:
            nonlocal answer, failure
            try:
                answer = await future
            except Exception as error:  # noqa: BLE001 (raised below: a group would wrap it)
                failure = error
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(result)
            deserted = False
            while not (deserted and self._ready):
                deserted = not self._ready
                await self._changed.wait()
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return answer

    async def _take_in(
        self,
        answer: Mapping[str, Any],
        jobs: Sequence[Job],
        scratch: Path,
        notes: Mapping[str, str],
    ) -> None:
        """Put what was written over there into the run, as if it had happened here."""
        run = self._run
        data, secrets = answer["trials"], run.options.secrets
        take = partial(lay_out_run, data, jobs, scratch, run.directory, secrets)
        try:
            await self._replay(await anyio.to_thread.run_sync(take), jobs, notes)
        except _DAMAGED as error:
            what = f"what its worker sent back is damaged: {' '.join(str(error).split())[:300]}"
            rest = [job for job in jobs if job.id not in run.grades]
            await self._fail(rest, TurnError(kind="internal", message=what))
        if answer["stop"] is not None:
            run.stopping.stop(Stop.model_validate(answer["stop"]))

    async def _replay(
        self, there: RunDirectory, jobs: Sequence[Job], notes: Mapping[str, str]
    ) -> None:
        run, begun, sent = self._run, set[str](), {job.id: job for job in jobs}
        for event in there.events():
            kind = event.pop("event", None)
            job = sent.get(str(event.get("job")))
            if job is None:
                continue
            place = there.trial_directory(job.id)
            if kind == "trial_started":
                self._started(job)
                if job.id in begun:
                    run.directory.journal(kind, job=job.id)
                begun.add(job.id)
            elif kind == "trial_retried":
                kept = next(a for a in there.attempts(job.id) if a.attempt == event["attempt"])
                reason = retry_reason(kept, job.loaded.case.retry_policy) or "error"
                run.give_up(job, kept, reason)
            elif kind == "trial_finished":
                # The digests in its journal are of texts in which paths were others.
                record = with_note(load_record(place / RECORD_FILE), notes.get(job.id))
                await run.conclude(job, record, load_grade(place / GRADE_FILE), judged=True)
            elif kind == "trial_left" and not (place / RECORD_FILE).exists():
                run.leave(job)
            elif kind in _COPIED_EVENTS:
                run.directory.journal(kind, **{k: v for k, v in event.items() if k != "time"})

    async def _fail(self, jobs: Sequence[Job], error: TurnError) -> None:
        for job in jobs:
            self._started(job)
            record = record_without_turns(self._run.request(job), error=error)
            await self._run.conclude(job, record)

    def _started(self, job: Job, at: str = "") -> None:
        if job.id not in self._running_at:
            self._run.observer.trial_started(job, 1)
        self._running_at[job.id] = at or self._running_at.get(job.id, "")

    def _task_event(self, topic_event: tuple[float, Any]) -> None:
        """A task of this run has begun, or was lost while its worker lives."""
        event = topic_event[1]
        jobs, address = [self._jobs[job] for job in event["jobs"]], event["worker"]
        if event["event"] == "started":
            for job in jobs:
                self._started(job, address)
            return
        self._lost(jobs, address, event["reason"])
        if event["full"] and address in self._ready:
            self._workers[address]["problem"] = event["reason"]
            _warn(f"worker {address}: {event['reason']}; it gets no trials")
            self._now_ready(self._ready - {address})

    def _lost(self, jobs: Sequence[Job], address: str, reason: str) -> None:
        """Have the journal and the result's warnings say so."""
        self._run.stopping.note_loss(reason, address)
        for job in jobs:
            self._run.directory.journal("trial_lost", job=job.id, worker=address, reason=reason)
            self._running_at[job.id] = ""
            self._run.observer.trial_lost(job, address, reason)

    def _cluster_changed(self, topic_event: tuple[float, Any]) -> None:
        """A worker came or went, as the scheduler says."""
        event = topic_event[1]
        action = event.get("action") if isinstance(event, dict) else None
        if action == "add-worker":
            self._group.start_soon(self._prepare, event["worker"], True)
        elif action == "remove-worker":
            address = event["worker"]
            self._workers.pop(address, None)
            there = [self._jobs[job] for job, at in self._running_at.items() if at == address]
            running = [job for job in there if job.id not in self._run.grades]
            if running:
                self._lost(running, address, "the worker has gone")
            self._now_ready(self._ready - {address})

    def _now_ready(self, ready: set[str]) -> None:
        self._ready = ready
        threads = sum(self._workers[address]["threads"] for address in ready)
        self._run.scheduler.resize(min(threads, self._cluster.parallel or threads) or 1)
        self._changed.set()
        self._changed = anyio.Event()

    async def _prepare(self, address: str, later: bool = False) -> None:
        """Send the suites to a worker, and have it look what it lacks for them."""
        request = {**self._request, "jobs": [*self._jobs]}
        about: Any = OSError("no answer")
        with anyio.move_on_after(_PREPARE_SECONDS):
            try:
                answers = await self._client.run(
                    worker.prepare,
                    request,
                    self._cluster.files,
                    workers=[address],
                    on_error="return",
                )
            except OSError as error:  # the scheduler's connection
                answers = {address: error}
            about = answers.get(address, about)
        if isinstance(about, BaseException):
            about = {"problem": _failure(about), "doubt": None, "threads": 0}
        self._workers[address] = about
        doubt = about["doubt"] if later else None
        if about["problem"] or doubt:
            _warn(f"worker {address}: {about['problem'] or doubt}; it gets no trials")
        elif not about["doubt"]:
            await self._grant(address)

    async def _grant(self, address: str) -> None:
        threads = self._workers[address]["threads"]
        await self._client.run(
            worker.grant, self._id, threads, workers=[address], on_error="ignore"
        )
        if address in self._workers:
            self._now_ready(self._ready | {address})

    async def _watch(self) -> None:
        """Raises SkillupError if no worker has been left for a minute."""
        while True:
            with anyio.move_on_after(None if self._ready else _WITHOUT_WORKERS_SECONDS) as limit:
                await self._changed.wait()
            if limit.cancelled_caught:
                problems = f"; there are {self._problems()}" if self._workers else ""
                what = f"no worker has been left for {_WITHOUT_WORKERS_SECONDS:g} s{problems}"
                raise SkillupError(what, hint=_GO_ON)

    def _problems(self) -> str:
        return "; ".join(f"{a}: {about['problem']}" for a, about in self._workers.items())


@asynccontextmanager
async def _connected(scheduler: str) -> AsyncIterator[Any]:
    """A `distributed.Client` in this event loop. Raises SkillupError if nobody answers there."""
    import distributed

    make: Any = distributed.Client  # without types
    # What it logs of lost connections is said by us, in one line, where it matters.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":  # each has a level of its own
            logging.getLogger(name).setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other versions of packages that no trial needs
        client = make(scheduler, asynchronous=True, timeout=_CONNECT_SECONDS, set_as_default=False)
        try:
            try:
                with anyio.fail_after(_CONNECT_SECONDS + 5):
                    await client
            except (OSError, TimeoutError, ValueError) as error:
                raise SkillupError(
                    f"no Dask scheduler answers at {scheduler}: {_failure(error)}",
                    hint="is it running, and can it be reached from here? "
                    "`dask scheduler` says its address when it starts",
                ) from error
            yield client
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await client.close(timeout=_CLOSE_SECONDS)


def _failure(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "skillup":
        return f"its Python has no skillup {__version__}"
    cause = error.__cause__ or error
    # Without the address of the object that failed.
    text = re.sub(r"^in <[^>]*>: ", "", " ".join(str(cause).split()))[:300]
    if "scheduler-connection-lost" in text:
        return "the connection to the Dask scheduler broke"
    return text or type(cause).__name__


def _warn(line: str) -> None:
    sys.stderr.write(" ".join(line.split()) + "\n")
