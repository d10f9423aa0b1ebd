"""From a request to a finished run: load, plan, hold, report."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import anyio

from skillup import __version__
from skillup.cli.engines import profiles_for, require_scripts
from skillup.cli.indexing import index_finished_run, recorded_suites
from skillup.cli.judges import answer_cache, desk_of, with_judges, with_judges_keys
from skillup.cli.options import default_paths, parse_vars
from skillup.cli.request import RunRequest
from skillup.cli.simulators import casting_of, with_users
from skillup.engines.registry import tokens_of
from skillup.errors import ExitCode, SkillupError, UsageError
from skillup.executors import RunObserver, RunOptions, run_locally
from skillup.executors.register import end_what_was_left
from skillup.judges.models.choice import FALLBACK_VARIABLE
from skillup.judges.models.client import Models
from skillup.load.discover import workspace_root
from skillup.load.sampling import Sampling, sampled
from skillup.load.suites import load_paths
from skillup.plan import Plan, Selection, make_plan
from skillup.process.secrets import Secrets
from skillup.reports.console import PlainReporter, make_console, print_result
from skillup.reports.formats import write_reports
from skillup.reports.live import LiveReporter
from skillup.reports.problems import problem_line, shown_path
from skillup.reports.result import build_result
from skillup.schema.grade import Grade, RunResult
from skillup.store import RunDirectory, default_run_path, new_run_id
from skillup.store.json_text import to_json
from skillup.trial.message import now


def hold_run(
    request: RunRequest,
    *,
    out: Path | None,
    resume: Path | None,
    quiet: bool,
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
    plan, parallelism = plan_of(request)
    console = make_console()
    end_what_was_left()
    environment = dict(os.environ)
    base = Path(request.directory or ".")
    secrets = with_users(_secrets_of(plan, environment), plan, base, environment)
    secrets = with_judges_keys(secrets, plan, environment)
    directory = _directory(request, plan, out, resume, secrets)
    with directory:
        info = directory.run_info()
        options = RunOptions(
            run_id=info["run_id"],
            environment=environment,
            secrets=secrets,
            parallel=request.parallel or parallelism,
            max_fail=request.max_fail,
            variables=parse_vars(list(request.variables)),
            keep_scratch=keep,
        )
        cache = answer_cache(
            directory.judge_answers, base, secrets.mask, anew=request.no_judge_cache
        )
        desk = desk_of(plan, base, environment, secrets, cache)
        simulators = casting_of(desk.models, base, environment, secrets)
        options = replace(options, reader=desk, simulators=simulators)
        live = console.is_terminal and not quiet and not as_json
        reporter = LiveReporter(plan, console) if live else None
        started = time.monotonic()
        with reporter or PlainReporter(plan, console, quiet=quiet or as_json) as observer:
            grades: dict[str, Grade] = {}
            interrupted = _run(plan, directory, options, observer, desk.models, grades)
        result = build_result(
            options.run_id,
            info["started_at"],
            grades,
            [job.id for job in plan.jobs],
            round((time.monotonic() - started) * 1000),
        )
        directory.write_result(result)
        write_reports(result, _formats(request, plan), directory.path, secrets.mask)
    if as_json:
        sys.stdout.write(to_json(result, secrets.mask, indent=2).decode())
    else:
        pairs = [(job, grades[job.id]) for job in plan.jobs if job.id in grades]
        print_result(result, plan, pairs, shown_path(directory.path), console)
    if interrupted:
        sys.stderr.write(f"interrupted; go on with: skillup run --resume {directory.path}\n")
    index_finished_run(directory.path, base, index)
    return ExitCode.INTERRUPTED if interrupted else exit_code(result)


def _formats(request: RunRequest, plan: Plan) -> list[str]:
    """The reports that the command line or one of the suites asks for."""
    suites = {job.suite.path: job.suite.suite for job in plan.jobs}
    return [*request.reports, *(name for s in suites.values() for name in s.report.formats)]


def plan_of(request: RunRequest) -> tuple[Plan, int]:
    """The plan that `request` asks for, and how many trials at once the suites ask for.

    Raises UsageError and InvalidFilesError; warnings go to stderr.
    """
    base = Path(request.directory or ".")
    variables = parse_vars(list(request.variables))
    loaded = load_paths([base / path for path in request.paths], variables=variables)
    for warning in loaded.warnings:
        sys.stderr.write(problem_line(warning) + "\n")
    loaded.or_raise()
    suites = sampled(loaded.suites, Sampling(request.item, request.sample_size, request.seed))
    suites = with_judges(suites, request.judge_model, request.judge_model_fallback)
    profiles = profiles_for(suites, request.engines, request.model, base)
    baseline = request.baseline or any(s.suite.benchmark.enabled for s in loaded.suites)
    plan = make_plan(
        suites,
        profiles,
        Selection(
            case_globs=request.cases,
            tags=request.tags,
            trials=request.trials,
            trials_from_turn=request.trials_from_turn,
            variants=("with_skill", "without_skill") if baseline else ("with_skill",),
            variables=variables,
        ),
    )
    if not plan.jobs:
        known = ", ".join(plan.left_out[:10]) or "none"
        raise UsageError("no case matches the selection", hint=f"the cases are: {known}")
    require_scripts(plan)
    given = [s.suite.cases.parallelism for s in loaded.suites if s.suite.cases.parallelism]
    return plan, max(given, default=os.cpu_count() or 2)


def _directory(
    request: RunRequest, plan: Plan, out: Path | None, resume: Path | None, secrets: Secrets
) -> RunDirectory:
    if resume is not None:
        return RunDirectory.open(resume, writable=True, mask=secrets.mask)
    run_id = new_run_id()
    path = out or default_run_path(workspace_root(Path(request.directory)), run_id)
    info = {
        "schema_version": "skillup.run/1",
        "run_id": run_id,
        "skillup_version": __version__,
        "started_at": now(),
        "request": asdict(request),
        "profiles": {job.profile.name: job.profile.model_dump(mode="json") for job in plan.jobs},
        "suites": recorded_suites(plan),
        "jobs": [job.id for job in plan.jobs],
    }
    return RunDirectory.create(path, info, mask=secrets.mask)


def _secrets_of(plan: Plan, environment: Mapping[str, str]) -> Secrets:
    """What nothing of this run may show: the user's credentials, and those in files of the plan."""
    profiles = {job.profile.name: job.profile for job in plan.jobs}
    suites = {job.suite.path: job.suite.suite for job in plan.jobs}
    names = {profile.api_key_env for profile in profiles.values()}
    secrets = Secrets.from_environment(environment, names)
    for profile in profiles.values():
        secrets = secrets.also_of(profile.env, names)
        secrets = secrets.also(tokens_of(profile.engine, environment))
    for suite in suites.values():
        # Those that take their value from elsewhere (`${NAME}`) have it from the environment.
        secrets = secrets.also_of(suite.environment.env, names)
    return secrets


