"""Who judges in a run that is started from the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillup.app.engines import root_with_engines
from skillup.errors import RunDirectoryError
from skillup.judges.models.cache import AnswerCache, AnswerFolder
from skillup.judges.models.client import ModelOptions, Models, with_judge_model
from skillup.judges.router import CaseLocation, JudgeRouter, RouterOptions
from skillup.load.discover import workspace_root
from skillup.load.model import LoadedSuite
from skillup.load.profiles import load_profile
from skillup.plan import Plan
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import Secrets
from skillup.schema.case import Case
from skillup.schema.profile import Profile
from skillup.simulator import SimulatorFactory
from skillup.store.places import shared_answers_path


def with_judges(
    suites: Sequence[LoadedSuite], asked: str | None, fallback: str | None
) -> list[LoadedSuite]:
    """`suites`, each case with the model that reads for it (`--judge-model`, or the fallback)."""
    return [
        replace(
            suite,
            cases=tuple(
                replace(loaded, case=with_judge_model(loaded.case, asked, fallback, suite.suite))
                for loaded in suite.cases
            ),
        )
        for suite in suites
    ]


def answer_cache(
    run: Path | None, base: Path, mask: Callable[[str], str], *, anew: bool
) -> AnswerCache:
    """The answers kept in `run` (None: in none) and those that the runs of a workspace share.

    `anew` is `--no-judge-cache`.
    """
    own = AnswerFolder(run, mask, needed=True) if run is not None else None
    shared = None
    if not anew:
        try:
            shared = AnswerFolder(shared_answers_path(workspace_root(base)), mask, needed=False)
        except RunDirectoryError:
            shared = None  # a workspace that cannot be written has no cache
    return AnswerCache(own, shared, anew=anew)


def router_of(
    plan: Plan,
    base: Path,
    environment: Mapping[str, str],
    secrets: Secrets,
    cache: AnswerCache,
    rate_limiter: RateLimiter,
) -> JudgeRouter:
    """The desk for the cases of `plan`; other profiles are those of the workspace of `base`,
    or, if it has none, of the workspace of the suite that names them.

    `rate_limiter`: the ways to the providers of who judges or plays the user.
    """
    jobs = {id(job.loaded.case): job for job in plan.jobs}
    held = {(job.suite.root, job.profile.name): job.profile for job in plan.jobs}

    def case_location(case: Case) -> CaseLocation | None:
        job = jobs.get(id(case))
        return CaseLocation(job.suite.root, job.profile.name) if job is not None else None

    def profile(name: str, root: Path) -> Profile:
        known = held.get((root, name))
        return known or load_profile(name, root_with_engines(base, root), environment)

    models = Models(ModelOptions(environment, secrets.mask, cache, rate_limiter=rate_limiter))
    return JudgeRouter(
        models, RouterOptions(environment, secrets.mask, profile, case_location, secrets=secrets)
    )


def simulators_of(
    models: Models, base: Path, environment: Mapping[str, str], secrets: Secrets
) -> SimulatorFactory:
    """Players for the suites of a run; profiles are those of the workspace of `base`."""

    def profile(name: str, root: Path) -> Profile:
        return load_profile(name, root_with_engines(base, root), environment)

    return SimulatorFactory(
        models.seen_from,
        models.problem,
        profile,
        environment,
        secrets.mask,
        models.rate_limiter,
        secrets,
    )
