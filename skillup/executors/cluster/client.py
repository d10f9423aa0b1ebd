"""Trials as Dask tasks: the client submits them and takes in what comes back; workers run them.

Order, dependencies, budgets and early stopping are those of any run (:class:`Run`): as many trials
are submitted at once as the workers have threads. Which worker runs them is Dask's choice, as is
another one if that is lost. There each task has a process of its own: in the worker's, other
people's tasks start processes, too, which skillup's care for its own must not touch.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from skillup import __version__
from skillup.engines.base import Availability
from skillup.engines.registry import get_engine
from skillup.errors import SkillupError
from skillup.executors.cluster.bundle import read_run, store_run, unpack
from skillup.executors.local import set_aside_unused
from skillup.executors.retries import with_note
from skillup.executors.run import Run, case_of
from skillup.plan import Job
from skillup.process.spawn import start_apart
from skillup.process.tree import process_register
from skillup.schema.grade import Grade, Stop
from skillup.schema.record import Record, TurnError
from skillup.store.places import directory_of_job
from skillup.store.scratch import end_what_was_left, remove_tree
from skillup.store.trials import GRADE_FILE, RECORD_FILE
from skillup.trial import record_without_turns

_SECONDS = 5  # to connect, and to say that it is over
_WITHOUT_WORKERS_SECONDS = 60.0
_GO_ON = "what has finished is kept: go on with `skillup run --resume`"
_BROKEN = "the connection to the Dask scheduler broke"
_PROGRAM = (sys.executable, "-P", "-m", "skillup.app.cluster_unit")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where trials run, and what is sent there: from it the workers make the same plan."""

    scheduler: str
    request: Mapping[str, Any]
    files: bytes
    parallel: int | None = None


async def run_on_cluster(cluster: Cluster, run: Run) -> None:
    """As :func:`skillup.executors.run_locally`, on the workers of `cluster`.

    Raises SkillupError if a worker has another skillup, or scheduler or workers are gone for good.
    """
    with process_register(run.options.register_dir, own_process=run.options.own_process):
        await run.take_over_finished()
        for profile in {job.profile.name: job.profile for job in run.plan.jobs}.values():
            # The workers have them: on this machine there need be none.
            run.engines[profile.name] = get_engine(profile.engine), Availability(True, ())
        client = await _connect(cluster.scheduler)
        try:
            async with anyio.create_task_group() as group:
                # A task, for Dask makes its result anew if the worker that has it is lost.
                files = client.submit(bytes, cluster.files, pure=False)
                run.scheduler.resize(1)  # until it is known how many threads the workers have
                group.start_soon(_watch, run, client, cluster.parallel)
                await run.run_all(partial(_run_trials, run, client, cluster.request, files))
                group.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(_SECONDS, shield=True):
                await client.close(timeout=_SECONDS)


async def _watch(run: Run, client: Any, parallel: int | None) -> None:
    """Look how many trials the workers can run. Raises SkillupError if there are none left."""
    since = time.monotonic()
    while True:
        try:
            threads = sum((await client.nthreads()).values())
        except OSError as error:
            raise SkillupError(_BROKEN, hint=_GO_ON) from error
        if threads:
            since = time.monotonic()
        elif time.monotonic() - since > _WITHOUT_WORKERS_SECONDS:
            raise SkillupError(
                f"the cluster has had no workers for {_WITHOUT_WORKERS_SECONDS:g} s",
                hint=f"start some: `dask worker ADDRESS`; {_GO_ON}",
            )
        run.scheduler.resize(min(threads, parallel or threads) or 1)
        await anyio.sleep(0.5)


async def _run_trials(
    run: Run, client: Any, given: Mapping[str, Any], files: Any, jobs: Sequence[Job]
) -> None:
    """Have the jobs run on one worker, and conclude them."""
    ids, notes = [job.id for job in jobs], dict[str, str]()
    for job in jobs:
        checkpoint = run.directory.read_checkpoint(job.id)
        if checkpoint is not None:
            why = "its session is not on the worker that runs it now"
            notes[job.id] = set_aside_unused(run, job, checkpoint, why)
        run.directory.begin_trial(job.id)
        run.directory.remove_scratch(job.id)
        run.observer.trial_started(job, 1)
    request = {
        "version": __version__,
        "run_id": run.options.run_id,
        "request": dict(given),
        "jobs": ids,
        "references": {case: run.references.get(case, {}) for case in map(case_of, ids)},
    }
    future = client.submit(run_trials, request, files, pure=False, retries=3)
    try:
        written = await future
        # What has come is finished: it is kept, even if the run ends in this moment.
        with anyio.CancelScope(shield=True):
            await _take_in(run, written, jobs, notes)
    except Exception as failure:
        if future.status == "finished" or isinstance(failure, SkillupError):
            raise
        if future.status != "error":
            raise SkillupError(_BROKEN, hint=_GO_ON) from failure
        error = TurnError(kind="crash", message=f"its worker was lost or failed: {failure}")
        for job in jobs:
            await run.conclude(job, record_without_turns(run.request(job), error=error))
            run.directory.remove_scratch(job.id)
    finally:
        with anyio.move_on_after(_SECONDS, shield=True):
            await client.cancel([future], force=True)


