"""Trials as Dask tasks: the client submits them and takes in what comes back; workers run them.

Order, dependencies, budgets and early stopping are those of any run (:class:`Run`): as many trials
are submitted at once as the workers have threads. Which worker runs them is Dask's choice, as is
another one if that is lost. There each task has a process of its own: in the worker's, other
people's tasks start processes, too, which skillup's care for its own must not touch.

The files of a plan travel to the workers, and those of a run back. Each has the path there that it
has here, below a directory that takes the place of `/`.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from skillup import __version__
from skillup.dataclass import frozen
from skillup.engines.base import Availability
from skillup.engines.registry import engine_of
from skillup.errors import SkillupError
from skillup.executors.local import set_aside_unused
from skillup.executors.retries import with_note
from skillup.executors.run import Run, case_of
from skillup.judges.models import StoredAnswer, key_of
from skillup.load.discover import DATASET_ENDINGS, WORKSPACE_FILE, suite_root
from skillup.plan import Job, Plan
from skillup.process.run import start_apart
from skillup.process.tree import process_register
from skillup.redaction.secrets import Secrets, texts_in
from skillup.schema.grade import Grade, Stop
from skillup.schema.record import Record, TurnError
from skillup.store import RunDirectory
from skillup.store.files import disk_errors
from skillup.store.places import RUN_FILE
from skillup.store.scratch import end_what_was_left, remove_tree
from skillup.trial.run import record_without_turns

_SECONDS = 5  # to connect, and to say that it is over
_WITHOUT_WORKERS_SECONDS = 60.0
_GO_ON = "what has finished is kept: go on with `skillup run --resume`"
_BROKEN = "the connection to the Dask scheduler broke"
_PROGRAM = (sys.executable, "-P", "-m", "skillup.app.cluster_worker")
_LEFT_OUT = re.compile(
    r"\.(git|hg|svn|skillup|venv|cache|mypy_cache|pytest_cache|ruff_cache)|__pycache__"
)


@frozen
class Cluster:
    """Where trials run, and what is sent there: from it the workers make the same plan."""

    scheduler: str
    request: Mapping[str, Any]
    files: bytes
    parallel: int | None = None


async def run_on_cluster(cluster: Cluster, run: Run) -> None:
    """As :func:`skillup.executors.local.run_locally`, on the workers of `cluster`.

    Raises SkillupError if a worker has another skillup, or scheduler or workers are gone for good.
    """
    with process_register(run.options.register_dir, own_process=run.options.own_process):
        await run.take_over_finished()
        for profile in {job.profile.name: job.profile for job in run.plan.jobs}.values():
            # The workers have them: on this machine there need be none.
            run.engines[profile.name] = engine_of(profile), Availability(True, ())
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
            what = f"the cluster has had no workers for {_WITHOUT_WORKERS_SECONDS:g} s"
            raise SkillupError(what, hint=f"start some: `dask worker ADDRESS`; {_GO_ON}")
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
    with tempfile.TemporaryDirectory(prefix="skillup-") as place:
        Path(place, RUN_FILE).write_bytes(written["run"])
        with RunDirectory.open(Path(place)) as other:
            renamed = await anyio.to_thread.run_sync(run.directory.take_blobs, other)
            for _, asked in other.answers.all():
                answer = StoredAnswer.model_validate_json(asked.replace(written["prefix"], b""))
                run.directory.answers.write(key_of(answer.asked), answer)

            def text(data: bytes) -> bytes:
                data = data.replace(written["prefix"], b"")
                for old, new in renamed.items():
                    data = data.replace(old, new)
                return data

            for event in other.events():
                if event["event"] == "trial_forked":
                    run.directory.journal(**{k: v for k, v in event.items() if k != "time"})
                elif event["event"] == "run_stopped":
                    run.stopping.stop(Stop.model_validate(event["stop"]))
            for job in jobs:
                ended = False
                for state, found in run.directory.take_attempts(other, job.id, renamed):
                    if not found.record_json:
                        continue
                    record = Record.model_validate_json(text(found.record_json))
                    if state != "finished":
                        met = record.first_error()
                        why = met.kind if met else "turn_precondition_fail"
                        await run.give_up(job, record, why)
                        continue
                    ended, data = True, found.grade_json
                    grade = Grade.model_validate_json(text(data)) if data is not None else None
                    record = with_note(record, notes.get(job.id))
                    await run.conclude(job, record, grade, judged=True)
                if not ended:
                    run.leave(job)


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


# What travels.


def pack(
    plan: Plan,
    paths: Sequence[Path],
    suites: Sequence[Path],
    roots: Sequence[Path],
    profiles: Sequence[Path],
    secrets: Secrets,
) -> bytes:
    """The files that `plan` needs to be made and run elsewhere, as a compressed archive.

    `paths` were given and mean `suites`; `roots` are the workspaces it looks for `engines/` in.
    Raises SkillupError for a file that cannot be read, or that has a secret.
    """
    # A dataset lies among anything at all; a suite has its folder to itself.
    folders = [suite_root(suite) for suite in suites if suite.suffix not in DATASET_ENDINGS]
    named = [*(path for path in paths if not path.is_dir()), *suites, *profiles, *folders]
    entries: dict[str, Path] = {}
    for path, whole in [*((path, False) for path in named), *_named_elsewhere(plan, roots)]:
        with disk_errors("send to the workers", path):
            entries |= dict(_walk(os.path.normpath(path), path, whole=whole))
    for path in (*paths, *roots):
        if path.is_dir():
            entries.setdefault(str(path), path)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=4) as archive:
        for name, path in sorted(entries.items()):
            archive.inodes = {}  # type: ignore[attr-defined]
            entry = archive.gettarinfo(path, arcname=name)
            with disk_errors("send to the workers", path):
                content = path.read_bytes() if entry.isreg() else b""
            if secrets.mask_bytes(content) != content:
                hint = "name the variable instead (${NAME}), and set it at the workers"
                what = f"{path}: holds a credential, and none is sent to workers"
                raise SkillupError(what, hint=hint)
            if entry.isdir():
                entry.mode |= 0o700
            if entry.isreg() or entry.isdir() or entry.issym():  # no socket, no pipe
                archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _named_elsewhere(plan: Plan, roots: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """What lies outside of the suites' folders; and whether it is needed whole: a fixture is."""
    for root in roots:
        yield from ((root / name, False) for name in ("engines", WORKSPACE_FILE))
    for job in {job.loaded.path: job for job in plan.jobs}.values():
        root, case = job.suite.root, job.loaded
        yield case.path, False
        for _, text in texts_in([job.suite.document.data, case.document.data]):
            if ".." in text.split("/") and len(text) < 250:  # else it is no path
                yield root / text, False
        if case.like.context.fixture is not None:
            yield root / case.like.context.fixture, True
        for program in (job.profile.command or ())[:1]:
            if any(Path(program).is_relative_to(root) for root in roots):
                yield Path(program), False


