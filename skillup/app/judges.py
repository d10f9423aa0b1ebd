"""Who judges in a run, and who plays its simulated users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.app.engines import root_with_engines
from skillup.checks.registry import JUDGED
from skillup.errors import RunDirectoryError
from skillup.load.discover import workspace_root
from skillup.load.model import all_checks
from skillup.load.profiles import load_profile
from skillup.plan import Plan
from skillup.redaction.secrets import Secrets
from skillup.schema.case import Case
from skillup.schema.profile import Profile
from skillup.store.places import shared_answers_path

if TYPE_CHECKING:  # imported late: most runs are judged by rules alone, and start faster so
    from skillup.judges.models.cache import AnswerCache
    from skillup.judges.models.client import Models
    from skillup.judges.router import JudgeRouter
    from skillup.ratelimit import RateLimiter
    from skillup.simulator import SimulatorFactory


def needs_judge(case: Case) -> bool:
    """Whether anything in `case` is judged by a model, an agent or a script."""
    checks = [*(check for _, check, _ in all_checks(case)), *case.checks()]
    checks += [check for turn in case.input.all_turns() for check in turn.checks()]
    judged = any(key in JUDGED for check in checks for key, _ in check.given())
    return judged or bool(case.all_judges())


def answer_cache(
    run: Path | None, base: Path, mask: Callable[[str], str], *, anew: bool
) -> AnswerCache:
    """The answers kept in `run` (None: in none) and those that the runs of a workspace share.

    `anew` is `--no-judge-cache`.
    """
    from skillup.judges.models.cache import AnswerCache, AnswerFolder

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
    """Who judges the cases of `plan`; other profiles are those of the workspace of `base`,
    or, if it has none, of the workspace of the suite that names them.

    `rate_limiter`: the ways to the providers of who judges or plays the user.
    """
    from skillup.judges.models.client import Models
    from skillup.judges.router import JudgeRouter

    jobs = {id(job.loaded.case): job for job in plan.jobs}
    of_plan = {(job.suite.root, job.profile.name): job.profile for job in plan.jobs}

    def case_location(case: Case) -> tuple[Path, str] | None:
        job = jobs.get(id(case))
        return (job.suite.root, job.profile.name) if job is not None else None

    def profile(name: str, root: Path) -> Profile:
        known = of_plan.get((root, name))
        return known or load_profile(name, root_with_engines(base, root), environment)

    models = Models(environment, secrets.mask, cache, rate_limiter=rate_limiter)
    return JudgeRouter(models, profile, case_location, secrets=secrets)


def simulators_of(
    models: Models, base: Path, environment: Mapping[str, str], secrets: Secrets
) -> SimulatorFactory:
    """Players for the suites of a run; profiles are those of the workspace of `base`."""
    from skillup.simulator import SimulatorFactory

    def profile(name: str, root: Path) -> Profile:
        return load_profile(name, root_with_engines(base, root), environment)

    return SimulatorFactory(models, profile, secrets)
