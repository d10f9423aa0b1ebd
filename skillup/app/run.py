"""From a request to a finished run: load, plan, hold, report."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import anyio

from skillup import __version__
from skillup.analysis import with_analysis
from skillup.app.backend import check_executor, cluster_of
from skillup.app.history import index_finished_run, recorded_suites
from skillup.app.judges import answer_cache, router_of, simulators_of
from skillup.app.limits import deciding_of, go_on_command, go_on_with, paces_of, stopping_of
from skillup.app.planning import check_same_trials, plan_of, secrets_of_plan, warn_of_spared
from skillup.app.request import RunRequest, default_paths, hidden_variables, parse_vars
from skillup.app.resume import (
    case_digests,
    check_same_cases,
    milliseconds_of_starts,
    note_changed_cases,
    print_retry,
    taken_back,
)
from skillup.app.run_lookup import name_of_newest
from skillup.app.shutdown import Departure
from skillup.errors import ExitCode, InterruptedRunError, SkillupError, UsageError
from skillup.executors import RunOptions, run_locally
from skillup.executors.orphans import end_what_was_left
from skillup.executors.retry_errors import RetryErrors
from skillup.judges.models.client import FALLBACK_VARIABLE
from skillup.load.discover import workspace_root
from skillup.plan import Plan
from skillup.redaction.secrets import Secrets
from skillup.reports.formats import write_reports
from skillup.reports.result import Ending, build_result
from skillup.reports.terminal.layout import make_console
from skillup.reports.terminal.listing import shown_path
from skillup.reports.terminal.progress import reporter_for
from skillup.reports.terminal.result import print_ending, print_look, print_result
from skillup.schema.grade import Grade, RunResult, Stop
from skillup.store import RunDirectory, default_run_path, new_run_id
from skillup.store.journal import to_json
from skillup.trial.message import now

# The event loop of a run: it goes on until all is held, or until a signal comes.

_RESUME = "skillup run --resume"


def run_until_stopped(
    hold: Callable[[], Awaitable[None]], departure: Departure, go_on: str
) -> bool:
    """Await `hold`, which is cancelled when a signal comes; whether one did.

    A run directory that fails in the middle is infrastructure, not a wrong use of skillup: what
    its error says of resuming is said with `go_on`, the command that does it.
    """
    begun = False

    async def watched() -> bool:
        nonlocal begun
        begun = True
        return await until_signalled(hold, departure.signalled)

    try:
        return anyio.run(watched)
    except KeyboardInterrupt:
        if not begun:  # asyncio may be half imported: no report of the run could be written
            hint = f"go on with: {go_on}"
            raise InterruptedRunError("interrupted before the first trial", hint=hint) from None
        # Another Ctrl-C, in the moment after the first was obeyed: whatever has finished counts.
        _ignore_signals()
        return True
    except BaseExceptionGroup as group:
        refused = first_refusal(group)
        if refused is None:
            raise
        if isinstance(refused, UsageError):
            raise refused from group
        raise SkillupError(refused.message, hint=_with_command(refused.hint, go_on)) from group


def _with_command(hint: str | None, go_on: str) -> str | None:
    """`hint`, which may end with the bare option or the bare command."""
    if hint is None:
        return None
    for end in (f"`{_RESUME}`", "--resume"):
        if hint.endswith(end):
            return f"{hint.removesuffix(end)}`{go_on}`"
    return hint


def first_refusal(group: BaseExceptionGroup[BaseException]) -> SkillupError | None:
    """The error in `group` that a user can act on."""
    for error in group.exceptions:
        found = first_refusal(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, SkillupError):
            return found
    return None


async def until_signalled(
    hold: Callable[[], Awaitable[None]], signalled: Callable[[], None] = lambda: None
) -> bool:
    """Await `hold`, or cancel it when a signal comes; whether one did.

    `signalled` is called for each signal. Afterwards none is obeyed any more.
    """
    interrupted = False
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def watch() -> None:
                nonlocal interrupted
                with anyio.open_signal_receiver(*_stopping_signals()) as signals:
                    async for _ in signals:
                        interrupted = True
                        signalled()
                        scope.cancel()

            group.start_soon(watch)
            await hold()
        group.cancel_scope.cancel()
    if interrupted:
        _ignore_signals()
    return interrupted


def _ignore_signals() -> None:
    """What is left to do takes a moment, and a second Ctrl-C would lose it."""
    for stopping in _stopping_signals():
        signal.signal(stopping, signal.SIG_IGN)


def _stopping_signals() -> list[signal.Signals]:
    """Ctrl-C, the usual way to stop a program, and a terminal that is closed (unless `nohup`)."""
    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    return stopping


def run_session(
    request: RunRequest,
    *,
    out: Path | None,
    resume: Path | None,
    retry_errors: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
    keep: bool,
    index: str | None,
) -> int:
    """Do what `skillup run` was asked to do; the exit code."""
    if resume is None:
        paths = default_paths([Path(path) for path in request.paths])
        request = replace(
            request,
            paths=tuple(map(str, paths)),
            directory=str(Path.cwd()),
            judge_model_fallback=os.environ.get(FALLBACK_VARIABLE) or None,
        )
    check_executor(request, keep=keep)
    plan, parallelism = plan_of(request)
    console = make_console()

    def warn(text: str) -> None:
        console.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)

    end_what_was_left()
    environment = dict(os.environ)
    base = Path(request.directory or ".")
    secrets = secrets_of_plan(plan, base, environment)
    warn_of_spared(secrets, warn)
    cluster = cluster_of(request, plan, environment)
    directory = directory_for(request, plan, out, resume, secrets, retry_errors=retry_errors)
    go_on = go_on_command(directory.path, request, index)
    with directory:
        info = directory.run_info()
        again = RetryErrors()
        if retry_errors:
            again = taken_back(plan, directory, console, until_decided=request.until_decided)
        stopping = stopping_of(request, warn)
        options = RunOptions(
            run_id=info["run_id"],
            environment=environment,
            secrets=secrets,
            parallel=request.parallel or parallelism,
            stopping=stopping,
            deciding=deciding_of(request, plan, info, warn),
            paces=paces_of(request, stopping),
            variables=parse_vars(list(request.variables)),
            seed=request.seed,
            keep_scratch=keep,
            own_process=True,
            judge_again=frozenset(again.judged),
        )
        cache = answer_cache(
            directory.judge_answers, base, secrets.mask, anew=request.no_judge_cache
        )
        desk = router_of(plan, base, environment, secrets, cache, options.paces)
        simulators = simulators_of(desk.models, base, environment, secrets)
        options = replace(options, reader=desk, simulators=simulators)
        taken_before = 0 if resume is None else milliseconds_of_starts(directory.events())
        started = time.monotonic()
        with reporter_for(
            plan,
            console,
            quiet=quiet or as_json,
            verbose=verbose,
            mask=secrets.mask,
            finished=directory.finished_jobs() if resume is not None else (),
        ) as observer:
            grades: dict[str, Grade] = {}

            async def hold() -> None:
                """`grades` has what finished, also where this is cancelled."""
                try:
                    if cluster is None:
                        await run_locally(plan, directory, options, observer, grades)
                    else:
                        from skillup.executors.cluster import run_on_cluster

                        await run_on_cluster(cluster, plan, directory, options, observer, grades)
                finally:
                    await desk.models.close()

            interrupted = run_until_stopped(hold, Departure(observer, go_on), go_on)
        result = build_result(
            options.run_id,
            info["started_at"],
            grades,
            [job.id for job in plan.jobs],
            taken_before + round((time.monotonic() - started) * 1000),
            ending_of(plan, options, grades, interrupted=interrupted),
        )
        result = with_analysis(result, info)
        directory.write_result(result)
        for path in directory.set_aside:
            warn(f"{shown_path(path)} was not written by this run, or damaged, and was set aside")
        formats = formats_of(request, plan)
        written = write_reports(result, formats, directory.path, secrets.mask, index=index)
    # First of all: whoever reads what is printed may go away (`| head`), and that ends the process.
    index_finished_run(directory.path, base, index)
    if as_json:
        sys.stdout.write(to_json(result, secrets.mask, indent=2).decode())
    else:
        print_result(result, shown_path(directory.path), console, verbose=verbose)
    print_ending(result, go_on_with(go_on, result.stopped, options.stopping), console)
    print_retry(result, go_on, console)
    if not quiet and not as_json:
        print_look(written, name_of_newest(directory.path), console)
    return ExitCode.INTERRUPTED if interrupted else exit_code(result)


def formats_of(request: RunRequest, plan: Plan) -> list[str]:
    """The reports that the command line or one of the suites asks for."""
    suites = {job.suite.path: job.suite.suite for job in plan.jobs}
    return [*request.reports, *(name for s in suites.values() for name in s.report.formats)]


def directory_for(
    request: RunRequest,
    plan: Plan,
    out: Path | None,
    resume: Path | None,
    secrets: Secrets,
    run_id: str | None = None,
    *,
    retry_errors: bool = False,
) -> RunDirectory:
    """The run's directory, open for writing: that of `resume`, or a new one, of the id `run_id`."""
    if resume is not None:
        earlier = RunDirectory.open(resume)
        info = earlier.run_info()
        check_same_trials(plan, info)
        check_same_cases(plan, earlier, info, secrets, retry_errors=retry_errors)
        directory = RunDirectory.open(resume, writable=True, mask=secrets.mask)
        note_changed_cases(plan, directory, info)
        return directory
    run_id = run_id or new_run_id()
    path = out or default_run_path(workspace_root(Path(request.directory)), run_id)
    info = {
        "schema_version": "skillup.run/1",
        "run_id": run_id,
        "skillup_version": __version__,
        "started_at": now(),
        "request": asdict(request),
        "hidden_variables": hidden_variables(request.variables, secrets.mask),
        "profiles": {job.profile.name: job.profile.model_dump(mode="json") for job in plan.jobs},
        "suites": recorded_suites(plan),
        "jobs": [job.id for job in plan.jobs],
        "case_digests": case_digests(plan),
    }
    return RunDirectory.create(path, info, mask=secrets.mask)


def ending_of(
    plan: Plan, options: RunOptions, grades: Mapping[str, Grade], *, interrupted: bool
) -> Ending:
    """Why trials of `plan` have no grade."""
    stop = options.stopping.reason
    if interrupted:
        stop = Stop(kind="interrupted", message="interrupted by a signal")
    saved = [
        job.id
        for job in plan.jobs
        if options.deciding is not None and job.id not in grades and not options.deciding.needs(job)
    ]
    return Ending(stop, frozenset(saved), tuple(options.stopping.warnings))


def exit_code(result: RunResult) -> ExitCode:
    """What could not be held outranks what failed: whoever sees failures only believes the rest.

    So errors count first, and whatever kept trials from being held (a budget, a quota), unless it
    was that enough had failed. A trial without the skill that fails is no failure of the skill.
    """
    summary, baseline = result.summary, result.summary.baseline
    errors = summary.error + (baseline.error if baseline is not None else 0)
    by_failures = result.stopped is not None and result.stopped.kind == "max_fail"
    if errors or (result.not_run and not by_failures):
        return ExitCode.ERROR
    return ExitCode.FAILED if summary.fail or result.not_run else ExitCode.PASSED
