"""From a request to the plan of a run, and what of it must never be shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from skillup.app.engines import profiles_for, require_scripts, root_with_engines
from skillup.app.judges import with_judges
from skillup.app.merge import shard_of
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


def plan_of(request: RunRequest) -> tuple[Plan, int]:
    """The plan that `request` asks for, and how many trials at once the suites in it allow.

    Raises UsageError and InvalidFilesError; warnings go to stderr.
    """
    _check_until_decided(request)
    base = Path(request.directory or ".")
    variables = parse_vars(request.variables)
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
    if request.shard is not None:
        plan = shard_of(plan, request.shard, by_case=request.until_decided)
        if plan.whole and not plan.jobs:
            raise UsageError(
                f"--shard {request.shard}: none of the {len(plan.whole)} trials is in it"
            )
    if not plan.jobs:
        known = ", ".join(plan.left_out[:10]) or "none"
        raise UsageError("no case matches the selection", hint=f"the cases are: {known}")
    _warn(_of_selected(loaded, plan))
    require_scripts(plan)
    of_plan = {job.suite.path: job.suite.suite.cases.parallelism for job in plan.jobs}
    # A suite's number is what it can stand: with several, none is exceeded.
    return plan, min(filter(None, of_plan.values()), default=os.cpu_count() or 2)


def _check_until_decided(request: RunRequest) -> None:
    """Raises UsageError if `--until-decided` and what belongs to it do not go together."""
    rate = request.pass_rate
    if rate is not None and not request.until_decided:
        raise UsageError(
            f"--pass-rate {rate:g}: it says what --until-decided compares with",
            hint="give both, or leave it out",
        )
    if rate is not None and not 0 < rate < 1:
        raise UsageError(
            f"--pass-rate {rate:g}: must be between 0 and 1, without them",
            hint="for example 0.9: is a case surely above or below 90 %?",
        )
    if not request.until_decided:
        return
    if request.trials is None or request.trials < 2:
        raise UsageError(
            "--until-decided needs the most trials that a case may have",
            hint="say it with --trials, for example --trials 50",
        )
    if (request.trials_from_turn or 1) > 1:
        raise UsageError(
            "--until-decided does not go with --trials-from-turn: trials that share turns are held "
            "together, so none can be left out",
            hint="leave one of them out",
        )


def _of_selected(loaded: Loaded, plan: Plan) -> list[Problem]:
    """The warnings without those of files that hold none but cases which are not run."""
    files = {case.path for suite in loaded.suites for case in suite.cases}
    left_out = files - {job.loaded.path for job in plan.jobs}
    return [warning for warning in loaded.warnings if warning.file not in left_out]


def _warn(problems: Iterable[Problem]) -> None:
    for problem in problems:
        sys.stderr.write(problem_line(problem) + "\n")


def secrets_of_plan(plan: Plan, base: Path, environment: Mapping[str, str]) -> Secrets:
    """What nothing of a run may show: the credentials of all who take part in it.

    Those of the agents, of who plays users (their profiles are those of the workspace of `base`)
    and of who judges. Raises UsageError if a variable that `api_key_env` names cannot be masked.
    """
    suites = {job.suite.path: job.suite for job in plan.jobs}.values()
    cases = list({id(job.loaded.case): job.loaded.case for job in plan.jobs}.values())
    profiles = {job.profile.name: job.profile for job in plan.jobs}.values()
    judges = [*(case.judge_model for case in cases), *(j for c in cases for j in c.all_judges())]
    users = [suite.suite.user_simulator for suite in suites]

    names: set[str | None] = {profile.api_key_env for profile in profiles}
    secrets = Secrets.from_environment(environment, names)
    for profile in profiles:
        secrets = secrets.also_of(profile.env, names)
        secrets = secrets.also(tokens_of(profile.engine, environment))
    for suite in suites:
        # Those that take their value from elsewhere (`${NAME}`) have it from the environment.
        secrets = secrets.also_of(suite.suite.environment.env, names)
    for suite in suites:
        user = suite.suite.user_simulator
        if user is None or user.engine is None:
            continue
        try:
            player = load_profile(user.engine, root_with_engines(base, suite.root), environment)
        except SkillupError:
            continue  # the cases that need it say what is wrong
        secrets = secrets.also_of(environment, (player.api_key_env,))
        secrets = secrets.also_of(player.env, (player.api_key_env,))
        secrets = secrets.also(tokens_of(player.engine, environment))
    asked = [one for one in (*judges, *users) if one is not None]
    names |= {one.api_key_env for one in asked}
    secrets = secrets.also_of(environment, names)
    # Addresses of models as files write them: some hold a password.
    urls = sorted({one.base_url for one in (*asked, *profiles) if one.base_url})
    secrets = secrets.also_of({f"base_url.{n}": url for n, url in enumerate(urls, start=1)})
    secrets = secrets.sparing(names_of_run(plan, base))
    for name in secrets.spared:
        if name in names:
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
