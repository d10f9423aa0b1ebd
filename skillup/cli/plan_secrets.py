"""What nothing of a run may show: the credentials of all who take part in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillup.cli.engines import root_with_engines
from skillup.engines.registry import tokens_of
from skillup.errors import SkillupError
from skillup.load.profiles import load_profile
from skillup.plan import Plan
from skillup.process.secrets import Secrets


def secrets_of_plan(plan: Plan, base: Path, environment: Mapping[str, str]) -> Secrets:
    """Those of the agents, of who plays users and of who judges in `plan`.

    Profiles that only players name are those of the workspace of `base`.
    """
    secrets = _of_engines(plan, environment)
    secrets = _with_users(secrets, plan, base, environment)
    return _with_judges(secrets, plan, environment)


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
    cases = {id(job.loaded.case): job.loaded.case for job in plan.jobs}.values()
    models = (case.judge_model for case in cases)
    names = {model.api_key_env for model in models if model is not None}
    names |= {judge.api_key_env for case in cases for judge in case.all_judges()}
    return secrets.also_of(environment, names - {None}) if names - {None} else secrets
