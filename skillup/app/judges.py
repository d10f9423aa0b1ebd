"""Who judges in a run that is started from the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillup.app.engines import root_with_engines
from skillup.errors import Problem, RunDirectoryError
from skillup.judges.models.cache import AnswerCache, AnswerFolder
from skillup.judges.models.client import ModelOptions, Models, with_judge_model
from skillup.judges.router import CaseLocation, JudgeRouter, RouterOptions, first_read
from skillup.load.discover import workspace_root
from skillup.load.model import LoadedSuite
from skillup.load.profiles import load_profile
from skillup.plan import Plan
from skillup.ratelimit.slow_down import Pacing
from skillup.redaction.secrets import Secrets
from skillup.schema.case import Case
from skillup.schema.profile import Profile
from skillup.schema.suite import playing_model
from skillup.simulator import SimulatorFactory
from skillup.simulator.factory import NOBODY
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
    pacing: Pacing,
) -> JudgeRouter:
    """The desk for the cases of `plan`; other profiles are those of the workspace of `base`,
    or, if it has none, of the workspace of the suite that names them.

    `pacing`: the ways to the providers of who judges or plays the user.
    """
    jobs = {id(job.loaded.case): job for job in plan.jobs}
    held = {(job.suite.root, job.profile.name): job.profile for job in plan.jobs}

    def case_location(case: Case) -> CaseLocation | None:
        job = jobs.get(id(case))
        return CaseLocation(job.suite.root, job.profile.name) if job is not None else None

    def profile(name: str, root: Path) -> Profile:
        known = held.get((root, name))
        return known or load_profile(name, root_with_engines(base, root), environment)

    models = Models(ModelOptions(environment, secrets.mask, cache, pacing=pacing))
    return JudgeRouter(
        models, RouterOptions(environment, secrets.mask, profile, case_location, secrets=secrets)
    )


# Who plays simulated users in a run that is started from the command line.


def simulators_of(
    models: Models, base: Path, environment: Mapping[str, str], secrets: Secrets
) -> SimulatorFactory:
    """Players for the suites of a run; profiles are those of the workspace of `base`."""

    def profile(name: str, root: Path) -> Profile:
        return load_profile(name, root_with_engines(base, root), environment)

    return SimulatorFactory(
        models.seen_from, models.problem, profile, environment, secrets.mask, models.pacing, secrets
    )


def unplayable_users(
    suites: Sequence[LoadedSuite], base: Path, environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Warnings: the players of simulated users that a run could not ask; a line for each reason."""
    secrets = Secrets.from_environment(environment)
    models = Models(ModelOptions(environment, secrets.mask))
    casting = simulators_of(models, base, environment, secrets)
    for suite in suites:
        given = suite.suite.user_simulator
        told: set[str] = set()
        for loaded in suite.cases:
            if given is None and playing_model(given, loaded.case) is None:
                continue  # the case's own problems say so
            why = casting.known_problem(loaded.case, given, suite.root)
            if why is not None and why != NOBODY and why not in told:
                told.add(why)
                line, column = suite.document.locate(("user_simulator",))
                fix = "a run of the cases that need it would be an error"
                yield Problem(suite.path, line, column, "user_simulator", why, fix, "warning")


# Judge models that a run could not ask, said before one is started.


def unusable_judges(
    suites: Sequence[LoadedSuite], environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Warnings: a line for each reason and suite. Written-down judges are checked as files."""
    models = Models(ModelOptions(environment, Secrets.from_environment(environment).mask))
    for suite in suites:
        told: set[str] = set()
        for loaded in suite.cases:
            model = loaded.case.judge_model
            if model is None or model.model.startswith("scripted:"):
                continue
            if first_read(loaded.case) is None:
                continue
            why = models.problem(model, suite.root)
            if why is None or why in told:
                continue
            told.add(why)
            line, column = suite.document.locate(("judge", "model"))
            fix = "a run of the cases that need it would be an error"
            yield Problem(suite.path, line, column, "judge.model", why, fix, "warning")


# Written-down judges that suites name, and what is wrong with them.


def broken_judge_files(suites: Sequence[LoadedSuite]) -> Iterator[Problem]:
    """A problem for each file that is named as `scripted:FILE` and cannot be used."""
    for suite in suites:
        models = [c.case.judge_model for c in suite.cases if c.case.judge_model is not None]
        named = {model.model: model for model in models if model.model.startswith("scripted:")}
        if not named:
            continue
        from skillup.judges.models.client import ModelOptions, Models

        known = Models(ModelOptions({}, str))
        for model in named.values():
            why = known.problem(model, suite.root)
            if why is not None:
                line, column = suite.document.locate(("judge", "model"))
                yield Problem(suite.path, line, column, "judge.model", why)