def _run(
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: RunObserver,
    models: Models,
    grades: dict[str, Grade],
) -> bool:
    """:func:`_hold` in an event loop: whether it was interrupted.

    A run directory that fails in the middle is infrastructure, not a wrong use of skillup.
    """
    try:
        return anyio.run(_hold, plan, directory, options, observer, models, grades)
    except KeyboardInterrupt:
        # Another Ctrl-C, in the moment after the first was obeyed: whatever has finished counts.
        _ignore_signals()
        return True
    except BaseExceptionGroup as group:
        refused = _first_refusal(group)
        if refused is None:
            raise
        raise SkillupError(refused.message, hint=refused.hint) from group


def _first_refusal(group: BaseExceptionGroup[BaseException]) -> SkillupError | None:
    for error in group.exceptions:
        found = _first_refusal(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, SkillupError):
            return found
    return None


async def _hold(
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: RunObserver,
    models: Models,
    grades: dict[str, Grade],
) -> bool:
    """Run until it is done or a signal comes; `grades` has what finished in both cases."""
    interrupted = False

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def watch() -> None:
                nonlocal interrupted
                with anyio.open_signal_receiver(*_stopping_signals()) as signals:
                    async for _ in signals:
                        interrupted = True
                        scope.cancel()

            group.start_soon(watch)
            try:
                await run_locally(plan, directory, options, observer, grades)
            finally:
                await models.close()
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


def exit_code(result: RunResult) -> ExitCode:
    """Errors outrank failures; what was not run is neither, but it is not a pass."""
    if result.summary.error:
        return ExitCode.ERROR
    if result.summary.fail or result.not_run:
        return ExitCode.FAILED
    return ExitCode.PASSED
