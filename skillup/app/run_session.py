"""An open run: `skillup run`, the pytest plug-in and a cluster's workers all run trials by it."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from skillup import __version__
from skillup.app import planning
from skillup.app.interruption import OF_A_START, case_digests, milliseconds_of_starts, reopened
from skillup.app.planning import RunRequest
from skillup.app.provenance import provenance
from skillup.checks.registry import JUDGED
from skillup.errors import RunDirectoryError, SkillupError
from skillup.executors.local import Stepwise, run_locally
from skillup.executors.retries import RetryErrors, take_back, trials_to_retry
from skillup.executors.run import Run, RunObserver, RunOptions
from skillup.executors.stopping import EarlyStopping, StopPolicy
from skillup.load.discover import find_suites, workspace_root
from skillup.load.model import all_checks, read_by_model
from skillup.plan import Plan
from skillup.ratelimit import WAIT_SECONDS, RateLimiter
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.reports.text import say
from skillup.schema.case import Case
from skillup.schema.grade import Stop
from skillup.schema.line import TrialLine
from skillup.schema.profile import Profile
from skillup.schema.record import Record, utc_now
from skillup.schema.suite import fidelity_of, needs_simulator
from skillup.store import RunDirectory, default_run_path, new_run_id
from skillup.store.places import home_directory
from skillup.store.scratch import end_what_was_left
from skillup.store.stored_run import StoredGrades
from skillup.workspace.prepare import skills_for

if TYPE_CHECKING:  # imported late: most runs are judged by rules alone, and start faster so
    from skillup.executors.cluster import Cluster
    from skillup.judges.models import AnswerCache, AnswerPlace, Models
    from skillup.judges.router import JudgeRouter
    from skillup.schema.grade import RunResult
    from skillup.simulator import SimulatorFactory


class RunSession(AbstractContextManager["RunSession"]):
    """A run that is open for writing. Use it in a ``with``, which closes the run's directory."""

    def __init__(
        self,
        request: RunRequest,
        plan: Plan,
        *,
        parallel: int = 1,
        path: Path | None = None,
        run_id: str | None = None,
        resume: Path | None = None,
        retry_errors: bool = False,
        keep: bool = False,
        own_process: bool = False,
        about: Mapping[str, Any] | None = None,  # Of the run itself
        index: str | None = None,  # Of past runs, among which this one will be
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """A new run at `path` (default: in the workspace), or the one to `resume`."""
        end_what_was_left()
        self.request, self.plan, self._index = request, plan, index
        self.lines: dict[str, TrialLine] = {}  # By job id; it fills up as trials finish
        self.retried = RetryErrors()  # The trials that met an error and run again
        self._started, self._taken_before = time.monotonic(), 0
        self._environment = dict(os.environ)
        self.secrets = planning.secrets_of_plan(plan, request.base, self._environment)
        planning.warn_of_spared(self.secrets, warn)
        _warn_of_few_trials(request, plan, self._environment, warn)
        self._cluster = cluster_for(request, plan, self._environment)
        if resume is not None:
            self.directory = reopened(plan, self.secrets, resume, retry_errors=retry_errors)
            self._taken_before = milliseconds_of_starts(self.directory.events())
            info = self.directory.run_info()
            self.run_id, self._noted = info["run_id"], "used" in info  # by an earlier start
        else:
            self.run_id = run_id = run_id or new_run_id()
            self._noted = "used" in (about or {})  # a cluster's worker leaves it
            place = path or default_run_path(workspace_root(Path(request.directory)), run_id)
            info = {**_run_info(request, plan, self.secrets, run_id), **(about or {})}
            self.directory = RunDirectory.create(place, info, mask=self.secrets.mask)
        try:
            if retry_errors:
                self.retried = trials_to_retry(plan, self.directory)
                take_back(self.retried, self.directory)
            self.options = replace(
                self._options(warn),
                parallel=request.parallel or parallel,
                keep_scratch=keep,
                own_process=own_process,
            )
        except BaseException:
            self.directory.close()
            raise
        Record.model_rebuild()  # else by the first trial, on the event loop

    def _options(self, warn: Callable[[str], None]) -> RunOptions:
        """Limits, rate limiter, judges and simulated users, as far as the plan needs them."""
        request, secrets, environment = self.request, self.secrets, self._environment
        stopping = StopPolicy(
            warn,
            max_fail=request.max_fail,
            max_cost_usd=request.max_cost_usd,
            max_tokens=request.max_tokens,
            time_limit=request.time_limit,
        )
        wait = request.rate_limit_wait
        rate_limiter = RateLimiter(
            WAIT_SECONDS if wait is None else wait,
            lambda why: stopping.stop(Stop(kind="quota", message=why)),
        )
        reader, simulators, decided = None, None, request.until_decided
        cases = {id(job.loaded.like): job.loaded.like for job in self.plan.jobs}.values()
        played = any(map(needs_simulator, cases))
        if played or any(map(needs_judge, cases)):
            from skillup.judges.models import Models

            anew, mask = request.no_judge_cache, secrets.mask
            cache = answer_cache(self.directory.answers, request.base, mask, anew=anew)
            models = Models(environment, secrets, cache, rate_limiter=rate_limiter)
            reader = router_of(self.plan, request.base, models)
            if played:
                simulators = simulators_of(models, request.base)
        return RunOptions(
            run_id=self.run_id,
            environment=environment,
            secrets=secrets,
            stopping=stopping,
            deciding=EarlyStopping(self.plan.jobs, self.directory.run_info()) if decided else None,
            rate_limiter=rate_limiter,
            variables=planning.parse_vars(request.variables),
            last_judged=self._last_judged(),
            seed=request.seed,
            keep_traffic=request.keep_traffic,
            judge_again=frozenset(self.retried.judged),
            reader=reader,
            simulators=simulators,
        )

    def _last_judged(self) -> Mapping[str, str]:
        """Of jobs that a budget may leave out: those of the longest ago are first in turn."""
        request = self.request
        if (request.max_cost_usd, request.max_tokens, request.time_limit) == (None, None, None):
            return {}
        from skillup.app.forecast import last_judged, past_runs

        past = past_runs(self.plan.jobs[0].suite.root, request.base, self._index)
        began = self.directory.run_info()["started_at"]
        return last_judged(self.plan.jobs, [run for run in past if run.started_at < began])

    def __exit__(self, *_: object) -> None:
        self.directory.close()

    async def run(self, observer: RunObserver) -> None:
        """Run every trial that has not finished. Cancelling leaves what has."""
        run = Run(self.plan, self.directory, self.options, observer, self.lines)
        if self.options.own_process:
            # What of a trial is in circles is found within 100 trials, without looking through all
            # modules and the plan each time; to look through the lists of large workspaces, too,
            # stops the event loop for a tenth of a second.
            gc.freeze()
            gc.set_threshold(5_000, 5, 1_000)
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(self.note_provenance)
                if self._cluster is None:
                    await run_locally(run)
                else:
                    from skillup.executors.cluster import run_on_cluster

                    await run_on_cluster(self._cluster, run)
        finally:
            await self.close_models()

    async def note_provenance(self) -> None:
        """Find out and keep what the run uses, unless an earlier start has."""
        if not self._noted:
            suites = {job.suite.path: job.suite for job in self.plan.jobs}
            used: dict[str, Any] = {}
            with suppress(Exception):  # nothing of it is worth a run
                used = await provenance(suites.values(), self.request.base, self._environment)
            self.directory.write_used(used)
            self._noted = True

    def stepwise(self, observer: RunObserver) -> Stepwise:
        """For trials one at a time; the caller closes the session's models."""
        return Stepwise(Run(self.plan, self.directory, self.options, observer, self.lines))

    async def close_models(self) -> None:
        """End the connections to the models of judges and simulated users."""
        if self.options.reader is not None:
            await self.options.reader.models.close()

    def conclude(
        self, jobs: frozenset[str] | None = None, *, interrupted: bool = False
    ) -> RunResult:
        """Write the result: of all trials, or of `jobs` and those that have a grade."""
        if not self._noted:  # in pytest; or the run was interrupted
            anyio.run(self.note_provenance)
        options, stop = self.options, self.options.stopping.reason
        if interrupted:
            stop = Stop(kind="interrupted", message="interrupted by a signal")
        deciding, missing = options.deciding, [j for j in self.plan.jobs if j.id not in self.lines]
        not_needed = [job.id for job in missing if deciding is not None and not deciding.needs(job)]
        ended = {job.id: self.lines[job.id] for job in self.plan.jobs if job.id in self.lines}
        without = [job.id for job in missing if jobs is None or job.id in jobs]
        took = self._taken_before + round((time.monotonic() - self._started) * 1000)
        rest = stop, not_needed, options.stopping.warnings
        return write_result(self.directory, ended, without, took, *rest)

    def publish(self, result: RunResult, url: str | None = None) -> list[Path]:
        """Write the reports that the request or a suite asks for, and index the run: the files."""
        from skillup.reports.formats import write_reports

        suites = {job.suite.path: job.suite.suite for job in self.plan.jobs}
        formats = [*self.request.reports, *(f for s in suites.values() for f in s.report.formats)]
        path, mask = self.directory.path, self.secrets.mask
        written = write_reports(result, formats, path, mask, index=self._index)
        index_finished_run(path, result, self.request.base, self._index, url)
        return list(written)


def _run_info(request: RunRequest, plan: Plan, secrets: Secrets, run_id: str) -> dict[str, Any]:
    """What the run says of itself; of suites files, gates, skills, and what cases are called."""
    jobs = plan.whole or plan.jobs
    suites: dict[str, dict[str, Any]] = {}
    for job in jobs:
        suite, case, case_id = job.suite, job.loaded.like, job.loaded.id
        about = suites.get(suite.name)
        if about is None:
            installed = skills_for(suite, "with_skill")
            skills = installed if isinstance(installed, list) else []
            about = suites[suite.name] = {
                "path": str(suite.path),
                "gates": suite.suite.gates.model_dump(mode="json", exclude_defaults=True),
                "cases": {},
                "titles": {},
                "tags": {},
                "skills": [skill.name for skill in skills if skill.role != "distractor"],
                "distractors": [skill.name for skill in skills if skill.role == "distractor"],
            }
        about["cases"][job.case] = case_id
        if case.title:
            about["titles"][case_id] = case.title
        if case.tags:
            about["tags"][case_id] = list(case.tags)
    variables = planning.parse_vars(request.variables).items()
    return {
        "schema_version": "skillup.run/1",
        "run_id": run_id,
        "skillup_version": __version__,
        "started_at": utc_now(),
        "request": asdict(request),
        "hidden_variables": [name for name, value in variables if secrets.mask(value) != value],
        "profiles": {job.profile.name: job.profile.model_dump(mode="json") for job in jobs},
        "suites": suites,
        "jobs": [job.id for job in plan.jobs],
        **({"planned": [job.id for job in jobs]} if plan.whole else {}),
        "case_digests": case_digests(jobs),
        "label": request.label,
        "ran": planning.what_ran(plan, [name for s in suites.values() for name in s["skills"]]),
    }


def _warn_of_few_trials(
    request: RunRequest, plan: Plan, environment: Mapping[str, str], warn: Callable[[str], None]
) -> None:
    """Where a regression would go unseen; not to somebody who runs each case once by hand."""
    trials = max((job.trial for job in plan.jobs), default=1)
    in_ci = environment.get("CI", "").lower() not in ("", "0", "false")
    if request.until_decided or (trials == 1 and not in_ci):
        return
    from skillup.history.regressions import detects_a_half

    cases = sum(job.trial == 1 and job.variant == "with_skill" for job in plan.jobs)
    if cases and not detects_a_half(trials, cases):
        what = f"with --trials {trials}, two nights in which a case passes half as often as before"
        warn(f"{what} cannot be told from chance")


def cluster_for(request: RunRequest, plan: Plan, environment: Mapping[str, str]) -> Cluster | None:
    """The cluster that runs the plan; None: it is run here. Raises SkillupError."""
    scheduler = request.scheduler
    if scheduler is None or request.executor == "local":
        return None
    from skillup.executors.cluster import Cluster, pack

    base = request.base.resolve()
    paths = [(base / path).resolve() for path in request.paths]
    files = {n: (base / n).resolve() for n in request.engines if n.endswith((".yaml", ".yml"))}
    suites = list(find_suites(paths))
    roots = [workspace_root(base), *(workspace_root(suite) for suite in suites)]
    roots = [base, *dict.fromkeys(root.resolve() for root in roots)]
    parallel, fresh = request.parallel, asdict(RunRequest())
    request = replace(
        request,
        directory=str(base),
        paths=tuple(map(str, paths)),
        engines=tuple(str(files.get(name, name)) for name in request.engines),
        # Each task is a few trials; what is for the whole start is decided here.
        parallel=1,
        until_decided=False,
        pass_rate=None,  # which is refused without the former
        **{name: fresh[name] for name in OF_A_START},
    )
    secrets = NO_SECRETS.also_of(environment, {job.profile.api_key_env for job in plan.jobs})
    secrets = secrets.sparing(planning.names_of_run(plan, base))
    sent = json.dumps(asdict(request))
    if secrets.mask(sent) != sent:
        what = "an option of the command holds a credential, which is not sent to workers"
        raise SkillupError(what, hint="set the variable at the workers, and name it: ${NAME}")
    packed = pack(plan, paths, suites, roots, list(files.values()), secrets)
    return Cluster(scheduler=scheduler, request=asdict(request), files=packed, parallel=parallel)


def write_result(
    run: RunDirectory, lines: Mapping[str, TrialLine], without: Sequence[str], took: int, *rest: Any
) -> RunResult:
    """The result of a run: its trials that have a grade, and as :func:`build_result`."""
    from skillup.analysis import with_analysis
    from skillup.reports.result import build_result

    info = run.run_info(jobs=False)
    about = info["run_id"], info["started_at"]
    result = build_result(*about, StoredGrades(run, lines), without, took, *rest)
    result = with_analysis(result, info)
    run.write_result(result)
    return result


def index_finished_run(
    path: Path, result: RunResult, start: Path, given: str | None, url_of_run: str | None = None
) -> None:
    """Trouble is a line on stderr and nothing else: the run is over, its result on the disk."""
    try:
        from skillup.history.index import add_run, index_url
        from skillup.history.runs import read_run

        url = index_url(given, os.environ, workspace_root(start), write=True)
        if url:
            found = read_run(path, result)
            add_run(url, replace(found, path=url_of_run or found.path))
    except SkillupError as error:
        say(f"not indexed: {error.message}", *([f"  hint: {error.hint}"] if error.hint else []))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nothing here may change what the run came to
        say(f"not indexed: {type(error).__name__}: {error}")


# Who judges in a run, and who plays its simulated users.


def needs_judge(case: Case) -> bool:
    """Whether anything in `case` is judged by a model, an agent or a script."""
    if fidelity_of(case) != "off":
        return True
    keys = (key for _, check, _ in all_checks(case) for key, _ in check.given())
    return bool(case.all_judges() or read_by_model(case)) or not JUDGED.isdisjoint(keys)


def answer_cache(
    run: AnswerPlace | None, base: Path, mask: Callable[[str], str], *, anew: bool
) -> AnswerCache:
    """The answers kept in `run` (None: in none), and those that runs share, unless `anew`."""
    from skillup.judges.models import AnswerCache, AnswerFolder

    shared = None
    if not anew:
        with suppress(RunDirectoryError):  # a workspace that cannot be written has no cache
            shared = AnswerFolder(home_directory(workspace_root(base)) / "judge-cache", mask)
    return AnswerCache(run, shared, anew=anew)


def router_of(plan: Plan, base: Path, models: Models) -> JudgeRouter:
    """Who judges the cases of `plan`; other profiles are those of the workspace of `base`."""
    from skillup.judges.router import JudgeRouter

    of_plan = {(job.suite.root, job.profile.name): job.profile for job in plan.jobs}

    def profile(name: str, root: Path) -> Profile:
        known = of_plan.get((root, name))
        return known or planning.profile_for(base, models.environment, name, root)

    return JudgeRouter(models, profile)


def simulators_of(models: Models, base: Path) -> SimulatorFactory:
    """Players for the suites of a run; profiles are those of the workspace of `base`."""
    from skillup.simulator import SimulatorFactory

    return SimulatorFactory(models, partial(planning.profile_for, base, models.environment))
