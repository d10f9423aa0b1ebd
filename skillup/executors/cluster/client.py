"""The client's side: it sends trials to Dask's workers, and takes in what comes back.

Order, dependencies, budgets and early stopping are those of any run (:class:`Run`): as many trials
are submitted at once as the workers have threads, each to the worker with the most room; if that is
lost, to another. Which workers there are is asked again and again.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import tarfile
import time
import uuid
import warnings
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from skillup import __version__
from skillup.engines.base import Availability
from skillup.engines.registry import get_engine
from skillup.errors import SkillupError
from skillup.executors.attempts import set_aside_unused
from skillup.executors.cluster import worker
from skillup.executors.cluster.bundle import unpack_run
from skillup.executors.retries import with_note
from skillup.executors.run import Run, case_of
from skillup.plan import Job
from skillup.process import process_register
from skillup.schema.grade import Grade, Stop
from skillup.schema.record import Record, TurnError
from skillup.store.places import directory_of_job
from skillup.store.trials import GRADE_FILE, RECORD_FILE
from skillup.trial import record_without_turns

LOSSES_ALLOWED = 3
"""So often a trial runs again because its worker was lost; then that is its error."""

_CONNECT_SECONDS = 5
_CLOSE_SECONDS = 5
_PREPARE_SECONDS = 150.0
_POLL_SECONDS = 0.2
_WITHOUT_WORKERS_SECONDS = 60.0
"""How long a run waits for workers: at its start for the first, later for those that come again."""
_GO_ON = "what has finished is kept: go on with `skillup run --resume`"
_BROKEN = "the connection to the Dask scheduler broke"
_UNKNOWN = "nobody has looked at it yet"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where trials run, and what is sent there."""

    scheduler: str
    """Its address."""
    request: Mapping[str, Any]
    """What makes the plan, as JSON-like data: the workers make it anew from the files."""
    files: bytes
    parallel: int | None = None
    """At most so many trials at once; None: one for each thread of the workers."""


@dataclass(slots=True, eq=False)
class _Worker:
    address: str
    threads: int
    problem: str | None = _UNKNOWN
    """Why it gets no trials."""
    running: int = 0


async def run_on_cluster(cluster: Cluster, run: Run) -> None:
    """As :func:`skillup.executors.run_locally`, on the workers of `cluster`.

    Raises SkillupError if the scheduler does not answer, no worker can run the trials, or scheduler
    or workers are gone for good.
    """
    options, jobs = run.options, run.plan.jobs
    with process_register(options.register_dir, own_process=options.own_process):
        await run.take_over_finished()
        if all(job.id in run.grades for job in jobs):
            return
        async with _connected(cluster.scheduler) as client, anyio.create_task_group() as group:
            backend = _DaskBackend(run, client, cluster, group)
            try:
                group.start_soon(backend.watch)
                for name, engine in {j.profile.name: j.profile.engine for j in jobs}.items():
                    # The workers have them: on this machine there need be none.
                    run.engines[name] = get_engine(engine), Availability(True, ())
                await run.run_all(backend.run)
            finally:
                with suppress(OSError), anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await client.run(worker.forget, backend.id, on_error="ignore")
            group.cancel_scope.cancel()


