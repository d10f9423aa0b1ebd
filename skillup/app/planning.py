"""From a request to the plan of a run, and what of it must never be shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillup.app.engines import profiles_for, require_scripts, root_with_engines
from skillup.app.judges import with_judges
from skillup.app.limits import check_deciding
from skillup.app.request import RunRequest, parse_vars
from skillup.engines.registry import tokens_of
from skillup.errors import Problem, SkillupError, UsageError
from skillup.load.datasets import Sampling, sampled
from skillup.load.model import Loaded
from skillup.load.profiles import load_profile
from skillup.load.suites import load_paths
from skillup.plan import Plan, Selection, make_plan
from skillup.redaction.secrets import Secrets
from skillup.reports.terminal.listing import problem_line
from skillup.reports.text import listed_ids


def plan_of(request: RunRequest) -> tuple[Plan, int]:
    """The plan that `request` asks for, and how many trials at once the suites in it allow.

    Raises UsageError and InvalidFilesError; warnings go to stderr.
    """
    check_deciding(request)
    base = Path(request.directory or ".")
    variables = parse_vars(list(request.variables))
    loaded = load_paths([base / path for path in request.paths], variables=variables)
    if loaded.errors:
        _warn(loaded.warnings)
    loaded.or_raise()
    suites = sampled(loaded.suites, Sampling(request.item, request.sample_size, request.seed))
    suites = with_judges(suites, request.judge_model, request.judge_model_fallback)
    profiles = profiles_for(suites, request.engines, request.model, base)
    plan = make_plan(
        suites,
        profiles,
        Selection(
            case_globs=request.cases,
            tags=request.tags,
            trials=request.trials,
            trials_from_turn=request.trials_from_turn,
            variants=("with_skill", "without_skill") if request.baseline else ("with_skill",),
            variables=variables,
        ),
    )
    if request.jobs:
        wanted = set(request.jobs)
        plan = replace(plan, jobs=tuple(job for job in plan.jobs if job.id in wanted))
    if not plan.jobs:
        known = ", ".join(plan.left_out[:10]) or "none"
        raise UsageError("no case matches the selection", hint=f"the cases are: {known}")
    _warn(_of_selected(loaded, plan))
    require_scripts(plan)
    of_plan = {job.suite.path: job.suite.suite.cases.parallelism for job in plan.jobs}
    # A suite's number is what it can stand: with several, none is exceeded.
    return plan, min(filter(None, of_plan.values()), default=os.cpu_count() or 2)


def _of_selected(loaded: Loaded, plan: Plan) -> list[Problem]:
    """The warnings without those of files that hold none but cases which are not run."""
    files = {case.path for suite in loaded.suites for case in suite.cases}
    left_out = files - {job.loaded.path for job in plan.jobs}
    return [warning for warning in loaded.warnings if warning.file not in left_out]


def _warn(problems: Iterable[Problem]) -> None:
    for problem in problems:
        sys.stderr.write(problem_line(problem) + "\n")


def check_same_trials(plan: Plan, run_info: Mapping[str, Any]) -> None:
    """Raises UsageError if `plan` has other trials than the run that is gone on with.

    The result would silently lack what was held of a case that has gone since.
    """
    before, now = run_info.get("jobs"), {job.id: None for job in plan.jobs}
    if not isinstance(before, list):
        return
    told = []
    for what, jobs in (
        ("there no longer", [job for job in before if job not in now]),
        ("new", [job for job in now if job not in set(before)]),
    ):
        if jobs:
            count = f"{len(jobs)} trial{'s' if len(jobs) != 1 else ''}"
            told.append(f"{what}: {count} ({listed_ids(jobs, 3)})")
    if told:
        raise UsageError(
            f"the cases have changed since the run began; {'; '.join(told)}",
            hint="put them back as they were, or start a new run; "
            "`skillup judge RUN` shows what was held",
        )


# What nothing of a run may show: the credentials of all who take part in it.


def secrets_of_plan(plan: Plan, base: Path, environment: Mapping[str, str]) -> Secrets:
    """Those of the agents, of who plays users and of who judges in `plan`.

    Profiles that only players name are those of the workspace of `base`. Raises UsageError if a
    variable that `api_key_env` names holds what cannot be masked.
    """
    secrets = _of_engines(plan, environment)
    secrets = _with_users(secrets, plan, base, environment)
    secrets = _with_judges(secrets, plan, environment).also_of(_addresses(plan))
    secrets = secrets.sparing(names_of_run(plan, base))
    for name in secrets.spared:
        if name in _keys_named(plan):
            raise UsageError(
                f"{name}, which `api_key_env` names, holds an ordinary word; it cannot be masked",
                hint="a record is made of such words; set the variable to a key",
            )
    return secrets


def names_of_run(plan: Plan, base: Path) -> set[str]:
    """By which the run's files name its trials and find its suites again."""
    paths = {str(job.suite.path.absolute()) for job in plan.jobs}
    return {str(base.absolute()), *paths, *(job.id for job in plan.jobs)}