async def _take_in(
    run: Run, written: Mapping[str, bytes], jobs: Sequence[Job], notes: Mapping[str, str]
) -> None:
    """Put what was written over there into the run, as if it had happened here."""
    store = partial(store_run, written, jobs, run.directory, run.options.secrets)
    files = await anyio.to_thread.run_sync(store)
    for event in map(json.loads, files["events.jsonl"].splitlines()):
        if event["event"] == "trial_forked":
            run.directory.journal(**{k: v for k, v in event.items() if k != "time"})
        elif event["event"] == "run_stopped":
            run.stopping.stop(Stop.model_validate(event["stop"]))
    for job in jobs:
        place = f"trials/{directory_of_job(job.id)}/"
        for name in [name for name in files if name.startswith(f"{place}attempt-")]:
            kept = Record.model_validate_json(files[name])
            met = kept.first_error()
            run.give_up(job, kept, met.kind if met else "turn_precondition_fail")
        if place + RECORD_FILE not in files:
            run.leave(job)
            continue
        record = Record.model_validate_json(files[place + RECORD_FILE])
        graded = place + GRADE_FILE in files
        grade = Grade.model_validate_json(files[place + GRADE_FILE]) if graded else None
        await run.conclude(job, with_note(record, notes.get(job.id)), grade, judged=True)


async def _connect(scheduler: str) -> Any:
    """A `distributed.Client` in this event loop. Raises SkillupError if nobody answers there."""
    import distributed

    make: Any = distributed.Client  # without types
    # What it logs of lost connections is said by us, in one line, where it matters.
    logging.getLogger("distributed").handlers = [logging.NullHandler()]
    # Of other versions of packages that no trial needs, and of large files.
    warnings.filterwarnings("ignore", module="distributed")
    try:
        with anyio.fail_after(_SECONDS + 5):
            return await make(scheduler, asynchronous=True, timeout=_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise SkillupError(
            f"no Dask scheduler answers at {scheduler}: {error.__cause__ or error}",
            hint="is it running, and can it be reached from here? `dask scheduler` says its "
            "address when it starts, such as tcp://host:8786",
        ) from error


# At the worker.


def run_trials(request: dict[str, Any], files: bytes) -> dict[str, bytes]:
    """Run ``request["jobs"]``, which are one trial or share turns: the files of their run.

    Each time `files` are laid out anew: an agent may have changed what it was judged by (S8).
    Dask has them run once more if this raises something.
    """
    from distributed import get_worker

    worker = get_worker()
    tasks, key = worker.state.tasks, str(worker.get_current_task())
    if request["version"] != __version__:
        raise SkillupError(
            f"worker {worker.address} has skillup {__version__}, not {request['version']}",
            hint=f"install the same version there; {_GO_ON}",
        )
    end_what_was_left()
    # Dask removes its local directory once the worker has gone, however it went.
    place = tempfile.mkdtemp(prefix="skillup-", dir=worker.local_directory)
    directory = Path(place).resolve()
    try:
        unpack(files, directory / "root")
        message = json.dumps({**request, "parent": os.getpid()})
        (directory / "message.json").write_text(message)
        with (directory / "stderr").open("wb") as stderr:
            process = start_apart((*_PROGRAM, str(directory)), cwd=directory, stderr=stderr)
        # Until it has ended, or is needed no more, of which Dask tells nothing.
        while process.poll() is None and getattr(tasks.get(key), "state", "") == "executing":
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        code = process.wait()  # it ends its agents by force, if need be
        if code != 0:
            last = (directory / "stderr").read_text(errors="replace").strip().rpartition("\n")[2]
            raise RuntimeError(f"skillup ended with {code} on {worker.address}: {last}")
        return read_run(directory / "run", f"{directory}/root".encode())
    finally:
        with suppress(OSError):  # where the process was killed, workspaces are still there
            remove_tree((directory / "run" / "scratch").readlink())
        remove_tree(directory)
