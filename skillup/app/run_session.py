"""An open run: `skillup run`, the pytest plug-in and a cluster's workers all run trials by it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from skillup import __version__
from skillup.analysis import with_analysis
from skillup.app.executor import cluster_for
from skillup.app.judges import answer_cache, router_of, simulators_of
from skillup.app.planning import secrets_of_plan, warn_of_spared
from skillup.app.request import RunRequest, hidden_variables, parse_vars
from skillup.app.resume import (
    case_digests,
    check_same_cases,
    check_same_trials,
    milliseconds_of_starts,
    note_changed_cases,
)
from skillup.app.runs import index_finished_run
from skillup.errors import SkillupError
from skillup.executors import RunObserver, RunOptions, run_locally
from skillup.executors.budgets import RunLimits, StopPolicy
from skillup.executors.early_stopping import EarlyStopping
from skillup.executors.orphans import end_what_was_left
from skillup.executors.retry_errors import RetryErrors, take_back, trials_to_retry
from skillup.executors.stepwise import Stepwise
from skillup.judges.models.cache import AnswerCache
from skillup.load.discover import workspace_root
from skillup.plan import Plan
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import Secrets
from skillup.reports.formats import write_reports
from skillup.reports.result import Ending, build_result
from skillup.schema.grade import Grade, RunResult, Stop
from skillup.stats.sequential import fewest_trials
from skillup.store import RunDirectory, default_run_path, new_run_id
from skillup.trial.message import now

if TYPE_CHECKING:
    from skillup.executors.cluster import Cluster
    from skillup.load.model import LoadedSuite


class RunSession:
    """A run that is open for writing. Use it in a ``with``, which closes the run's directory."""

    def __init__(
        self,
        request: RunRequest,
        plan: Plan,
        directory: RunDirectory,
        cache: AnswerCache,
        options: RunOptions,
    ) -> None:
        """`options` without judges and simulated users."""
        base = Path(request.directory or ".")
        environment, secrets = options.environment, options.secrets
        router = router_of(plan, base, environment, secrets, cache, options.rate_limiter)
        self.models = router.models
        simulators = simulators_of(router.models, base, environment, secrets)
        self.request, self.plan, self.directory, self.secrets = request, plan, directory, secrets
        self.options = replace(options, reader=router, simulators=simulators)
        self.grades: dict[str, Grade] = {}
        """By job id; it fills up as trials finish."""
        self.retried = RetryErrors()
        """The trials that met an error and run again."""
        self._cluster: Cluster | None = None
        self._started = time.monotonic()
        self._taken_before = 0

    @classmethod
    def open(
        cls,
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
        warn: Callable[[str], None] = lambda _: None,
    ) -> RunSession:
        """A new run at `path` (default: in the workspace), or the one to `resume`.

        Raises SkillupError; then nothing was written.
        """
        end_what_was_left()
        environment = dict(os.environ)
        base = Path(request.directory or ".")
        secrets = secrets_of_plan(plan, base, environment)
        warn_of_spared(secrets, warn)
        cluster = cluster_for(request, plan, environment)
        if resume is None:
            directory = _new_directory(request, plan, secrets, path, run_id or new_run_id())
        else:
            directory = _reopened(plan, secrets, resume, retry_errors=retry_errors)
        try:
            retried = RetryErrors()
            if retry_errors:
                retried = trials_to_retry(plan, directory)
                take_back(retried, directory)
            info = directory.run_info()
            limits = RunLimits(
                max_fail=request.max_fail,
                max_cost_usd=request.max_cost_usd,
                max_tokens=request.max_tokens,
                time_limit_seconds=request.time_limit,
            )
            stopping = StopPolicy(limits, warn)
            options = RunOptions(
                run_id=info["run_id"],
                environment=environment,
                secrets=secrets,
                parallel=request.parallel or parallel,
                stopping=stopping,
                deciding=_early_stopping(request, plan, info, warn),
                rate_limiter=RateLimiter(request.patience_seconds, stopping.end_for_quota),
                variables=parse_vars(request.variables),
                seed=request.seed,
                keep_scratch=keep,
                own_process=own_process,
                judge_again=frozenset(retried.judged),
            )
            cache = answer_cache(
                directory.judge_answers, base, secrets.mask, anew=request.no_judge_cache
            )
            session = cls(request, plan, directory, cache, options)
            session.retried, session._cluster = retried, cluster
            if resume is not None:
                session._taken_before = milliseconds_of_starts(directory.events())
        except BaseException:
            directory.close()
            raise
        return session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.directory.close()

    async def run(self, observer: RunObserver) -> None:
        """Run every trial that has not finished. Cancelling leaves what has."""
        run = self.plan, self.directory, self.options, observer, self.grades
        try:
            if self._cluster is None:
                await run_locally(*run)
            else:
                from skillup.executors.cluster import run_on_cluster

                await run_on_cluster(self._cluster, *run)
        finally:
            await self.models.close()

    def stepwise(self, observer: RunObserver) -> Stepwise:
        """For trials one at a time; the caller closes the session's models."""
        return Stepwise(self.plan, self.directory, self.options, observer, self.grades)

    def read_finished(self) -> None:
        """Take over the grades of trials that have finished, where none is to be run."""
        for job in self.plan.jobs:
            if self.directory.finished_record(job.id) is not None:
                grade = self.directory.read_grade(job.id)
                self.grades |= {job.id: grade} if grade is not None else {}

    def conclude(
        self, jobs: frozenset[str] | None = None, *, interrupted: bool = False
    ) -> RunResult:
        """Write the result: of all trials, or of `jobs` and those that have a grade."""
        options, info = self.options, self.directory.run_info()
        stop = options.stopping.reason
        if interrupted:
            stop = Stop(kind="interrupted", message="interrupted by a signal")
        deciding, missing = options.deciding, [j for j in self.plan.jobs if j.id not in self.grades]
        not_needed = [job.id for job in missing if deciding is not None and not deciding.needs(job)]
        result = build_result(
            options.run_id,
            info["started_at"],
            self.grades,
            [j.id for j in self.plan.jobs if jobs is None or j.id in jobs or j.id in self.grades],
            self._taken_before + round((time.monotonic() - self._started) * 1000),
            Ending(stop, frozenset(not_needed), tuple(options.stopping.warnings)),
        )
        result = with_analysis(result, info)
        self.directory.write_result(result)
        return result

    def publish(self, result: RunResult, index: str | None = None) -> list[Path]:
        """Write the reports that the request or a suite asks for, and index the run: the files."""
        suites = {job.suite.path: job.suite.suite for job in self.plan.jobs}
        formats = [*self.request.reports, *(f for s in suites.values() for f in s.report.formats)]
        written = write_reports(
            result, formats, self.directory.path, self.secrets.mask, index=index
        )
        index_finished_run(self.directory.path, Path(self.request.directory or "."), index)
        return list(written)