def warn_of_spared(secrets: Secrets, warn: Callable[[str], None]) -> None:
    """A line for each variable whose value will not be masked."""
    for name in secrets.spared:
        warn(f"{name} holds an ordinary word; it cannot be masked")


def _of_engines(plan: Plan, environment: Mapping[str, str]) -> Secrets:
    """The user's credentials, and those in files of the plan."""
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


def _with_users(
    secrets: Secrets, plan: Plan, base: Path, environment: Mapping[str, str]
) -> Secrets:
    """`secrets` and those of the models and engines that play the users of `plan`."""
    suites = {job.suite.path: job.suite for job in plan.jobs}
    for suite in suites.values():
        given = suite.suite.user_simulator
        if given is None:
            continue
        secrets = secrets.also_of(environment, (given.api_key_env,))
        if given.engine is None:
            continue
        try:
            root = root_with_engines(base, suite.root)
            profile = load_profile(given.engine, root, environment)
        except SkillupError:
            continue  # the cases that need it say what is wrong
        secrets = secrets.also_of(environment, (profile.api_key_env,))
        secrets = secrets.also_of(profile.env, (profile.api_key_env,))
        secrets = secrets.also(tokens_of(profile.engine, environment))
    return secrets


def _with_judges(secrets: Secrets, plan: Plan, environment: Mapping[str, str]) -> Secrets:
    """`secrets` and the keys of all who judge in `plan`."""
    names = _keys_of_judges(plan)
    return secrets.also_of(environment, names) if names else secrets


def _addresses(plan: Plan) -> dict[str, str]:
    """Addresses of models as profiles, suites and cases write them: some hold a password."""
    cases = {id(job.loaded.case): job.loaded.case for job in plan.jobs}.values()
    models = [case.judge_model for case in cases]
    judges = [judge for case in cases for judge in case.all_judges()]
    users = [job.suite.suite.user_simulator for job in plan.jobs]
    profiles = [job.profile for job in plan.jobs]
    written = {one.base_url for one in (*models, *judges, *users, *profiles) if one is not None}
    return {f"base_url.{n}": url for n, url in enumerate(sorted(filter(None, written)), start=1)}


def _keys_of_judges(plan: Plan) -> set[str]:
    cases = {id(job.loaded.case): job.loaded.case for job in plan.jobs}.values()
    models = (case.judge_model for case in cases)
    names = {model.api_key_env for model in models if model is not None}
    names |= {judge.api_key_env for case in cases for judge in case.all_judges()}
    return {name for name in names if name is not None}


def _keys_named(plan: Plan) -> set[str | None]:
    """Variables of keys that the plan names, those of players' profiles aside."""
    users = (job.suite.suite.user_simulator for job in plan.jobs)
    return {
        *_keys_of_judges(plan),
        *(job.profile.api_key_env for job in plan.jobs),
        *(user.api_key_env for user in users if user is not None),
    }