def _walk(
    name: str, path: Path, within: tuple[Path, ...] = (), *, whole: bool = False
) -> Iterator[tuple[str, Path]]:
    """Names in the archive, and places here; links that lead out of the tree are followed."""
    real = path.resolve()
    is_link = within and path.is_symlink() and not path.readlink().is_absolute()
    if is_link and real.is_relative_to(within[0]):
        yield name, path
    elif real.exists() and real not in within:
        yield name, real
        for child in sorted(real.iterdir()) if real.is_dir() else ():
            if whole or not _LEFT_OUT.fullmatch(child.name):
                yield from _walk(f"{name}/{child.name}", child, (*within, real), whole=whole)


def unpack(data: bytes, root: Path) -> None:
    """Lay out what :func:`pack` made; `root` takes the place of `/`."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        # From the client, who may have any code run here. Python before 3.11.4 has no filters.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(root)  # noqa: S202


# At the worker.


def run_trials(request: dict[str, Any], files: bytes) -> dict[str, bytes]:
    """Run ``request["jobs"]``, which are one trial or share turns.

    Returns their `run`, and the `prefix` that took the place of `/` in its paths. Each time `files`
    are laid out anew: an agent may have changed what it was judged by (S8). Dask has them run once
    more if this raises something.
    """
    from distributed import get_worker

    worker = get_worker()
    tasks, key = worker.state.tasks, str(worker.get_current_task())
    if request["version"] != __version__:
        what = f"worker {worker.address} has skillup {__version__}, not {request['version']}"
        raise SkillupError(what, hint=f"install the same version there; {_GO_ON}")
    end_what_was_left()
    # Dask removes its local directory once the worker has gone, however it went.
    place = tempfile.mkdtemp(prefix="skillup-", dir=worker.local_directory)
    directory = Path(place).resolve()
    try:
        unpack(files, directory / "root")
        (directory / "message.json").write_text(json.dumps(request))
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
        run = (directory / "run" / RUN_FILE).read_bytes()
        return {"run": run, "prefix": f"{directory}/root".encode()}
    finally:
        with suppress(OSError):  # where the process was killed, workspaces are still there
            remove_tree((directory / "run" / "scratch").readlink())
        remove_tree(directory)