class _DaskBackend:
    """Runs trials on the workers that can run them; those that share turns are one task."""

    def __init__(self, run: Run, client: Any, cluster: Cluster, group: TaskGroup) -> None:
        self._run, self._client, self._group, self._cluster = run, client, group, cluster
        self.id = uuid.uuid4().hex  # of this start alone
        self._request = {
            "run": self.id,
            "run_id": run.options.run_id,
            "request": dict(cluster.request),
        }
        self._workers: dict[str, _Worker] = {}
        run.scheduler.resize(1)  # until it is known how many threads the workers have

    def _ready(self) -> list[_Worker]:
        return [one for one in self._workers.values() if one.problem is None]

    async def watch(self) -> None:
        """Look who is there. Raises SkillupError if nobody is for a minute, or no one is fit."""
        since = time.monotonic()
        while True:
            try:
                with anyio.fail_after(_WITHOUT_WORKERS_SECONDS):
                    there = await self._client.nthreads()
            except (OSError, TimeoutError) as error:
                raise SkillupError(f"{_BROKEN}: {_failure(error)}", hint=_GO_ON) from error
            for address in self._workers.keys() - there.keys():
                del self._workers[address]
            for address in there.keys() - self._workers.keys():
                self._workers[address] = _Worker(address, there[address])
                self._group.start_soon(self._prepare, self._workers[address])
            if self._workers:
                since = time.monotonic()
            elif time.monotonic() - since > _WITHOUT_WORKERS_SECONDS:
                raise SkillupError(
                    f"the cluster has had no workers for {_WITHOUT_WORKERS_SECONDS:g} s",
                    hint="start some: `dask worker ADDRESS`, or scale() of the cluster's "
                    f"deployer; {_GO_ON}",
                )
            problems = {address: one.problem for address, one in self._workers.items()}
            if problems and not {None, _UNKNOWN} & {*problems.values()}:
                every = "; ".join(f"{address}: {problem}" for address, problem in problems.items())
                raise SkillupError(
                    f"no worker can run these trials: {every}",
                    hint="install what is missing there (docs/cluster.md says what a worker "
                    f"needs); {_GO_ON}",
                )
            threads = sum(one.threads for one in self._ready())
            self._run.scheduler.resize(min(threads, self._cluster.parallel or threads) or 1)
            await anyio.sleep(_POLL_SECONDS)

    async def _prepare(self, one: _Worker) -> None:
        """Send the suites to a worker."""
        problem: Any = "it does not answer"
        with anyio.move_on_after(_PREPARE_SECONDS):
            try:
                answers = await self._client.run(
                    worker.prepare,
                    self.id,
                    __version__,
                    self._cluster.files,
                    workers=[one.address],
                    on_error="return",
                )
                problem = answers.get(one.address, problem)
            except OSError as error:  # the connection
                problem = error
        one.problem = None
        if problem is not None:
            text = _failure(problem) if isinstance(problem, BaseException) else problem
            self._exclude(one, text)

    def _exclude(self, one: _Worker, problem: str) -> None:
        one.problem = problem
        _warn(f"worker {one.address}: {problem}; it gets no trials")

    async def run(self, jobs: Sequence[Job]) -> None:
        """Have the jobs run, and conclude them."""
        directory, notes = self._run.directory, dict[str, str]()
        for job in jobs:
            checkpoint = directory.read_checkpoint(job.id)
            if checkpoint is not None:
                why = "its session is not on the worker that runs it now"
                notes[job.id] = set_aside_unused(self._run, job, checkpoint, why)
            directory.begin_trial(job.id)
            directory.remove_scratch(job.id)
        answer = await self._answer(jobs)
        # What has come is finished: it is kept, even if the run ends in this moment.
        with anyio.CancelScope(shield=True):
            if isinstance(answer, TurnError):
                await self._fail(jobs, answer)
            else:
                await self._take_in(answer, jobs, notes)

    async def _answer(self, jobs: Sequence[Job]) -> dict[str, Any] | TurnError:
        """What :func:`~skillup.executors.cluster.worker.run_trials` says, or why nothing came."""
        known = self._run.references  # an agent may have changed what they are judged by
        request = {
            **self._request,
            "jobs": [job.id for job in jobs],
            "references": {case_of(job.id): known.get(case_of(job.id), {}) for job in jobs},
        }
        await _until(lambda: bool(self._ready()))
        for job in jobs:
            self._run.observer.trial_started(job, 1)
        losses: list[str] = []
        while len(losses) <= LOSSES_ALLOWED:
            await _until(lambda: bool(self._ready()))
            one = min(self._ready(), key=lambda one: one.running / one.threads)
            one.running += 1
            try:
                answer = await self._submit(request, one)
            finally:
                one.running -= 1
            if "failed" in answer:
                what = f"the worker's skillup failed: {answer['failed']}"
                return TurnError(kind="internal", message=what)
            if "lost" not in answer:
                missing = answer["errors"].get("engine_not_found")
                if missing is None and set(self._ready()) - {one}:  # which may have a login
                    missing = answer["errors"].get("auth")
                if missing is None:
                    return answer
                self._exclude(one, missing)
                continue
            losses.append(answer["lost"])
            text = f"worker {one.address}: {losses[-1]}; trials there were lost"
            self._run.stopping.note(text)
            for job in jobs:
                self._run.directory.journal(
                    "trial_lost", job=job.id, worker=one.address, reason=losses[-1]
                )
                self._run.observer.trial_lost(job, one.address, losses[-1])
            if answer.get("unfit"):
                self._exclude(one, losses[-1])
            elif answer.get("anew"):
                self._workers.pop(one.address, None)  # it is prepared once more
        message = f"its worker was lost {len(losses)} times while it ran; last: {losses[-1]}"
        return TurnError(kind="crash", message=message)

    async def _submit(self, request: dict[str, Any], one: _Worker) -> dict[str, Any]:
        """What the task yields; ``{"lost": …}`` if its worker has gone."""
        future = self._client.submit(
            worker.run_trials, request, workers=[one.address], pure=False, retries=0
        )
        try:
            await _until(lambda: future.done() or self._workers.get(one.address) is not one)
            if not future.done():
                return {"lost": "the worker has gone"}
            answer: dict[str, Any] = await future
            return answer
        except Exception as failure:
            raise SkillupError(_failure(failure), hint=_GO_ON) from failure
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self._client.cancel([future], force=True)

    async def _take_in(
        self, answer: Mapping[str, Any], jobs: Sequence[Job], notes: Mapping[str, str]
    ) -> None:
        """Put what was written over there into the run, as if it had happened here."""
        run, ids = self._run, {job.id for job in jobs}
        take = partial(unpack_run, answer["trials"], jobs, run.directory, run.options.secrets)
        try:
            files = await anyio.to_thread.run_sync(take)
            events = [json.loads(line) for line in files["events.jsonl"].splitlines()]
            found = [(job, *_results(files, job)) for job in jobs]
        except (tarfile.TarError, zlib.error, EOFError, KeyError, ValueError) as error:
            what = f"what its worker sent back is damaged: {' '.join(str(error).split())[:300]}"
            await self._fail(jobs, TurnError(kind="internal", message=what))
            return
        for event in events:
            if event["event"] == "trial_forked" and event["job"] in ids:
                run.directory.journal(**{k: v for k, v in event.items() if k != "time"})
        for job, attempts, record, grade in found:
            for kept in attempts:
                met = kept.first_error()
                run.give_up(job, kept, met.kind if met else "turn_precondition_fail")
            if record is None:
                run.leave(job)
            else:
                await run.conclude(job, with_note(record, notes.get(job.id)), grade, judged=True)
        if answer["stop"] is not None:
            run.stopping.stop(Stop.model_validate(answer["stop"]))

    async def _fail(self, jobs: Sequence[Job], error: TurnError) -> None:
        for job in jobs:
            record = record_without_turns(self._run.request(job), error=error)
            self._run.directory.remove_scratch(job.id)
            await self._run.conclude(job, record)


