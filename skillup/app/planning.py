"""From a request to the plan of a run, and what of it must never be shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from skillup.app.engines import profiles_for, require_scripts, root_with_engines
from skillup.app.request import RunRequest, parse_vars
from skillup.engines.registry import tokens_of
from skillup.errors import SkillupError, UsageError
from skillup.load.datasets import Sampling, sampled
from skillup.load.model import LoadedSuite
from skillup.load.profiles import load_profile
from skillup.load.suites import load_paths
from skillup.plan import Job, Plan, Selection, make_plan
from skillup.redaction.secrets import Secrets
from skillup.schema.case import Case
from skillup.schema.judge import JudgeConfig, JudgeModel
from skillup.schema.profile import Profile
from skillup.schema.suite import Suite, UserSimulator


def plan_of(request: RunRequest) -> tuple[Plan, int]:
    """The plan that `request` asks for, and how many trials at once the suites in it allow.

    Raises UsageError and InvalidFilesError; warnings go to stderr.
    """
    _check_until_decided(request)
    variables = parse_vars(request.variables)
    loaded = load_paths([request.base / path for path in request.paths], variables=variables)
    warnings = list(loaded.warnings)
    if not loaded.errors:
        suites = sampled(loaded.suites, Sampling(request.item, request.sample_size, request.seed))
        suites = [_with_judge_model(suite, request) for suite in suites]
        plan = make_plan(
            suites,
            profiles_for(suites, request.engines, request.model, request.base),
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
            chosen = set(request.jobs)
            plan = replace(plan, jobs=tuple(job for job in plan.jobs if job.id in chosen))
        if request.shard is not None:
            plan = shard_of(plan, request.shard, by_case=request.until_decided)
            if plan.whole and not plan.jobs:
                raise UsageError(
                    f"--shard {request.shard}: none of the {len(plan.whole)} trials is in it"
                )
        if not plan.jobs:
            known = ", ".join(plan.left_out[:10]) or "none"
            raise UsageError("no case matches the selection", hint=f"the cases are: {known}")
        # Files that hold only cases which are not run are of no interest here.
        files = {case.path for suite in loaded.suites for case in suite.cases}
        left_out = files - {job.loaded.path for job in plan.jobs}
        warnings = [warning for warning in warnings if warning.file not in left_out]
    if warnings:
        from skillup.reports.terminal.listing import problem_line

        sys.stderr.writelines(f"{problem_line(warning)}\n" for warning in warnings)
    loaded.or_raise()
    require_scripts(plan)
    parallel = {job.suite.path: job.suite.suite.cases.parallelism for job in plan.jobs}
    # A suite's number is what it can stand: with several, none is exceeded.
    return plan, min(filter(None, parallel.values()), default=os.cpu_count() or 2)


def _with_judge_model(suite: LoadedSuite, request: RunRequest) -> LoadedSuite:
    model, fallback = request.judge_model, request.judge_model_fallback
    if not model and not fallback:
        return suite
    from skillup.judges.models.client import with_judge_model

    cases = tuple(
        replace(loaded, case=with_judge_model(loaded.case, model, fallback, suite.suite))
        for loaded in suite.cases
    )
    return replace(suite, cases=cases)


def _check_until_decided(request: RunRequest) -> None:
    """Raises UsageError if `--until-decided` and what belongs to it do not go together."""
    rate, decided = request.pass_rate, request.until_decided
    problems = {
        f"--pass-rate {rate}: it says what --until-decided compares with": (
            rate is not None and not decided
        ),
        f"--pass-rate {rate}: must be between 0 and 1, without them": (
            rate is not None and not 0 < rate < 1
        ),
        "--until-decided needs the most trials that a case may have: say it with --trials": (
            decided and (request.trials or 0) < 2
        ),
        "--until-decided does not go with --trials-from-turn: trials that share turns run "
        "together, so none can be left out": decided and (request.trials_from_turn or 1) > 1,
    }
    for problem, is_so in problems.items():
        if is_so:
            hint = "for example --trials 50 --until-decided --pass-rate 0.9"
            raise UsageError(problem, hint=hint)


def shard_of(plan: Plan, shard: str, *, by_case: bool) -> Plan:
    """The part ``INDEX/COUNT`` of `plan`: the same one wherever the plan is made.

    Trials that share turns, or of which one depends on the other, are in one shard, and so are all
    trials of a case if `by_case`. Raises UsageError for what is no shard.
    """
    index, _, count = shard.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard {shard}: no part of the run", hint="for example 1/8, up to 8/8")
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for job in plan.jobs:
        case = f"case {job.suite.path} {job.loaded.family}" if by_case else job.id
        for other in (*job.depends_on, f"family {job.family}" if job.family else job.id, case):
            leader[find(other)] = find(job.id)
    groups: dict[str, list[Job]] = {}
    for job in plan.jobs:
        groups.setdefault(find(job.id), []).append(job)
    sizes = [0] * int(count)
    taken: set[str] = set()
    for group in groups.values():
        smallest = sizes.index(min(sizes))
        sizes[smallest] += len(group)
        if smallest == int(index) - 1:
            taken |= {job.id for job in group}
    jobs = tuple(job for job in plan.jobs if job.id in taken)
    return replace(plan, jobs=jobs, whole=plan.jobs)


def secrets_of_plan(plan: Plan, base: Path, environment: Mapping[str, str]) -> Secrets:
    """What nothing of a run may show: the credentials of all who take part in it.

    Those of the agents, of who plays users (their profiles are those of the workspace of `base`)
    and of who judges. Raises UsageError if a variable that `api_key_env` names cannot be masked.
    """
    suites = list({job.suite.path: job.suite for job in plan.jobs}.values())
    cases = list({id(job.loaded.case): job.loaded.case for job in plan.jobs}.values())
    profiles = list({job.profile.name: job.profile for job in plan.jobs}.values())
    for suite in suites:
        user = suite.suite.user_simulator
        with suppress(SkillupError):  # the cases that need it say what is wrong
            if user is not None and user.engine is not None:
                root = root_with_engines(base, suite.root)
                profiles.append(load_profile(user.engine, root, environment))
    names = keys_of([*profiles, *models_of([suite.suite for suite in suites], cases)])
    secrets = collect_secrets(environment, profiles, [suite.suite for suite in suites], cases)
    secrets = secrets.sparing(names_of_run(plan, base))
    for name in secrets.spared:
        if name in names:
            raise UsageError(
                f"{name}, which `api_key_env` names, holds an ordinary word; it cannot be masked",
                hint="a record is made of such words; set the variable to a key",
            )
    return secrets


def models_of(
    suites: Iterable[Suite], cases: Iterable[Case]
) -> list[JudgeModel | JudgeConfig | UserSimulator]:
    """Who judges the cases, and who plays users in the suites."""
    users = [suite.user_simulator for suite in suites]
    judges = [one for case in cases for one in (case.judge_model, *case.all_judges())]
    return [one for one in (*judges, *users) if one is not None]


def keys_of(models: Iterable[Profile | JudgeModel | JudgeConfig | UserSimulator]) -> set[str]:
    """The variables that hold the keys of agents, judges and simulated users."""
    return {one.api_key_env for one in models if one.api_key_env is not None}


def collect_secrets(
    environment: Mapping[str, str],
    profiles: Sequence[Profile],
    suites: Sequence[Suite],
    cases: Sequence[Case],
    names: Iterable[str] = (),
) -> Secrets:
    """The credentials in `environment` and in the files; those in the variables `names`, too."""
    models = models_of(suites, cases)
    keys = {*names, *keys_of(profiles)}
    secrets = Secrets.from_environment(environment, keys)
    for profile in profiles:
        secrets = secrets.also_of(profile.env, keys)
        secrets = secrets.also(tokens_of(profile.engine, environment))
    for suite in suites:
        # Those that take their value from elsewhere (`${NAME}`) have it from the environment.
        secrets = secrets.also_of(suite.environment.env, keys)
    secrets = secrets.also_of(environment, keys | keys_of(models))
    # Addresses of models as files write them: some hold a password.
    urls = sorted({one.base_url for one in (*models, *profiles) if one.base_url})
    return secrets.also_of({f"base_url.{n}": url for n, url in enumerate(urls, start=1)})


def names_of_run(plan: Plan, base: Path) -> set[str]:
    """By which the run's files name its trials and find its suites again."""
    paths = {str(job.suite.path.absolute()) for job in plan.jobs}
    return {str(base.absolute()), *paths, *(job.id for job in plan.jobs)}


def warn_of_spared(secrets: Secrets, warn: Callable[[str], None]) -> None:
    """A line for each variable whose value will not be masked."""
    for name in secrets.spared:
        warn(f"{name} holds an ordinary word; it cannot be masked")