def _new_directory(
    request: RunRequest, plan: Plan, secrets: Secrets, path: Path | None, run_id: str
) -> RunDirectory:
    whole = replace(plan, jobs=plan.whole or plan.jobs)
    info = {
        "schema_version": "skillup.run/1",
        "run_id": run_id,
        "skillup_version": __version__,
        "started_at": now(),
        "request": asdict(request),
        "hidden_variables": hidden_variables(request.variables, secrets.mask),
        "profiles": {job.profile.name: job.profile.model_dump(mode="json") for job in whole.jobs},
        "suites": _recorded_suites(whole),
        "jobs": [job.id for job in plan.jobs],
        **({"planned": [job.id for job in whole.jobs]} if plan.whole else {}),
        "case_digests": case_digests(whole),
    }
    place = path or default_run_path(workspace_root(Path(request.directory)), run_id)
    return RunDirectory.create(place, info, mask=secrets.mask)


def _reopened(plan: Plan, secrets: Secrets, path: Path, *, retry_errors: bool) -> RunDirectory:
    earlier = RunDirectory.open(path)
    info = earlier.run_info()
    check_same_trials(plan, info)
    check_same_cases(plan, earlier, info, secrets, retry_errors=retry_errors)
    directory = RunDirectory.open(path, writable=True, mask=secrets.mask)
    note_changed_cases(plan, directory, info)
    return directory


def _early_stopping(
    request: RunRequest, plan: Plan, info: Mapping[str, Any], warn: Callable[[str], None]
) -> EarlyStopping | None:
    """The tests of `--until-decided`; `warn` is called for those that cannot come out."""
    if not request.until_decided:
        return None
    deciding = EarlyStopping(plan.jobs, info)
    most = request.trials or 0
    for threshold in sorted({test.threshold for test in deciding.tests()}):
        above, below = fewest_trials(threshold)
        for side, needed, results in (("above", above, "passes"), ("below", below, "failures")):
            if most < needed:
                warn(
                    f"with {most} trials no case can be surely {side} {threshold:g}: "
                    f"that takes {needed} {results} in a row"
                )
    return deciding


def _recorded_suites(plan: Plan) -> dict[str, dict[str, Any]]:
    """By name: file, gates (as they are now), skills, titles, tags, and what jobs call cases."""
    found: dict[str, dict[str, Any]] = {}
    for job in plan.jobs:
        suite, case = job.suite, job.loaded.case
        about = found.get(suite.name)
        if about is None:
            about = found[suite.name] = {
                "path": str(suite.path),
                "gates": suite.suite.gates.model_dump(mode="json", exclude_none=True),
                "cases": {},
                "titles": {},
                "tags": {},
                **_installed_skills(suite),
            }
        about["cases"][job.id.rsplit("/", maxsplit=3)[0]] = case.id
        if case.title:
            about["titles"][case.id] = case.title
        if case.tags:
            about["tags"][case.id] = list(case.tags)
    return found


def _installed_skills(suite: LoadedSuite) -> dict[str, list[str]]:
    from skillup.trial.setup import skills_for

    found = skills_for(suite, "with_skill")
    names: dict[str, list[str]] = {"skills": [], "distractors": []}
    for skill in found if isinstance(found, list) else ():
        names["distractors" if skill.role == "distractor" else "skills"].append(skill.name)
    return names


def first_skillup_error(group: BaseExceptionGroup[BaseException]) -> SkillupError | None:
    """The error in `group` that a user can act on."""
    for error in group.exceptions:
        found = first_skillup_error(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, SkillupError):
            return found
    return None