def _results(
    files: Mapping[str, bytes], job: Job
) -> tuple[list[Record], Record | None, Grade | None]:
    """The attempts, the record and the grade of a trial; raises ValueError if they are none."""
    place = f"trials/{directory_of_job(job.id)}/"
    kept = [name for name in sorted(files) if name.startswith(f"{place}attempt-")]
    record, grade = files.get(place + RECORD_FILE), files.get(place + GRADE_FILE)
    return (
        [Record.model_validate_json(files[name]) for name in kept],
        Record.model_validate_json(record) if record is not None else None,
        Grade.model_validate_json(grade) if grade is not None else None,
    )


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
        try:
            with anyio.fail_after(_CONNECT_SECONDS + 5):
                client = await make(
                    scheduler, asynchronous=True, timeout=_CONNECT_SECONDS, set_as_default=False
                )
        except (OSError, TimeoutError, ValueError) as error:
            raise SkillupError(
                f"no Dask scheduler answers at {scheduler}: {_failure(error)}",
                hint="is it running, and can it be reached from here? `dask scheduler` says its "
                "address when it starts, such as tcp://host:8786",
            ) from error
        try:
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
        return _BROKEN
    return text or type(cause).__name__


async def _until(condition: Callable[[], bool]) -> None:
    """Dask says of few things that they happen: they are asked for."""
    while not condition():  # noqa: ASYNC110
        await anyio.sleep(_POLL_SECONDS)


def _warn(line: str) -> None:
    sys.stderr.write(" ".join(line.split()) + "\n")
